"""The watcher as a callback, of Lightning's trainer or of Hugging Face's: imported when they are asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from deniable.examination.recorded.batches.used_batches import UsedBatches
from deniable.examination.recorded.gradients.batch_gradients import BatchLoss
from deniable.examination.recorded.watch_run import RunWatcher, watch_run


class _FrameworkWatcher:
    """What both callbacks share: the settings of `watch_run`, and the run once it has begun."""

    def __init__(self, **settings: Any) -> None:
        self._settings = settings
        self._begun: RunWatcher | None = None

    @property
    def run(self) -> RunWatcher:
        """The watched run, for `dn.examine`."""
        if self._begun is None:
            raise ValueError("no training has begun: hand this callback to the trainer, and train")
        return self._begun

    def _begin(self, model: nn.Module, optimizer: Any, loader: Any, **settings: Any) -> None:
        if self._begun is not None:
            raise ValueError("this callback has watched a run already: make a new one for each")
        self._begun = watch_run(model, optimizer, loader, **{**self._settings, **settings})


class _LightningHooks(_FrameworkWatcher):
    """Hooks of a Lightning callback."""

    def __init__(self, loader: Any, **settings: Any) -> None:
        super().__init__(**settings)
        self._used = UsedBatches(loader)  # from now on: Lightning begins to draw before it calls on_train_start

    def on_train_start(self, trainer: Any, module: Any) -> None:
        if len(trainer.optimizers) != 1:
            raise ValueError(f"one optimizer is watched, and this module has {len(trainer.optimizers)}")
        self._begin(module, trainer.optimizers[0], self._used)

    def on_train_end(self, trainer: Any, module: Any) -> None:
        self.run.record()

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        if self._begun is not None:
            self._begun.__exit__(type(exception), exception, None)


class _TrainerHooks(_FrameworkWatcher):
    """Hooks of a Hugging Face callback."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        accumulated = args.gradient_accumulation_steps
        self._begin(given["model"], given["optimizer"], given["train_dataloader"], batches_per_step=accumulated)

    def on_train_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.run.record()


def watch_lightning(
    loader: Any,
    *,
    batch_loss: BatchLoss | None = None,
    clip: float | None = None,
    divisor: float | None = None,
    initial: Literal["public"] | None = None,
    budget: float | str = 0.1,
    path: Path | str | None = None,
) -> Any:
    """A Lightning callback that watches one `fit`: ``Trainer(callbacks=[watch])``, then ``dn.examine(watch.run, ...)``.

    Args:
        loader: The `DataLoader` that `fit` gets.
        batch_loss: A function (module, batch) -> loss; the module's own `training_step` without it.
        clip: As in `watch_run`.
        divisor: As in `watch_run`.
        initial: As in `watch_run`.
        budget: As in `watch_run`.
        path: As in `watch_run`.

    Returns:
        The callback; its `run` is examined afterwards.

    Examples:
        >>> import deniable as dn
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> loader = DataLoader(TensorDataset(torch.randn(20, 30), torch.randint(0, 3, (20,))), batch_size=20)
        >>> watch = dn.watch_lightning(loader, clip=1.0, divisor=20)  # Trainer(callbacks=[watch]).fit(module, loader)
        >>> callable(watch.on_train_start)
        True
    """
    base = _first_of("Lightning", "lightning", "lightning.pytorch", "pytorch_lightning").Callback
    kind = type("WatchLightning", (_LightningHooks, base), {})
    return kind(
        loader,
        batch_loss=batch_loss or _training_step_loss,
        clip=clip,
        divisor=divisor,
        initial=initial,
        budget=budget,
        path=path,
    )


def watch_trainer(
    *,
    batch_loss: BatchLoss | None = None,
    clip: float | None = None,
    divisor: float | None = None,
    initial: Literal["public"] | None = None,
    budget: float | str = 0.1,
    path: Path | str | None = None,
) -> Any:
    """A callback that watches one training of Hugging Face's `Trainer`: ``Trainer(..., callbacks=[watch])``, then
    ``dn.examine(watch.run, ...)``.

    Args:
        batch_loss: A function (model, batch) -> loss; the loss that the model itself returns without it.
        clip: As in `watch_run`.
        divisor: As in `watch_run`.
        initial: As in `watch_run`.
        budget: As in `watch_run`.
        path: As in `watch_run`.

    Returns:
        The callback; its `run` is examined afterwards.

    Examples:
        >>> import deniable as dn
        >>> watch = dn.watch_trainer(clip=1.0, divisor=20)  # transformers.Trainer(..., callbacks=[watch]).train()
        >>> callable(watch.on_train_begin)
        True
    """
    base = _first_of("Hugging Face's Trainer", "transformers", "transformers").TrainerCallback
    kind = type("WatchTrainer", (_TrainerHooks, base), {})
    return kind(batch_loss=batch_loss, clip=clip, divisor=divisor, initial=initial, budget=budget, path=path)


def _first_of(what: str, extra: str, *packages: str) -> Any:
    """The package that the user has imported, or the first that is there: Lightning has two names."""
    for package in sorted(packages, key=lambda name: name not in sys.modules):
        try:
            return import_module(package)
        except ModuleNotFoundError:
            continue
    raise ValueError(f"{what} is not installed: pip install 'deniable[{extra}]'")


def _training_step_loss(module: Any, batch: Any) -> Tensor:
    """The loss that a Lightning module's own step computes; nothing is logged meanwhile."""
    with _silent(module):
        found = module.training_step(batch, 0)
    loss: Tensor = found["loss"] if isinstance(found, dict) else found
    return loss


@contextmanager
def _silent(module: Any) -> Iterator[None]:
    module.__dict__["log"] = module.__dict__["log_dict"] = lambda *_, **__: None
    try:
        yield
    finally:
        del module.__dict__["log"], module.__dict__["log_dict"]
