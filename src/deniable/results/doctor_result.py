"""What `doctor` found on this machine."""

from __future__ import annotations

import msgspec

from deniable.results.base import Part


class Package(Part, frozen=True, kw_only=True):
    """A package that deniable can use."""

    name: str
    version: str | None
    """None: not installed."""
    gives: str
    """What it is for."""
    install: str
    """How it is had."""


class DoctorResult(Part, frozen=True, kw_only=True, tag_field="schema", tag="deniable/doctor/1"):
    """What is installed, what is missing, and how fast this machine is."""

    version: str
    python: str
    system: str
    cores: int
    """That this process may use."""
    packages: tuple[Package, ...]
    kernels: str
    """The state of the compiled kernels."""
    epsilon_milliseconds: float
    """An exact epsilon of 10,000 sampled steps: the median of several."""
    gigaflops: float
    """Products of single-precision matrices, on all cores."""

    def to_json(self) -> str:
        """One JSON document."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()
