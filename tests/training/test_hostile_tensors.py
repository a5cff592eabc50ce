"""What the kernels must never do: hide a NaN, read or write beyond a tensor, or draw from a generator in turns."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from deniable.training import Neighbours, TrainingSettings, kernels, run_block
from deniable.training.kernels import Buffers


def pooled() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 3 * 3, 3))


def odd() -> nn.Sequential:
    """Seven filters, which no vector of eight holds."""
    return nn.Sequential(nn.Conv2d(1, 7, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(7 * 3 * 3, 3))


def tiled() -> nn.Sequential:
    """A second convolution by Winograd's tiles."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 1), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 3 * 3, 3)
    )


def plain() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 6 * 6, 3))


def unrectified() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 9, 3), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9 * 3 * 3, 3))


def normalised() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.GroupNorm(4, 16), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 3)
    )


def rows() -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3))


Factory = Callable[[], nn.Sequential]
NETWORKS: list[Factory] = [pooled, odd, tiled, plain, unrectified, normalised, rows]


def images(dtype: torch.dtype = torch.float32) -> Neighbours:
    """Twelve of 8 x 8 pixels, built directly."""
    draw = torch.Generator().manual_seed(0)
    records = torch.rand(12, 1, 8, 8, generator=draw, dtype=torch.float32).to(dtype)
    return Neighbours(records, torch.arange(12) % 3, 2, torch.ones(1, 8, 8, dtype=dtype), torch.tensor(1))


def settings(model: Factory) -> TrainingSettings:
    return TrainingSettings(model, noise=1.0, steps=2, trials_per_block=3, adjacency="replace")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("network", NETWORKS)
def test_one_nan_weight_is_a_training_that_diverged(
    monkeypatch: pytest.MonkeyPatch, network: Factory, place: str, compiled: bool
) -> None:
    def broken() -> nn.Sequential:
        model = network()
        weights = model[1 if network in (rows, tiled) else 0].weight
        number = {"first": 0, "middle": weights.numel() // 2, "last": weights.numel() - 1}[place]
        with torch.no_grad():
            weights.view(-1)[number] = torch.nan
        return model

    if not compiled:
        monkeypatch.setattr(kernels, "KERNELS", None)
    with pytest.raises(FloatingPointError, match="diverged"):
        run_block(settings(broken), images(), 1, 0)


@pytest.mark.parametrize("network", [pooled, rows])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_never_reaches_the_kernels(
    monkeypatch: pytest.MonkeyPatch, network: Factory, dtype: torch.dtype
) -> None:
    def call(name: str, *arguments: object) -> None:
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(kernels, "call", call)
    try:
        result = run_block(settings(lambda: network().to(dtype)), images(dtype), 1, 0)
    except (RuntimeError, ValueError, NotImplementedError):
        return  # torch itself refuses
    assert result.sigma.shape == (3, 2)


def test_a_bfloat16_default_does_not_shrink_the_buffers() -> None:
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.bfloat16)
        assert Buffers().get("out", 4, 5).element_size() == 4
    finally:
        torch.set_default_dtype(before)


@pytest.mark.parametrize(
    "tensor",
    [torch.zeros(4, dtype=torch.float16), torch.zeros(4, dtype=torch.float64), torch.zeros(4, 4).T[:2]],
)
def test_other_tensors_are_refused_whatever_python_is_told(tensor: torch.Tensor) -> None:
    with pytest.raises(TypeError, match="a kernel needs contiguous tensors"):
        kernels._address(tensor)


def test_images_of_other_channels_are_refused() -> None:
    data = images()
    wide = Neighbours(data.records.expand(-1, 3, -1, -1), data.labels, 2, torch.ones(3, 8, 8), torch.tensor(1))
    with pytest.raises((ValueError, RuntimeError)):
        run_block(settings(pooled), wide, 1, 0)


def test_blocks_in_threads_are_those_of_one_thread() -> None:
    chosen, data = settings(rows), images()
    alone = [run_block(chosen, data, 1, number).log_likelihood_ratio for number in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda number: run_block(chosen, data, 1, number).log_likelihood_ratio, range(8)))
    assert all((one == other).all() for one, other in zip(alone, together, strict=True))


def test_a_stale_or_missing_library_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "VERSION", 999)
    library, state = kernels._library()
    assert library is None
    assert "of another version" in state or "not built" in state
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)
    assert kernels._library() == (None, "not built: trainings are slower; install GCC or Clang and deniable again")


def test_slower_trainings_are_told_of(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    kernels.tell_if_slow()
    monkeypatch.setattr(kernels, "KERNELS", None)
    monkeypatch.setattr(kernels, "STATE", "left out: torch is faster on this processor")
    kernels.tell_if_slow()
    assert not caplog.text  # nothing is to be done
    monkeypatch.setattr(kernels, "STATE", "not built: trainings are slower; install GCC or Clang and deniable again")
    kernels.tell_if_slow()
    assert "compiled kernels are not built: trainings are slower; install GCC or Clang" in caplog.text
