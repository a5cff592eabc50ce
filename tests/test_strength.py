"""The scale of strength follows its figures; deployments stand where the published figures put them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.answers.glossary import GLOSSARY
from deniable.answers.sentences import protection, signal
from deniable.answers.strength import ADVICE, DEPLOYMENTS, NAMES, compare_deployments, grade, weakness

SHARE = st.floats(0, 1)


@given(st.tuples(SHARE, SHARE, SHARE), st.tuples(SHARE, SHARE, SHARE))
def test_more_risk_is_never_a_better_name(one: tuple[float, ...], more: tuple[float, ...]) -> None:
    higher = [max(pair) for pair in zip(one, more, strict=True)]
    assert NAMES.index(grade(*higher)) >= NAMES.index(grade(*one))


@given(SHARE, SHARE, SHARE)
def test_what_is_weak_is_decided_in_one_place(advantage: float, belief: float, success: float) -> None:
    assert (grade(advantage, belief, success) in ("weak", "hardly any")) == (weakness(advantage, belief) is not None)


@pytest.mark.parametrize(
    ("belief", "name"), [(0.6, "strong"), (0.75, "strong"), (0.8, "moderate"), (0.95, "moderate"), (0.99, "weak")]
)
def test_a_chosen_promise_has_its_name(belief: float, name: str) -> None:
    """At 80 % the success decides: a guess that is right 1 time in 100 becomes right more than twice as often."""
    found = dn.choose(lambda z: dn.Gaussian(z).subsampled(0.005).composed(2000), dn.Belief(belief, 1e-5), "add-remove")
    assert found.strength is not None
    assert found.strength.name == name
    assert found.strength.advice == ADVICE[name]
    assert (protection(found) is not None) == (name in ("weak", "hardly any"))
    loss = dn.privacy_loss(dn.Gaussian(found.noise).subsampled(0.005).composed(2000), "add-remove")
    assert found.strength.success == float(loss.success(0.01))
    assert found.strength.belief == pytest.approx(belief, abs=1e-6)
    assert sum(f": {name} (" in reason for reason in found.strength.reasons) >= 1


def test_deployments_have_their_published_figures() -> None:
    found = {one.name.split()[0]: one for one in compare_deployments()}
    assert len(found) == len(DEPLOYMENTS)
    assert found["US"].right == "76.1 %"  # advantage .5205 (shared reference, mu 1.4143)
    assert (found["VaultGemma"].right, found["VaultGemma"].strength) == ("88.1 %", "weak")
    assert found["VaultGemma"].strength_if_gaussian == "moderate"
    assert found["Apple,"].right == "98.3 %"  # (1 + tanh(4 / 2)) / 2
    epsilon = dn.privacy_loss(dn.Gaussian(1 / 1.4143), "add-remove").epsilon(1e-10)
    assert float(epsilon) == pytest.approx(9.619, abs=1e-3)


def test_signal_to_noise_is_the_batch_over_the_noise() -> None:
    """A batch of 100 records beside noise of 2 C, and of 2 x 2 C where a record is exchanged."""
    release = dn.Gaussian(2.0).subsampled(0.01).composed(100)
    assert signal(dn.explain(release, "add-remove")) == ""  # the batch is not known

    def told(adjacency: str) -> str:
        from deniable.answers.explain import explain_input  # noqa: PLC0415
        from deniable.answers.parse import parse_release  # noqa: PLC0415

        return signal(
            explain_input(*parse_release({"noise": 2.0, "records": 10_000, "batch": 100, "epochs": 1}, adjacency))
        )

    assert "at most 50." in told("add-remove")
    assert "about 2,500 weights" in told("add-remove")
    assert "at most 25." in told("replace")


def test_the_glossary_is_sorted_and_short() -> None:
    assert list(GLOSSARY) == sorted(GLOSSARY, key=lambda word: word.lower().replace("-", ""))
    assert all(text.endswith(".") and len(text) < 200 for text in GLOSSARY.values())
