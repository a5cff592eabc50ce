"""Four words that mean one thing each, for trainings made of exchanged parts (hunt.recipes), and claims of recipes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import deniable as dn
from deniable.examination import AppliedStep, Records, Released, watch_opacus
from deniable.examination.claim import Adaptive, AutoS, Normalised, PerLayer, Recipe, RecipeTraining
from deniable.examination.trainer import watch_steps
from deniable.examination.trial_plan import looks
from deniable.training import Neighbours

sys.path.insert(0, str(Path(__file__).parents[2]))
from hunt import trainings
from hunt.recipes import CLIP, SIGMA, STEPS, VARIANTS, Training, network

LEAKS = [  # those outside the steps, then gradients and noise that another sentence used to explain
    ("start", "pretrained", 1.0),
    ("release", "clean last step", 1.0),
    ("release", "best by loss", 1.0),
    ("release", "losses", 1.0),
    ("divisor", "number of records", 0.4),
    ("divisor", "norm of data", 1.0),
    ("schedule", "rate from data", 1.0),
    ("schedule", "stops on loss", 0.4),
    ("sampler", "by loss", 0.4),
    ("sampler", "one secretly always", 0.4),
    ("clipping", "noise first", 1.0),
    ("clipping", "by value", 1.0),
    ("clipping", "some", 1.0),
    ("loss", "averaged", 0.4),
    ("loss", "centred", 1.0),
    ("noise", "cut", 0.4),
    ("noise", "divided", 0.4),
]


@pytest.mark.parametrize(("part", "name", "rate"), LEAKS)
def test_a_leak_is_violated_and_its_cause_named(part: str, name: str, rate: float) -> None:
    document = trainings.examine(Training(rate, ((part, name),)), 0)
    assert document.verdict == "violated"
    assert any(words in document.diagnostics.cause for words in VARIANTS[part][name].words)


AS_PRIVATE = [
    ("clipping", "auto-s", 1.0, "AutoS"),
    ("clipping", "layers share", 1.0, "PerLayer"),
    ("clipping", "half with its noise", 1.0, "half the claimed norm"),
    ("clipping", "noisy sum clipped", 1.0, "after its noise"),
    ("loss", "augmented", 1.0, "no further than claimed"),
    ("loss", "dropout", 0.4, "no further than claimed"),
    ("sampler", "one never", 1.0, "left out"),
    ("schedule", "fewer", 1.0, "4 steps"),
]


@pytest.mark.parametrize(("part", "name", "rate", "words"), AS_PRIVATE)
def test_what_is_as_private_is_another_recipe(part: str, name: str, rate: float, words: str) -> None:
    document = trainings.examine(Training(rate, ((part, name),)), 0)
    assert document.verdict == "other recipe", document.verdict_text
    assert words in document.diagnostics.cause


@pytest.mark.parametrize("name", ["adam", "signs"])
def test_other_optimizers_are_consistent(name: str) -> None:
    assert trainings.examine(Training(1.0, (("optimizer", name),)), 0).verdict == "consistent"


def test_what_was_not_shown_is_named() -> None:
    hidden = trainings.examine(Training(1.0, (("release", "hidden"),)), 0)
    assert hidden.verdict == "consistent"
    assert "Not examined" in hidden.verdict_text
    assert "final weights" in hidden.diagnostics.not_examined[0]
    assert trainings.examine(Training(), 0).diagnostics.not_examined == ()


def audited(training: Any, claimed: dn.Mechanism | None = None, **settings: Any) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    neighbours = Neighbours.of(1.2 * generator.normal(size=(20, 8)), generator.integers(0, 3, 20), 4)
    given = {"clip": CLIP, "adjacency": "add-remove", "model": network, "trials": 10, "processes": 1, "delta": 1e-3}
    claimed = claimed or dn.Gaussian(SIGMA).composed(STEPS)
    found: dict[str, Any] = dn.examine(neighbours, trainer=training, claimed=claimed, **(given | settings))
    return found


CLAIMS = [
    ("auto-s", Recipe(AutoS())),
    ("normalised", Recipe(Normalised())),
    ("layers share", Recipe(PerLayer((0.5, 0.5, 0.5, 0.5)))),
]


@pytest.mark.parametrize(("name", "recipe"), CLAIMS)
def test_a_claimed_recipe_is_consistent(name: str, recipe: Recipe) -> None:
    training = Training(1.0, (("clipping", name),))
    assert audited(training, recipe=recipe).verdict == "consistent"


@pytest.mark.parametrize("recipe", [claimed for _, claimed in CLAIMS])
def test_flat_clipping_under_another_claim_is_another_recipe_and_says_how_to_claim_it(recipe: Recipe) -> None:
    document = audited(Training(), recipe=recipe)
    assert document.verdict == "other recipe", document.verdict_text
    assert "flat clipping" in document.diagnostics.cause
    assert document.diagnostics.cause.endswith("recipe=Recipe()")


def test_no_clipping_under_another_claim_stays_a_leak() -> None:
    document = audited(Training(1.0, (("clipping", "none"),)), recipe=CLAIMS[0][1])
    assert document.verdict == "violated"
    assert "clip" in document.diagnostics.cause


def test_a_claimed_count_that_no_norm_follows_cannot_be_judged() -> None:
    enough = audited(Training(), recipe=Recipe(Adaptive(0.6 * SIGMA)))
    assert enough.verdict == "cannot judge", enough.verdict_text
    assert "claim recipe=Recipe()" in enough.diagnostics.cause
    assert audited(Training(1.0, (("noise", "half"),)), recipe=Recipe(Adaptive(0.6 * SIGMA))).verdict == "violated"


@dataclass(frozen=True)
class Changed:
    """A training whose steps are shown otherwise."""

    training: Training
    changes: tuple[tuple[str, Any], ...]
    """Fields of every step, and their values."""

    def __call__(self, records: Records, seed: int) -> Iterator[AppliedStep | Released]:
        for step in self.training(records, seed):
            given = {name: value(records) if callable(value) else value for name, value in self.changes}
            yield replace(step, **given) if isinstance(step, AppliedStep) else step


def test_sampled_batches_that_are_not_yielded_cannot_be_judged() -> None:
    claimed = dn.Gaussian(SIGMA).subsampled(0.4).composed(STEPS)
    document = audited(Changed(Training(0.4), (("batch", None),)), claimed)
    assert document.verdict == "cannot judge", document.verdict_text
    assert "batch=indices" in document.diagnostics.cause


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (lambda records: float(records.features.norm(dim=1).median()), "depends on the records"),
        (lambda records: float(len(records.labels)), "depends on the number of records"),
    ],
)
def test_the_number_of_records_is_named_where_it_alone_changes_a_value(value: Any, words: str) -> None:
    document = audited(Changed(Training(), (("public", lambda records: {"bound": value(records)}),)))
    assert document.verdict == "violated"
    assert words in document.diagnostics.cause


def trained_on_public_data() -> nn.Module:
    torch.manual_seed(0)
    model = network()
    model(torch.ones(1, 8)).sum().backward()
    return model


def test_the_models_function_may_compute_gradients() -> None:
    assert audited(Training(), model=trained_on_public_data).verdict == "consistent"


def test_a_claim_of_one_run_for_many_says_what_to_claim() -> None:
    claimed = dn.Training(noise=2.0, rate=0.5, steps=4, adjacency="add-remove")
    with pytest.raises(ValueError, match=r"dn\.Gaussian\(2\.0\)\.subsampled\(0\.5\)\.composed\(4\)"):
        dn.examine("digits", trainer=Training(), claimed=claimed)


def test_augmentations_can_be_claimed() -> None:
    recipe = Recipe(augmentations=4)
    document = audited(Training(1.0, (("loss", "augmented"),)), recipe=recipe)
    assert document.verdict == "consistent", document.verdict_text
    assert "augmented" in document.diagnostics.not_examined[0]
    broken = audited(Training(1.0, (("loss", "augmented"), ("clipping", "twice"))), recipe=recipe)
    assert broken.verdict == "violated"


def test_a_noise_schedule_can_be_claimed() -> None:
    """Half of the noise is less private than a schedule that ends at .6, and more private than one that ends lower."""
    falls = dn.compose(*(dn.Gaussian(1 - step / STEPS) for step in range(STEPS)))
    assert audited(Training(1.0, (("noise", "falls"),)), falls).verdict == "consistent"
    half = Training(1.0, (("noise", "half"),))
    assert audited(half, falls).verdict == "other recipe"
    falls_less = dn.compose(*(dn.Gaussian(1 - 0.5 * step / STEPS) for step in range(STEPS)))
    assert audited(half, falls_less).verdict == "violated"


def test_claims_that_do_not_fit_are_refused() -> None:
    gaussian = dn.Gaussian(1.0)
    with pytest.raises(ValueError, match="at most clip together"):
        RecipeTraining.from_mechanism(gaussian, 1.0, dn.Adjacency.REPLACE, Recipe(PerLayer((1.0, 1.0))))
    with pytest.raises(ValueError, match="count_noise must be above"):
        RecipeTraining.from_mechanism(gaussian, 1.0, dn.Adjacency.REPLACE, Recipe(Adaptive(0.5)))
    with pytest.raises(ValueError, match="one sampling rate"):
        RecipeTraining.from_mechanism(dn.compose(gaussian, gaussian.subsampled(0.5)), 1.0, dn.Adjacency.REPLACE)


def sparse(skip: bool) -> Any:
    """Poisson batches so small that many are empty; `skip`: no step is taken for them."""

    def train(records: Records, seed: int) -> Iterator[AppliedStep]:
        generator, (x, y) = torch.Generator().manual_seed(seed), records
        weights = 0.3 * torch.randn(27, generator=generator)
        for _ in range(12):
            drawn = (torch.rand(len(x), generator=generator) < 0.05).nonzero().flatten()
            if skip and not len(drawn):
                continue
            outer = torch.softmax(x @ weights[:24].view(3, 8).T + weights[24:], 1) - nn.functional.one_hot(y, 3)
            each = torch.cat([(outer[:, :, None] * x[:, None, :]).flatten(1), outer], 1)
            clipped = each * (1 / each.norm(dim=1, keepdim=True)).clamp(max=1.0)
            noisy = clipped[drawn].sum(0) + torch.randn(27, generator=generator)
            yield AppliedStep(weights, noisy, 1.0, drawn)
            weights = weights - 0.1 * noisy

    return train


def test_empty_batches_that_are_left_out_are_a_leak() -> None:
    claimed = dn.Gaussian(1.0).subsampled(0.05).composed(12)
    given: dict[str, Any] = {"model": lambda: nn.Linear(8, 3), "trials": 12}
    document = audited(sparse(skip=True), claimed, **given)
    assert document.verdict == "violated"
    assert "empty batch" in document.diagnostics.cause
    assert audited(sparse(skip=False), claimed, **given).verdict == "consistent"


def test_the_sensitivity_of_add_remove_trials_is_told() -> None:
    claimed = dn.Gaussian(1.0).subsampled(0.4).composed(STEPS)
    document = audited(Training(0.4), claimed)
    assert document.measured.epsilon.sensitivity is not None


def test_trials_end_early_where_a_leak_is_certain() -> None:
    document = audited(Training(1.0, (("noise", "half"),)), trials=200)
    assert document.measured.trials == 10
    assert "ended after 10 of 200" in document.notes[-1]
    assert looks(200) == [10, 40, 200]
    assert looks(12) == [12]


def test_final_weights_are_returned_yielded_or_read_from_the_model() -> None:
    parameters = {"weight": torch.zeros(1, 2)}
    step, last = AppliedStep([torch.zeros(1, 2)], [torch.ones(1, 2)]), torch.full((1, 2), 3.0)

    def returning() -> Iterator[AppliedStep]:
        yield step
        return Released([last])  # type: ignore[return-value]

    def in_place() -> Iterator[AppliedStep]:
        model = nn.Linear(2, 1, bias=False)
        yield AppliedStep(model, [torch.ones(1, 2)])
        with torch.no_grad():
            model.weight.copy_(last)

    for steps in (returning(), [step, Released([last])], in_place()):
        final = watch_steps(steps, parameters).final
        assert final is not None
        assert torch.equal(final[0], last)
    assert watch_steps([step], parameters).final is None


class Opacus:
    """A usual loop on one dense layer."""

    def __init__(self, batch: int = 2, passes: int = 1, **settings: Any) -> None:
        self.batch, self.passes, self.settings = batch, passes, settings

    def __call__(self, records: Records, seed: int) -> list[AppliedStep]:
        from opacus import PrivacyEngine  # noqa: PLC0415
        from torch.utils.data import DataLoader  # noqa: PLC0415

        torch.manual_seed(seed)
        model = nn.Linear(8, 3)
        given = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": True} | self.settings
        made = PrivacyEngine().make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.2),
            data_loader=DataLoader(records.dataset, batch_size=self.batch), criterion=nn.CrossEntropyLoss(), **given,
        )  # fmt: skip
        network, optimizer, criterion, loader = made if len(made) == 4 else (*made[:2], nn.CrossEntropyLoss(), made[2])
        steps = watch_opacus(optimizer, loader)
        for _ in range(self.passes):
            for features, labels in loader:
                optimizer.zero_grad()
                criterion(network(features), labels).backward()
                optimizer.step()
        return steps


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["ghost", "adaptive", "adaptive, claimed"])
def test_opacus_with_ghost_and_adaptive_clipping(kind: str) -> None:
    pytest.importorskip("opacus", reason="the adapter's test needs the extra 'oracles'")
    adaptive = {"clipping": "adaptive", "target_unclipped_quantile": 0.5, "clipbound_learning_rate": 0.3}
    adaptive |= {"max_clipbound": 5.0, "min_clipbound": 0.1, "unclipped_num_std": 2.0}
    loop = Opacus(grad_sample_mode="ghost") if kind == "ghost" else Opacus(batch=10, passes=3, **adaptive)
    step = dn.Gaussian(1.0).subsampled(0.1 if kind == "ghost" else 0.5)  # its adaptive kind fails on empty batches
    recipe = Recipe(Adaptive(2.0)) if kind == "adaptive, claimed" else None
    given: dict[str, Any] = {"adjacency": "zero-out", "model": lambda: nn.Linear(8, 3), "recipe": recipe}
    document = audited(loop, step.composed(10 if kind == "ghost" else 6), **given)
    assert document.verdict == ("other recipe" if kind == "adaptive" else "consistent"), document.verdict_text


@pytest.mark.filterwarnings("ignore")
def test_the_divisor_of_an_opacus_loop_tells_the_number_of_records() -> None:
    """Opacus divides by rate x records: no secret for zero-out neighbours, a leak for add-remove ones."""
    pytest.importorskip("opacus", reason="the adapter's test needs the extra 'oracles'")
    given: dict[str, Any] = {"model": lambda: nn.Linear(8, 3)}
    document = audited(Opacus(), dn.Gaussian(1.0).subsampled(0.1).composed(10), **given)
    assert document.verdict == "violated"
    assert "divisor depends on the number of records (2 and 1" in document.diagnostics.cause


def test_a_hunted_training_is_found_right() -> None:
    assert trainings.look(3) is None


def test_clipping_kinds_bound_every_record() -> None:
    norms: Tensor = torch.rand(50, 4, generator=torch.Generator().manual_seed(0)) * 3
    for clipping in (AutoS(), Normalised(), PerLayer((0.5, 0.5, 0.5, 0.5)), Recipe().clipping):
        lengths = (clipping.factors(norms, torch.tensor(1.0)) * norms).norm(dim=1)
        assert float(lengths.max()) <= 1 + 1e-5
