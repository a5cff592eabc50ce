"""Opacus's record of a training, and an accountant for Opacus: with the real one."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deniable as dn

torch = pytest.importorskip("torch", reason="Opacus needs torch")
pytest.importorskip("opacus", reason="the accountant's tests need the extra 'oracles'")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from opacus import PrivacyEngine
    from opacus.accountants import PRVAccountant, RDPAccountant
    from opacus.accountants.utils import get_noise_multiplier

    from deniable.opacus import DeniableAccountant, NotPoissonWarning

DELTA = 1e-5
RECORDS, BATCH = 640, 64


@pytest.fixture(autouse=True)
def _quiet_opacus() -> Iterator[None]:
    """Opacus warns of its random numbers and hooks, whatever the accountant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", NotPoissonWarning)
        yield


class Loop:
    """A usual Opacus loop."""

    def __init__(self, accountant: str = "deniable", noise: float = 1.1, **loader: Any) -> None:
        torch.manual_seed(7)
        self.engine = PrivacyEngine(accountant=accountant)
        model = torch.nn.Linear(4, 2)
        data = torch.utils.data.TensorDataset(torch.randn(RECORDS, 4), torch.zeros(RECORDS, dtype=torch.long))
        poisson = loader.pop("poisson_sampling", True)
        self.own_loader = torch.utils.data.DataLoader(data, batch_size=BATCH, **loader)
        self.model, self.optimizer, self.loader = self.engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=self.own_loader,
            noise_multiplier=noise,
            max_grad_norm=1.0,
            poisson_sampling=poisson,
        )

    def train(self, epochs: int = 1, loader: Any = None) -> Loop:
        for _ in range(epochs):
            for x, y in loader or self.loader:
                self.optimizer.zero_grad()
                torch.nn.functional.cross_entropy(self.model(x), y).backward()
                self.optimizer.step()
        return self


def poisson_loss(*stretches: tuple[float, float, int]) -> dn.PrivacyLoss:
    steps = [dn.Gaussian(noise).subsampled(rate).composed(count) for noise, rate, count in stretches]
    return dn.privacy_loss(dn.compose(*steps), "add-remove")


def test_a_training_with_poisson_batches_is_exact() -> None:
    accountant = Loop().train(2).engine.accountant
    assert accountant.history == [(1.1, 0.1, 20)]
    assert accountant.sampling == "poisson"
    expected = poisson_loss((1.1, 0.1, 20))
    assert accountant.get_epsilon(DELTA) == pytest.approx(float(expected.epsilon(DELTA)), rel=1e-9)
    assert accountant.advantage() == pytest.approx(float(expected.advantage()), rel=1e-9)
    assert accountant.belief(DELTA) == pytest.approx(float(expected.belief(DELTA)), rel=1e-9)
    result = accountant.explain(delta=DELTA)
    assert (result.input.noise, result.input.rate, result.input.steps) == (1.1, 0.1, 20)
    assert result.scores.epsilon == accountant.get_epsilon(DELTA)


def test_epsilon_lies_between_what_opacus_proves_and_what_it_prints() -> None:
    history = [(1.0, 0.01, 1000), (1.3, 0.02, 500)]
    ours, prv, rdp = DeniableAccountant(), PRVAccountant(), RDPAccountant()
    for accountant in (ours, prv, rdp):
        accountant.history = list(history)
    epsilon = ours.get_epsilon(DELTA)
    assert prv.get_epsilon(DELTA, eps_error=0.01) - 0.02 < epsilon <= prv.get_epsilon(DELTA, eps_error=0.01)
    assert epsilon < rdp.get_epsilon(DELTA)


def test_a_changing_noise_is_composed() -> None:
    loop = Loop().train()
    loop.optimizer.noise_multiplier = 2.0
    accountant = loop.train().engine.accountant
    assert accountant.history == [(1.1, 0.1, 10), (2.0, 0.1, 10)]
    assert len(accountant) == 2
    expected = float(poisson_loss((1.1, 0.1, 10), (2.0, 0.1, 10)).epsilon(DELTA))
    assert loop.engine.get_epsilon(DELTA) == pytest.approx(expected, rel=1e-9)


def test_a_checkpoint_keeps_everything(tmp_path: Path) -> None:
    first = Loop().train()
    spent = first.engine.get_epsilon(DELTA)
    first.engine.save_checkpoint(path=tmp_path / "point.pt", module=first.model, optimizer=first.optimizer)
    later = Loop()
    later.engine.load_checkpoint(path=tmp_path / "point.pt", module=later.model, optimizer=later.optimizer)
    assert later.engine.accountant.history == [(1.1, 0.1, 10)]
    assert later.engine.get_epsilon(DELTA) == spent
    assert later.train().engine.accountant.history == [(1.1, 0.1, 20)]
    assert later.engine.get_epsilon(DELTA) > spent


def test_a_checkpoint_keeps_how_batches_are_drawn() -> None:
    first, second = DeniableAccountant(), DeniableAccountant()
    first.history, first.sampling = [(1.0, 0.1, 10)], "shuffled"
    second.load_state_dict(first.state_dict())
    assert second.sampling == "shuffled"
    assert second.get_epsilon(DELTA) == first.get_epsilon(DELTA)


@pytest.mark.parametrize(
    "state", [{"history": [(1.0, 2.0, 3)]}, {"history": "x"}, {"history": [(1.0, 0.1, 1)], "sampling": "magic"}]
)
def test_a_damaged_checkpoint_is_refused(state: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        DeniableAccountant().load_state_dict({"mechanism": "deniable", **state})


def test_the_noise_that_opacus_finds_keeps_the_promise_barely() -> None:
    asked = {"target_epsilon": 2.0, "target_delta": DELTA, "sample_rate": 0.01, "steps": 1000}
    noise = get_noise_multiplier(**asked, accountant="deniable", epsilon_tolerance=1e-4)
    assert 2 - 1e-4 <= poisson_loss((noise, 0.01, 1000)).epsilon(DELTA) <= 2
    assert noise < get_noise_multiplier(**asked, accountant="prv") < get_noise_multiplier(**asked, accountant="rdp")


@pytest.mark.parametrize("shuffle", [True, False])
def test_whoever_passes_over_the_records_hears_first_why_the_poisson_value_is_not_theirs(shuffle: bool) -> None:
    with pytest.warns(NotPoissonWarning, match=r"not Poisson samples.*nothing better than no sampling"):
        loop = Loop(poisson_sampling=False, shuffle=shuffle)
    accountant = loop.train(3).engine.accountant
    assert accountant.sampling == "shuffled"
    safe = dn.privacy_loss(dn.Gaussian(1.1).subsampled(dn.Shuffled(10)).composed(3), "zero-out")
    assert accountant.get_epsilon(DELTA) == pytest.approx(float(safe.epsilon(DELTA)), rel=1e-9)
    assert accountant.get_epsilon(DELTA) > 2 * float(poisson_loss((1.1, 0.1, 30)).epsilon(DELTA))
    result = accountant.explain(delta=DELTA)
    assert result.scores.epsilon_at_least is not None
    assert "not theirs" in " ".join(result.notes)


def test_whoever_draws_in_an_unknown_way_has_no_sampling() -> None:
    sampler = torch.utils.data.WeightedRandomSampler([1.0] * RECORDS, RECORDS)
    with pytest.warns(NotPoissonWarning, match="Nothing is known"):
        loop = Loop(poisson_sampling=False, sampler=sampler)
    accountant = loop.train().engine.accountant
    expected = dn.privacy_loss(dn.Gaussian(1.1).composed(10)).epsilon(DELTA)
    assert accountant.get_epsilon(DELTA) == pytest.approx(float(expected), rel=1e-9)


def test_whoever_trains_with_another_loader_than_the_private_one_is_found_out() -> None:
    """The sizes of batches tell it; a checkpoint keeps them."""
    loop = Loop()
    loop.train(2, loop.own_loader)
    later = DeniableAccountant()
    later.load_state_dict(loop.engine.accountant.state_dict())
    for accountant in (loop.engine.accountant, later):
        with pytest.warns(NotPoissonWarning, match="not Poisson samples"):
            epsilon = accountant.get_epsilon(DELTA)
        assert epsilon > 3 * float(poisson_loss((1.1, 0.1, 20)).epsilon(DELTA))
        accountant.sampling = "shuffled"
        assert accountant.get_epsilon(DELTA) < epsilon


def test_sizes_of_poisson_batches_are_no_alarm() -> None:
    """Also where batches are so small that many have the same size."""
    for expected, rate in ((1, 0.01), (3, 0.5), (64, 0.1), (1, 1.0)):
        draws = torch.distributions.Binomial(int(expected / rate), torch.tensor(rate)).sample((2000,))
        accountant = DeniableAccountant()
        accountant.history = [(1.0, rate, 2000)]
        accountant._expected_size = expected
        accountant._sizes.update(int(size) for size in draws)
        accountant._judge_sizes()
        assert accountant.sampling == "poisson"


def test_without_noise_epsilon_is_infinite_and_the_advantage_that_of_being_drawn() -> None:
    accountant = DeniableAccountant()
    assert accountant.get_epsilon(DELTA) == 0
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(DELTA) == float("inf")
    assert accountant.advantage() == pytest.approx(1 - 0.9**2, rel=1e-9)
