"""What a plan costs, and the plan as a training: the frontier's own figures, and programs that run."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

import deniable as dn
from deniable.answers.explain import explain_input
from deniable.answers.parse import parse_release
from deniable.results.base import plain
from deniable.results.frontier_result import FrontierResult
from deniable.utility.expected_quality import BUILT_IN, expect_quality, read_built_in
from deniable.web.exports import opacus_code, pytorch_code
from deniable.web.promise_costs import find_costs, read_chosen

ASKED: dict[str, Any] = {
    "promise": "belief",
    "delta": 1e-5,
    "prior": 0.5,
    "fpr": 0.01,
    "baseline": 0.01,
    "adjacency": "add-remove",
    "records_per_person": 1,
}


def piece_at(pieces: list[dict[str, Any]], bound: float) -> dict[str, Any]:
    """As the page finds it; there is exactly one."""
    (found,) = (
        piece
        for piece in pieces
        if (piece["above"] == bound == piece["up_to"])
        or (piece["above"] < bound and (piece["up_to"] is None or bound < piece["up_to"]))
    )
    return found


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_frontier_is_a_real_run(name: str) -> None:
    found = read_built_in(name)
    assert found.provenance is not None
    assert found.provenance.command is not None
    assert found.provenance.command.startswith(f"deniable frontier {name} ")
    assert len(found.levels) == 8
    means = [found.tuned_measure(level.quality).mean for level in found.levels]
    ends = [found.tuned_measure(level.quality) for level in found.levels]
    for strict, weak in pairwise(ends):
        assert strict.next_low <= weak.next_high  # monotone within its limits
    assert (
        found.tuned_measure(found.without_model).mean < max(means) <= found.tuned_measure(found.none.quality).next_high
    )
    for level in found.levels[::3]:
        setting = level.setting
        assert setting is not None
        release = dn.Gaussian(level.noise or 0.0).subsampled(setting.rate).composed(setting.steps)
        loss = dn.privacy_loss(release, "add-remove")
        assert float(loss.belief(found.input.delta)) <= (level.bound or 0.0) + 1e-12


@pytest.mark.parametrize("promise", ["belief", "epsilon", "success", "ppv"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_pieces_say_what_choose_says(promise: str, adjacency: str) -> None:
    from deniable.promises import SCORES  # noqa: PLC0415

    found = plain(find_costs({**ASKED, "promise": promise, "adjacency": adjacency, "frontier": "adult"}))
    frontier, entry = read_built_in("adult"), SCORES[promise]
    parameters = {name: ASKED[name] for name in entry.parameter_names()}
    bounds = [level["bound"] for level in found["levels"]]
    for bound in (0.6, 0.75, 0.97, bounds[3]):
        expected = expect_quality(frontier, entry(bound, **parameters), adjacency)
        assert piece_at(found["pieces"], bound)["expected"] == plain(expected)


def test_an_exchanged_record_costs_more_than_one_left_out() -> None:
    """The same noise protects less: a promise's level lies further out, and less accuracy may be left at it."""
    one, other = (
        find_costs({**ASKED, "adjacency": adjacency, "frontier": "adult"}) for adjacency in ("add-remove", "replace")
    )
    several = find_costs({**ASKED, "records_per_person": 3, "frontier": "adult"})
    for place, level in enumerate(one.levels):
        assert (level.bound or 0) < (other.levels[place].bound or 0)
        assert (level.bound or 0) < (several.levels[place].bound or 0)


def test_a_run_of_the_folder_and_a_document_are_taken(tmp_path: Path) -> None:
    document = plain(read_built_in("mnist"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "frontier.json").write_text(json.dumps(document))
    chosen = read_chosen("run:mine", tmp_path)
    assert chosen == read_chosen(document, None)
    own, known = find_costs({**ASKED, "frontier": chosen}), find_costs({**ASKED, "frontier": "mnist"})
    assert (own.pieces, own.levels, own.none) == (known.pieces, known.levels, known.none)
    assert "your own run" in own.title
    assert len(json.dumps(chosen)) < 20_000


@pytest.mark.parametrize("name", ["run:nowhere", "run:../secret", "run:linked", "no", "run:."])
def test_nothing_outside_of_the_folder_is_read(name: str, tmp_path: Path) -> None:
    runs, secret = tmp_path / "runs", tmp_path / "secret"
    runs.mkdir()
    secret.mkdir()
    (secret / "frontier.json").write_text(json.dumps(plain(read_built_in("mnist"))))
    (runs / "linked").symlink_to(secret)
    with pytest.raises(ValueError, match="frontier must be one of adult, mnist, a run of the folder or a document"):
        read_chosen(name, runs)


def test_the_api_tells_costs_and_refuses(api: httpx.Client) -> None:
    told = api.post("/api/costs", json={"frontier": "adult", "promise": "belief", "delta": 1e-5}).json()
    assert told == plain(find_costs({**ASKED, "frontier": "adult"}))
    for body, message in (
        ({"frontier": "nowhere", "promise": "belief"}, "frontier must be one of"),
        ({"frontier": {"schema": "deniable/frontier/1"}, "promise": "belief"}, "missing"),
        ({"frontier": {"schema": "other"}, "promise": "belief"}, "schema"),
        ({"frontier": "adult", "promise": "hope"}, "promise"),
        ({"frontier": "adult", "promise": "belief", "delta": 0.0}, "delta"),
    ):
        refused = api.post("/api/costs", json=body)
        assert refused.status_code == 422
        assert message in refused.json()["error"]["message"]


PLANS = [
    {"noise": 1.5, "records": 64, "batch": 16, "epochs": 2},
    {"noise": 0.7, "records": 90, "batch": 40, "epochs": 1},
]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("plan", PLANS)
def test_the_pytorch_program_trains(plan: dict[str, Any], adjacency: str) -> None:
    torch = pytest.importorskip("torch")
    result = explain_input(*parse_release(plan, adjacency))
    names: dict[str, Any] = {}
    exec(pytorch_code(result), names)
    factor = 2 if adjacency == "replace" else 1
    assert names["deviation"] == plan["noise"] * factor * names["clipping_norm"]
    assert (names["rate"], names["step"] + 1) == (result.input.rate, result.input.steps)
    fresh = torch.nn.Linear(20, 32).weight
    assert names["model"][0].weight.shape == fresh.shape
    assert all(torch.isfinite(value).all() for value in names["model"].state_dict().values())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("plan", PLANS)
def test_the_opacus_program_trains_and_keeps_the_promise(plan: dict[str, Any]) -> None:
    """Opacus's own rate is one over the number of batches, which is never above the plan's."""
    pytest.importorskip("opacus")
    result = explain_input(*parse_release(plan, "add-remove"))
    names: dict[str, Any] = {}
    exec(opacus_code(result), names)
    ((noise, rate, steps),) = names["engine"].accountant.history
    assert (noise, steps) == (plan["noise"], result.input.steps)
    assert rate <= (result.input.rate or 0) + 1e-12
    assert names["engine"].get_epsilon(1e-3) <= float(
        dn.privacy_loss(dn.Gaussian(noise).subsampled(result.input.rate or 1).composed(steps), "add-remove").epsilon(
            1e-3
        )
    )


@pytest.mark.parametrize(
    "values",
    [
        {"epsilon": 1.0},
        {"laplace": 2.0},
        {"noise": 1.0, "rate": 0.01, "steps": 10},
        {"noise": 1.0, "sampling": "allocation", "steps_per_epoch": 20, "epochs": 2},
    ],
)
def test_what_is_no_such_training_has_no_program(values: dict[str, Any]) -> None:
    result = explain_input(*parse_release(values, None))
    assert opacus_code(result) == pytorch_code(result) == ""


def test_the_built_in_documents_are_small_and_typed() -> None:
    for name in BUILT_IN:
        assert isinstance(read_built_in(name), FrontierResult)
        assert len(json.dumps(plain(read_built_in(name)))) < 100_000
