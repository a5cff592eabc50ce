"""The compiled kernels (the C files here), if they were built: how tensors are handed to them."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from importlib.util import find_spec
from math import prod
from typing import Any

import torch
from torch import Tensor

VERSION = 8
"""Of the kernels' names and arguments, as `_kernels.c` states it; raise both together."""
_READABLE = (torch.float32, torch.int32, torch.int64, torch.uint8)


def _library() -> tuple[ctypes.CDLL | None, str]:
    """The kernels, or None, and in a few words why."""
    spec = find_spec("deniable.training._kernels")
    if spec is None or spec.origin is None:
        return None, "not built: trainings are slower; install GCC or Clang and deniable again"
    try:
        library = ctypes.CDLL(spec.origin)
        version = library.kernel_version()
    except (OSError, AttributeError):
        version = 0
    if version != VERSION:
        return None, f"of another version ({version}, not {VERSION}) and left out: install deniable again"
    return (library, "in use") if library.faster_than_torch() else (None, "left out: torch is faster on this processor")


KERNELS, STATE = _library()


def tell_if_slow() -> None:
    """Say to the log, which prints on standard error, where another installation would train faster."""
    if KERNELS is None and "install" in STATE:
        logging.getLogger(__name__).warning("compiled kernels are %s", STATE)


def suit(*tensors: Tensor) -> bool:
    """Whether the kernels can read and write such tensors: single precision, in this machine's memory."""
    return all(tensor.dtype == torch.float32 and tensor.device.type == "cpu" for tensor in tensors)


def faster_products() -> bool:
    """Whether a kernel multiplies faster than torch's library, which leaves AVX-512 unused on processors of AMD."""
    return KERNELS is not None and bool(KERNELS.faster_products())


def sizes(*values: int) -> Any:
    """A kernel's sizes, in the order in which its C file names them."""
    return (ctypes.c_long * len(values))(*values)


def addresses(*tensors: Tensor | None) -> Any:
    """Where tensors begin, one after the other; None becomes NULL. Refuses what `call` refuses."""
    return (ctypes.c_void_p * len(tensors))(*(_address(tensor) for tensor in tensors))


def call(name: str, *arguments: Tensor | Any) -> None:
    """Call a kernel; tensors, contiguous and of single precision or whole, become addresses and None becomes NULL.

    TypeError refuses any other tensor: a kernel would read and write beyond it.
    """
    _call(name, [_address(value) for value in arguments])


def plan(name: str, *arguments: Tensor | Any) -> Callable[..., None]:
    """`call` with these arguments, and others behind them that are given each time."""
    known = [_address(value) for value in arguments]

    def call_again(*others: Any) -> None:
        _call(name, [*known, *others])

    return call_again


def plan_each(name: str, trials: int, *arguments: Tensor | Any) -> Callable[[int], None]:
    """`call` for a trial: a tensor (trials, ...) gives each its own part, one of length 1 the same to all."""
    # each tensor beside its address: it lives as long as the plan
    known = [(value, _address(value), _bytes_apart(value, trials)) for value in arguments]

    def call_one(trial: int) -> None:
        _call(name, [ctypes.c_void_p(at.value + trial * step) if step else at for _, at, step in known])

    return call_one


def _bytes_apart(value: Tensor | Any, trials: int) -> int:
    """From one trial's part to the next one's; 0 if there is one for all."""
    if not isinstance(value, Tensor) or len(value) == 1:
        return 0
    if len(value) != trials:
        raise TypeError(f"a kernel for {trials} trials needs tensors of as many parts, or of one, got {len(value)}")
    return value.element_size() * value.numel() // trials


def _call(name: str, arguments: list[Any]) -> None:
    if KERNELS is None:
        raise RuntimeError(f"the compiled kernels are {STATE}")
    if getattr(KERNELS, name)(*arguments):
        raise MemoryError(f"no memory is left for the kernel {name}: take fewer records or a smaller model")


def _address(value: Tensor | Any) -> Any:
    if not isinstance(value, Tensor):
        return ctypes.c_void_p(None) if value is None else value
    if value.dtype not in _READABLE or value.device.type != "cpu" or not value.is_contiguous():
        raise TypeError(
            f"a kernel needs contiguous tensors of {_READABLE} on the cpu, got {value.dtype} on {value.device.type}"
            f"{'' if value.is_contiguous() else ', not contiguous'}"
        )
    return ctypes.c_void_p(value.data_ptr())


def split_like(flat: Tensor, like: list[Tensor]) -> list[Tensor]:
    """Parts of `flat`, in order, each of the shape of one of `like`: views."""
    parts = torch.split(flat, [values.numel() for values in like])
    return [part.view_as(values) for part, values in zip(parts, like, strict=True)]


class Buffers:
    """Named memory; without it, freed tensors would go back to the system and be faulted in again at every step."""

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}
        self._latest: dict[str, Tensor] = {}

    def get(self, name: str, *shape: int) -> Tensor:
        """The buffer of this name, grown if it is too small; single precision, and its content is undefined."""
        latest = self._latest.get(name)
        if latest is None or latest.shape != shape:
            latest = self._latest[name] = self._part(name, prod(shape)).view(shape)
        return latest

    def _part(self, name: str, size: int) -> Tensor:
        memory = self._memory.get(name)
        if memory is None or memory.numel() < size:
            memory = self._memory[name] = torch.empty(size, dtype=torch.float32)
        return memory[:size]
