from __future__ import annotations

from dataclasses import replace
from math import sqrt

import naive
import numpy as np
import pytest
import torch
from games import neighbours
from scipy import stats

from deniable.training import engine, ensemble
from deniable.training.engine import Observation, run_block
from deniable.training.networks.losses import cross_entropy
from deniable.training.settings import TrainingSettings

BASE = TrainingSettings(
    "digits", noise=2.0, steps=4, clip=1.0, learning_rate=0.5, trials_per_block=5, adjacency="replace"
)
VARIANTS = [
    BASE,
    replace(BASE, adjacency="add-remove"),
    replace(BASE, sensitivity="local"),
    replace(BASE, optimizer="adam", learning_rate=0.01),
    replace(BASE, rate=0.2),
    replace(BASE, rate=0.7, adjacency="add-remove"),
]


class Copies:
    """All observations of a block, copied."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    def __call__(self, o: Observation) -> None:
        weights, sums = ([v.clone() for v in values] for values in (o.weights, o.noisy_sum))
        self.seen.append(Observation(o.step, weights, sums, o.sigma.clone(), o.batch.clone()))


def assert_observed_is_applied(settings: TrainingSettings) -> None:
    copies = Copies()
    run_block(settings, neighbours(), 7, 0, copies)
    for before, after in zip(copies.seen, copies.seen[1:], strict=False):
        for old, total, new in zip(before.weights, before.noisy_sum, after.weights, strict=True):
            torch.testing.assert_close(new, old - settings.learning_rate * total / 12)


def test_observed_is_applied() -> None:
    assert_observed_is_applied(BASE)


def test_fresh_noise_on_the_weights_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = ensemble.Ensemble.apply

    def apply_other(self: ensemble.Ensemble) -> None:
        self.add_noise(torch.ones(5))
        apply(self)

    monkeypatch.setattr(ensemble.Ensemble, "apply", apply_other)
    with pytest.raises(AssertionError, match="not close"):
        assert_observed_is_applied(BASE)


def test_adam_equals_torch() -> None:
    copies = Copies()
    settings = VARIANTS[3]
    run_block(settings, neighbours(), 7, 0, copies)
    parameters = [torch.nn.Parameter(w.clone()) for w in copies.seen[0].weights]
    adam = torch.optim.Adam(parameters, lr=settings.learning_rate)
    for seen, after in zip(copies.seen, copies.seen[1:], strict=False):
        for parameter, total in zip(parameters, seen.noisy_sum, strict=True):
            parameter.grad = total / 12
        adam.step()
        for parameter, weight in zip(parameters, after.weights, strict=True):
            torch.testing.assert_close(parameter.data, weight)


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_noise_is_what_stands_between_sum_and_observation(settings: TrainingSettings) -> None:
    """Observed minus the naive clipped sum of the trained data set has the stated standard deviation, no more."""
    copies, data = Copies(), neighbours()
    result = run_block(settings, data, 7, 0, copies)
    records, labels, differing = data.columns(settings.adjacency)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    standard = []
    for seen in copies.seen:
        for t in range(settings.trials_per_block):
            mine = [w[t] for w in seen.weights]
            gradients = naive.clipped(
                naive.example_gradients(model, cross_entropy, mine, records, labels), settings.clip
            )
            assert set(seen.batch[t, -differing:].tolist()) <= {0.0, 1.0}
            total = seen.batch[t].double() @ gradients
            standard.append((naive.flat(seen.noisy_sum, t) - total) / seen.sigma[t])
    assert stats.kstest(torch.cat(standard).numpy(), "norm").pvalue > 1e-3
    members = torch.stack([s.batch[:, -differing:] for s in copies.seen])
    on_d = torch.from_numpy(result.trained_on_d)
    assert bool((members[:, ~on_d, 0] == 0).all())  # x is never in D'
    assert settings.rate < 1 or bool((members[:, on_d, 0] == 1).all())
    if differing == 2:
        assert bool((members[:, on_d, 1] == 0).all())


def test_batches_are_poisson() -> None:
    copies = Copies()
    run_block(replace(BASE, rate=0.2, steps=50), neighbours(40), 7, 0, copies)
    counts = torch.stack([s.batch[:, :39].sum(1) for s in copies.seen]).flatten()
    assert abs(float(counts.mean()) - 39 * 0.2) < 4 * sqrt(39 * 0.16 / len(counts))
    assert 0.6 < float(counts.var()) / (39 * 0.16) < 1.5


def final_ratios(settings: TrainingSettings, blocks: int = 1) -> np.ndarray:
    results = [run_block(settings, neighbours(other=settings.adjacency == "replace"), 11, b) for b in range(blocks)]
    signs = np.concatenate([np.where(r.trained_on_d, 1, -1) for r in results])
    return signs * np.concatenate([r.log_likelihood_ratio[:, -1] for r in results])


def assert_ratio_is_gaussian(settings: TrainingSettings) -> None:
    """With noise scaled to the local sensitivity every step is N(mu^2/2, mu^2) with mu = 1/noise, whatever the data."""
    mu = sqrt(settings.steps) / settings.noise
    assert stats.kstest(final_ratios(settings), stats.norm(mu**2 / 2, mu).cdf).pvalue > 0.01


LOCAL = replace(BASE, sensitivity="local", steps=9, noise=3.0, trials_per_block=600)


@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
def test_ratio_at_local_sensitivity_is_gaussian(adjacency: str) -> None:
    assert_ratio_is_gaussian(replace(LOCAL, adjacency=adjacency))


def test_too_little_noise_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    ratio = engine.log_likelihood_ratio
    monkeypatch.setattr(engine, "log_likelihood_ratio", lambda g, p, m, s, r: ratio(g, p, m, 0.8 * s, r))
    with pytest.raises(AssertionError):
        assert_ratio_is_gaussian(LOCAL)


def test_noise_scaled_to_another_sensitivity_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    sensitivity = engine.local_sensitivity
    monkeypatch.setattr(engine, "local_sensitivity", lambda gram: 1.3 * sensitivity(gram))
    with pytest.raises(AssertionError):
        assert_ratio_is_gaussian(LOCAL)


def test_likelihood_ratio_is_calibrated_with_poisson_batches() -> None:
    """E[exp(-ratio) | D] = 1 for a true likelihood ratio, and exp(ratio) averages to 1 under D'."""
    for adjacency in ("replace", "add-remove"):
        ratios = final_ratios(replace(LOCAL, rate=0.4, adjacency=adjacency, noise=2.0))
        weights = np.exp(-ratios)
        assert abs(weights.mean() - 1) < 4 * weights.std() / sqrt(len(weights))
        assert ratios.mean() > 0


def test_both_data_sets_are_trained() -> None:
    result = run_block(replace(BASE, trials_per_block=400, steps=1), neighbours(), 3, 0)
    assert 140 < result.trained_on_d.sum() < 260


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_block_depends_on_its_number_alone(settings: TrainingSettings) -> None:
    data = neighbours()
    first, other = run_block(settings, data, 7, 3), run_block(settings, data, 7, 4)
    torch.manual_seed(99)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    again = run_block(settings, data, 7, 3)
    assert torch.get_num_threads() == 2
    torch.set_num_threads(threads)
    assert first.log_likelihood_ratio.tobytes() == again.log_likelihood_ratio.tobytes()
    assert first.local_sensitivity.tobytes() == again.local_sensitivity.tobytes()
    assert not np.array_equal(first.log_likelihood_ratio, other.log_likelihood_ratio)
    assert not np.array_equal(first.log_likelihood_ratio, run_block(settings, data, 8, 3).log_likelihood_ratio)


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    run_block(BASE, neighbours(), 7, 3)
    assert torch.equal(torch.rand(3), expected)


def test_every_trial_has_its_own_initial_weights() -> None:
    copies = Copies()
    run_block(BASE, neighbours(), 7, 0, copies)
    assert len({float(w) for w in copies.seen[0].weights[0][:, 0, 0]}) == BASE.trials_per_block


def test_sensitivities_respect_their_bounds() -> None:
    for settings in VARIANTS:
        result = run_block(settings, neighbours(), 7, 0)
        assert result.local_sensitivity.max() <= settings.global_sensitivity * (1 + 1e-5)
        expected = result.local_sensitivity if settings.sensitivity == "local" else settings.global_sensitivity
        np.testing.assert_allclose(result.sigma, settings.noise * expected)


def test_equal_records_say_nothing() -> None:
    data = neighbours()
    same = replace(data, other_record=data.records[3], other_label=data.labels[3])
    result = run_block(replace(BASE, sensitivity="local"), same, 7, 0)
    assert result.local_sensitivity.max() == 0
    assert result.log_likelihood_ratio.tolist() == np.zeros((5, 4)).tolist()


def test_divergence_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(FloatingPointError, match="learning_rate"):
        run_block(replace(BASE, learning_rate=1e38), neighbours(), 7, 0)


def test_accuracy_rises_with_training() -> None:
    result = run_block(replace(BASE, noise=1e-3, steps=60, learning_rate=2.0), neighbours(), 7, 0)
    assert result.accuracy is not None
    assert result.accuracy.min() > 0.8
