"""A value of a wrong kind is refused with a sentence: AttributeError and TypeError say nothing to a user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import deniable as dn
from deniable.checks import RefusedError

RELEASE = "mechanism must be a description of a release"
CALLS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    (RELEASE, dn.privacy_loss),
    (RELEASE, dn.explain),
    (RELEASE, dn.compose),
    (RELEASE, lambda wrong: dn.Subsampled(wrong, 0.1)),
    (RELEASE, lambda wrong: dn.RepeatAndSelect(wrong, 3.0)),
    (RELEASE, lambda wrong: dn.calibrate(lambda noise: wrong, dn.Advantage(0.1))),
    (RELEASE, lambda wrong: dn.Budget(dn.Advantage(0.1)).spend(wrong)),
    ("sampling must be a description of batches", lambda wrong: dn.Sampled(dn.Gaussian(1.0), wrong)),
    ("mechanism_of must be a function", lambda wrong: dn.calibrate(wrong, dn.Advantage(0.1))),
    ("family must be a function", lambda wrong: dn.choose(wrong, dn.Advantage(0.1))),
    ("promise must be one of the table of scores", lambda wrong: dn.calibrate(dn.Gaussian, wrong)),
    ("promise must be one of the table of scores", lambda wrong: dn.choose(dn.Gaussian, wrong)),
    ("promise must be one of the table of scores", dn.Budget),
    ("loss must be a privacy loss", dn.fit_gaussian),
    ("loss must be a privacy loss", lambda wrong: dn.singling_out(wrong, 0.1, 10)),
    ("scores must be the name of a file", lambda wrong: dn.verdict(wrong, 1.0, 1e-5)),
    ("paper must be one of", dn.reproduce),
    ("data must be the name of a file", lambda wrong: dn.audit(wrong, belief=0.9)),
    ("members must be records", lambda wrong: dn.attack(None, wrong, wrong)),
    ("result must be what a command found", dn.log_to_mlflow),
)


@pytest.mark.parametrize(("says", "call"), CALLS)
def test_a_wrong_kind_is_refused_with_a_sentence(says: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(RefusedError, match=says):
        call(0.25)


def test_what_holds_a_release_is_told_to_give_it() -> None:
    training = dn.Training(1.0, 0.01, 10, dn.Adjacency.ADD_REMOVE)
    with pytest.raises(RefusedError, match=r"give its \.mechanism"):
        dn.privacy_loss(training)  # type: ignore[arg-type]


def test_dir_lists_what_is_public_alone() -> None:
    assert not {"Any", "annotations", "import_module", "TYPE_CHECKING"} & set(dir(dn))
