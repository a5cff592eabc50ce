"""Campaigns: the noise they choose, what they refuse, and that a resumed one equals an uninterrupted one."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plans import planned
from torch import nn

import deniable as dn
from deniable.campaigns.audit import judge
from deniable.campaigns.campaign import play
from deniable.engines import Local
from deniable.evidence.measured import Trials
from deniable.formatting import percent_at_most
from deniable.promises import Belief, Epsilon, audited_promise, claimed_scores
from deniable.results.base import plain
from deniable.results.reading import schema_name
from deniable.store import FILE, Store, StoreError

TINY: dict[str, Any] = {"trials": 20, "steps": 3, "records": 20, "trials_per_block": 5}
TIMES = ("seconds", "trials_per_second", "finished")


def with_batch_norm() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 10))


def too_narrow() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3))


def too_wide() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(65, 10))


def same(first: Trials, second: Trials) -> bool:
    return all(getattr(first, f.name).tobytes() == getattr(second, f.name).tobytes() for f in fields(Trials))


def test_dn_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dn.nothing  # noqa: B018


def test_the_record_has_the_schema() -> None:
    document = dn.audit("digits", noise=5, processes=1, **TINY)
    document.to_json()
    assert schema_name(type(document)) == "deniable/audit/2"
    assert document.measured.trials == 20
    assert plain(document.measured.epsilon).keys() >= {"sensitivity", "belief", "advantage", "lower_bound"}
    assert plain(document.claimed) == {"belief": None, "advantage": None, "epsilon": None, "delta": 1 / 20}
    assert document.verdict in ("consistent", "cannot judge")
    assert not any("Local" in note for note in document.notes)


@pytest.mark.parametrize(
    "settings",
    [
        {"adjacency": "add-remove"},
        {"rate": 0.5},
        {"optimizer": "adam"},
        {"advantage": 0.2, "noise": None},
        {"epsilon": 2.0, "noise": None, "calibration": "rdp"},
    ],
)
def test_every_kind_of_campaign_runs(settings: dict[str, Any]) -> None:
    document = dn.audit("digits", processes=1, **{"noise": 5.0, **TINY, **settings})
    assert document.exact.advantage > 0
    assert np.isfinite(document.measured.advantage.value)


# seed_numbers.json: advantage .2562 with RDP-calibrated noise at belief .9, delta .01 (erratum 6)
def test_calibration_as_in_the_seeds() -> None:
    settings: dict[str, Any] = {**TINY, "steps": 30, "sensitivity": "local", "trials": 5}
    document = dn.audit("digits", belief=0.9, delta=0.01, calibration="rdp", processes=1, **settings)
    assert document.exact.advantage == pytest.approx(0.2562, abs=5e-5)
    exact = dn.audit("digits", belief=0.9, delta=0.01, processes=1, **settings)
    assert exact.exact.belief == pytest.approx(0.9, abs=1e-6)
    assert exact.input.noise < document.input.noise


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "exactly one of belief, advantage, epsilon, noise, got none"),
        ({"belief": 0.9, "noise": 1}, "got belief and noise"),
        ({"belief": 0.5}, "belief must be above 0.5"),
        ({"noise": 0}, "noise must be a finite number > 0"),
        ({"noise": 1, "delta": 0}, "delta must be"),
        ({"noise": 1, "trials": 0}, "trials must be a whole number >= 1"),
        ({"noise": 1, "records": 1797}, "records must be at most 1796 for replace"),
        ({"noise": 1, "adjacency": "zero-out"}, "adjacency must be replace or add-remove"),
        ({"noise": 1, "measure": "smell"}, "measure must be one of"),
        ({"noise": 1, "model": "smell"}, "model must be one of"),
        ({"noise": 1, "model": with_batch_norm}, "use nn.GroupNorm instead"),
        ({"noise": 1, "model": too_narrow}, "each of the 10 classes"),
        ({"noise": 1, "model": too_wide}, r"model cannot take records of shape \(1, 8, 8\)"),
        ({"advantage": 0.2, "calibration": "rdp"}, "calibration 'rdp' is for a belief or epsilon"),
        ({"belief": 0.9, "calibration": "guess"}, "calibration must be one of exact, rdp"),
        ({"noise": 1, "resume": True}, "resume needs out"),
    ],
)
def test_refusals(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dn.audit("digits", **{**TINY, **settings})


def test_data_of_ones_own_get_a_usual_model(tmp_path: Path) -> None:
    np.savez(tmp_path / "own.npz", X=np.eye(30, 64), y=np.arange(30) % 10)
    usual = dn.audit(tmp_path / "own.npz", noise=1, processes=1, **TINY)
    assert any("dense" in note for note in usual.notes)
    document = dn.audit(tmp_path / "own.npz", noise=1, model="digits", processes=1, **TINY)
    assert document.input.measure == "hamming"


def test_more_trials_than_blocks_hold_evenly() -> None:
    plan = planned("digits", noise=5, **{**TINY, "trials": 7})
    assert plan.blocks == 2
    whole = planned("digits", noise=5, **{**TINY, "trials": 10})
    assert len(play(plan, engine=Local(1))) == 7
    assert same(
        play(plan, engine=Local(1)),
        Trials(*(getattr(play(whole, engine=Local(1)), f.name)[:7] for f in fields(Trials))),
    )


def test_progress_counts_what_is_there_already(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    plan = planned("digits", noise=5, **TINY)
    with Store(tmp_path, plan.settings) as store:
        play(plan, store, engine=Local(1), progress=lambda done, total: heard.append((done, total)))
        assert heard == [(0, 20), (5, 20), (10, 20), (15, 20), (20, 20)]
        heard.clear()
        play(plan, store, engine=Local(1), progress=lambda done, total: heard.append((done, total)))
        assert heard == [(20, 20)]


def test_an_interrupted_campaign_ends_the_same(tmp_path: Path) -> None:
    plan = planned("digits", noise=5, **TINY)
    uninterrupted = play(plan, engine=Local(1))

    def interrupt(done: int, _: int) -> None:
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Store(tmp_path, plan.settings) as store:
        play(plan, store, engine=Local(1), progress=interrupt)
    with Store(tmp_path, plan.settings, resume=True) as store:
        assert store.finished_blocks() == [0, 1]
        assert same(play(plan, store, engine=Local(1)), uninterrupted)


def test_a_changed_setting_is_refused_and_named(tmp_path: Path) -> None:
    dn.audit("digits", noise=5, processes=1, out=tmp_path, **TINY)
    with pytest.raises(StoreError, match=r"clip was 3\.0, now 2\.0"):
        dn.audit("digits", noise=5, processes=1, out=tmp_path, resume=True, clip=2.0, **TINY)
    assert dn.audit("digits", noise=5.0, processes=1, out=tmp_path, resume=True, clip=3, **TINY).input.clip == 3.0
    with pytest.raises(StoreError, match="trials was 20, now 40"):
        dn.audit("digits", noise=5, processes=1, out=tmp_path, resume=True, **{**TINY, "trials": 40})


def campaign(place: Path) -> list[str]:
    settings = "--noise 5 --trials 600 --steps 20 --records 50 --processes 2 --json"
    program = [sys.executable, "-c", "from deniable.cli import main; main()"]
    return [*program, "audit", "digits", *settings.split(), "--out", str(place)]


def finished(place: Path) -> int:
    """Finished blocks of a campaign that may still run: its size tells, since it is locked."""
    file = place / FILE
    return file.stat().st_size // (100 * (3 * 8 * 20 + 1)) if file.exists() else 0


def test_kill_9_and_resume_gives_the_same_bytes(tmp_path: Path) -> None:
    plan = planned("digits", noise=5, trials=600, steps=20, records=50)
    uninterrupted = play(plan, engine=Local(1))
    place = tmp_path / "campaign"
    with subprocess.Popen(campaign(place), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while finished(place) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL, "the campaign ended before it could be killed"
    with Store(place, plan.settings, resume=True) as store:
        before = len(store.finished_blocks())
    assert 0 < before < plan.blocks
    settings: dict[str, Any] = {"noise": 5, "trials": 600, "steps": 20, "records": 50, "processes": 1}
    resumed = dn.audit("digits", out=place, resume=True, **settings)
    with Store(place, plan.settings, resume=True) as store:
        assert same(play(plan, store), uninterrupted)
    document = judge(plan, uninterrupted)
    assert resumed.replace(**dict.fromkeys(TIMES)) == document.replace(**dict.fromkeys(TIMES))


def test_promises_say_what_they_imply() -> None:
    assert claimed_scores(Belief(0.9, 0.01), 0.01).epsilon == pytest.approx(np.log(9))
    assert claimed_scores(Epsilon(2.0, 0.01), 0.01).belief is None
    with pytest.raises(
        ValueError, match="name the promise: exactly one of belief, advantage, epsilon, noise, got hope"
    ):
        audited_promise({"hope": 0.9}, 0.01)


@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_a_private_training_says_how_loose_its_bound_is(sensitivity: str) -> None:
    document = dn.audit("digits", noise=5, sensitivity=sensitivity, processes=1, **TINY)
    said = [note for note in document.notes if note.startswith("Relative to what")]
    assert bool(said) == (sensitivity == "global")
    share = document.measured.epsilon.sensitivity / document.exact.epsilon
    assert 0 < share <= 1 + 1e-9
    assert all(f"{percent_at_most(share, 2)} of the" in note for note in said)
