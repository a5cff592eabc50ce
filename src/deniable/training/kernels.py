"""The compiled kernels (the C files here), if they were built: how tensors are handed to them."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from typing import Any

from torch import Tensor, float64

__all__ = ["KERNELS", "call", "sizes"]


def _library() -> ctypes.CDLL | None:
    spec = find_spec("deniable.training._kernels")
    return ctypes.CDLL(spec.origin) if spec is not None and spec.origin is not None else None


KERNELS = _library()


def sizes(*values: int) -> Any:
    """A kernel's sizes, in the order in which its C file names them."""
    return (ctypes.c_long * len(values))(*values)


def call(name: str, *arguments: Tensor | Any) -> None:
    """Call a kernel; tensors, contiguous and of single precision or whole, become addresses and None becomes NULL."""
    assert KERNELS is not None
    if getattr(KERNELS, name)(*map(_address, arguments)):
        raise MemoryError(f"no memory is left for the kernel {name}: lower trials_per_block")


def _address(value: Tensor | Any) -> Any:
    if isinstance(value, Tensor):
        assert value.is_contiguous()
        assert value.dtype != float64
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_void_p(None) if value is None else value
