"""Workers on a shared disk: claims, leases without a common clock, kills, merging, and the commands."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chaos import start_worker
from work import refuse_three, square, squares

import deniable as dn
from deniable.cli import main
from deniable.cli.planning import plan_again
from deniable.engines import Campaign, Local, play_missing
from deniable.engines import beside as claiming
from deniable.engines.beside import Claims, find_claimed
from deniable.engines.merge import merge_stores
from deniable.engines.planned import Planned
from deniable.engines.status import read_status
from deniable.engines.worker import CERTAIN, work_in
from deniable.store import SharedBlocks, Store, StoreError, settings_digest
from deniable.web.listed_runs import list_runs


def kept(place: Path, blocks: int) -> list[list[int]]:
    """What a driver makes of a directory that workers left."""
    with Store(place, squares(blocks).settings, resume=True) as store:
        found = play_missing(Campaign(squares(blocks).settings, blocks, squares(1).kind, pytest.fail), Local(1), store)
    return [block.square.tolist() for block in found]


def expected(blocks: int) -> list[list[int]]:
    return [square(number).square.tolist() for number in range(blocks)]


def test_a_block_is_claimed_once(tmp_path: Path) -> None:
    one, two = Claims(tmp_path, "one"), Claims(tmp_path, "two")
    taken = [claims.claim(range(10)) for claims in (one, two) * 5]
    assert sorted(taken) == list(range(10))
    assert one.claim(range(10)) is two.claim(range(10)) is None
    one.close()
    assert sorted(two.claim(range(10)) for _ in range(5)) == sorted(taken[::2])
    two.close()


def test_files_of_the_file_system_itself_are_no_claims(tmp_path: Path) -> None:
    """NFS leaves .nfs... where an open file is removed; a worker ended with a traceback."""
    (tmp_path / "claims").mkdir()
    for name in (".nfs000000000012ab", ".DS_Store", "3.part", "notes"):
        (tmp_path / "claims" / name).touch()
    claims = Claims(tmp_path, "one")
    assert sorted(claims.claim(range(2)) for _ in range(2)) == [0, 1]
    assert find_claimed(tmp_path) == {0, 1}
    claims.close()
    assert work_in(tmp_path, squares(2)) == 2
    assert (read_status(tmp_path).finished, read_status(tmp_path).under_way) == (2, 0)


def test_a_lease_ends_by_the_observer_s_own_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(claiming, "monotonic", lambda: now[0])
    dead, other = Claims(tmp_path, "dead", 50), Claims(tmp_path, "other", 50)
    assert dead.claim([7]) == 7
    os.utime(next((tmp_path / "claims").iterdir()), (0, 0))  # the date of the file says nothing
    assert other.claim([7]) is None
    now[0] = 49.9
    assert other.claim([7]) is None
    dead._renewals += 1
    next((tmp_path / "claims").iterdir()).write_bytes(dead._words())  # it lives
    now[0] = 60
    assert other.claim([7]) is None
    now[0] = 109.9
    assert other.claim([7]) is None
    now[0] = 110
    assert other.claim([7]) == 7
    for claims in (dead, other):
        claims.close()


def test_one_worker_plays_all_and_a_second_finds_nothing_to_do(tmp_path: Path) -> None:
    told: list[int] = []
    assert work_in(tmp_path, squares(7), tell=told.append) == 7
    assert sorted(told) == list(range(7))
    assert work_in(tmp_path, squares(7, pytest.fail)) == 0
    assert kept(tmp_path, 7) == expected(7)
    state = read_status(tmp_path)
    assert (state.finished, state.under_way) == (7, 0)


def test_an_error_is_raised_and_the_block_given_back(tmp_path: Path) -> None:
    with pytest.raises(FloatingPointError, match="block 3"):
        work_in(tmp_path, squares(8, refuse_three))
    assert 3 not in {int(path.name.partition(".")[0]) for path in (tmp_path / "claims").iterdir()}
    work_in(tmp_path, squares(8), lease_seconds=0.2)
    assert kept(tmp_path, 8) == expected(8)


def test_a_damaged_block_is_played_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    work_in(tmp_path, squares(4))
    path = tmp_path / "blocks" / "0000002.block"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with Store(tmp_path, squares(4).settings, resume=True) as store:
        found = play_missing(squares(4), Local(1), store)
    assert "0000002.block is damaged" in caplog.text
    assert [block.square.tolist() for block in found] == expected(4)


def test_killed_workers_and_jumping_dates_change_nothing(tmp_path: Path) -> None:
    """A short share of benchmarks/scale/kills.py."""
    draw, blocks = random.Random(5), 24
    begin = partial(start_worker, tmp_path, blocks, 0.05, 0.5)
    workers = [begin() for _ in range(3)]
    for _ in range(2):
        end = time.monotonic() + 30
        wanted = len(SharedBlocks(tmp_path, b"").finished_blocks()) + 3
        while len(SharedBlocks(tmp_path, b"").finished_blocks()) < wanted and time.monotonic() < end:
            time.sleep(draw.uniform(0, 0.1))
        killed = workers.pop(draw.randrange(len(workers)))
        killed.kill()
        killed.wait()
        workers.append(begin())
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert kept(tmp_path, blocks) == expected(blocks)


def test_workers_end_when_the_answer_is_certain(tmp_path: Path) -> None:
    played = work_in(tmp_path, squares(1000), certain=lambda block: block.square[0] == 5)
    assert played == 6
    assert (tmp_path / CERTAIN).exists()
    assert work_in(tmp_path, squares(1000, pytest.fail)) == 0
    with Store(tmp_path, squares(1000).settings, resume=True) as store:
        found = play_missing(squares(1000), Local(1), store, certain=lambda block: block.square[0] == 5)
    assert [block.square.tolist() for block in found] == expected(6)


def test_stores_of_one_campaign_are_merged_and_others_refused(tmp_path: Path) -> None:
    places = [tmp_path / name for name in "abc"]
    for place, numbers in zip(places, ([0, 1, 2], [2, 3], [4]), strict=True):
        with Store(place, squares(6).settings) as store:
            for number in numbers:
                store.save(number, {"square": square(number).square})
    SharedBlocks(places[2], settings_digest(squares(6).settings)).save(5, {"square": square(5).square})
    assert merge_stores(places) == (6, None, 1)
    assert kept(places[0], 6) == expected(6)
    with Store(tmp_path / "other", squares(7).settings):
        pass
    with pytest.raises(StoreError, match=r"other holds another campaign than .*a: blocks was 6, now 7"):
        merge_stores([places[0], tmp_path / "other"])


def run_command(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(line))
    assert ended.value.code == 0, capsys.readouterr().err
    return capsys.readouterr().out


TINY = "--noise 5 --trials 30 --steps 2 --records 20 --model logistic --seed 3 --stop certain"


def test_a_planned_audit_is_that_of_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, place = partial(run_command, capsys=capsys), tmp_path / "shared"
    run(f"audit digits {TINY} --out {place} --plan")
    assert f"sbatch {place}/campaign.slurm" in run(f"submit {place} --slurm --workers 3")
    assert "#SBATCH --array=1-3\n" in (place / "campaign.slurm").read_text()
    assert json.loads(run(f"status {place} --json"))["finished"] == 0
    (listed,) = list_runs(tmp_path)
    assert listed.verdict == "under way"
    assert listed.title.startswith("0 of 1 blocks finished. Nobody plays it now")
    subprocess.run(["sh", place / "campaign.slurm"], check=True, timeout=120)  # as a task of the array does
    shown = " ".join(run(f"status {place}").split())
    assert "1 of 1 blocks finished. The observer was right in" in shown
    assert "Watched over 30 trials, the evidence against the claim never passed" in shown
    finish = run(f"merge {place}").splitlines()[1]
    found, alone = (
        json.loads(run(f"{line} --json")) for line in (finish.removeprefix("deniable "), f"audit digits {TINY}")
    )
    for one in (found, alone):
        for name in ("seconds", "trials_per_second", "finished"):
            one.pop(name)
    assert found == alone


def without_times(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in ("seconds", "trials_per_second", "finished")}


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        (f"audit digits {TINY} --final-model", 4),
        ("frontier digits --bounds .9 --epochs 1 --batch 64 --repeats 2 --model logistic --local", 4),
    ],
    ids=["final model", "frontier"],
)
def test_workers_play_all_that_the_command_would(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, blocks: int
) -> None:
    """Flags are part of the plan; final models are played, and kept, beside the trials."""
    run, place = partial(run_command, capsys=capsys), tmp_path / "shared"
    run(f"{line} --out {place} --plan")
    run(f"worker {place}")
    assert f"{blocks} of {blocks} blocks finished." in " ".join(run(f"status {place}").split())
    told, finish = run(f"merge {place}").splitlines()
    assert told.startswith(f"{blocks} of {blocks} blocks are in")
    found = json.loads(run(f"{finish.removeprefix('deniable ')} --json"))
    alone = json.loads(run(f"{line} --processes 1 --json"))
    assert without_times(found) == without_times(alone)


def test_a_certain_answer_ends_the_trials_and_not_the_final_models(tmp_path: Path) -> None:
    trials = Campaign({"what": "two"}, 5, squares(1).kind, square)
    behind = Campaign({"what": "two"}, 8, squares(1).kind, square, first=5)
    assert work_in(tmp_path, trials, certain=lambda block: block.square[0] == 1) == 2
    assert work_in(tmp_path, trials) == 0
    assert work_in(tmp_path, behind) == 3
    assert read_status(tmp_path).finished == 5


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("audit digits --noise 3 --trials 0 --exposure", "--plan is about trials, and --trials 0 has none"),
        ("audit digits --noise 3 --records 6 --final-model --sensitivity local", "global sensitivity"),
        ("attack confidences.csv", "without DATA there are none"),
        ("frontier digits --bounds .4", "above 0.5"),
    ],
)
def test_a_plan_without_blocks_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, said: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(f"{line} --out {tmp_path / 'plan'} --plan"))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("stop", ["certain", "never"])
def test_workers_watch_where_the_plan_says_so(tmp_path: Path, stop: str) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(f"audit digits {TINY} --stop {stop} --out {tmp_path / stop} --plan"))
    ((campaign, certain),) = plan_again(Planned.read(tmp_path / stop))
    assert (certain is None) == (stop == "never")
    assert campaign.blocks == 1
    if certain is not None:
        assert not certain(campaign.work(0))


def test_a_plan_that_means_something_else_here_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "plan").mkdir()
    with pytest.raises(SystemExit):
        main(shlex.split(f"worker {tmp_path / 'plan'}"))
    assert "holds no planned campaign" in capsys.readouterr().err
    data = tmp_path / "own.csv"
    data.write_text("a,b,y\n" + "".join(f"{n},{n % 3},{n % 2}\n" for n in range(40)))
    with pytest.raises(SystemExit):
        main(shlex.split(f"audit --data {data} --label y {TINY} --records 10 --out {tmp_path / 'plan'} --plan"))
    data.write_text(data.read_text().replace("3,0,1", "4,0,1"))
    with pytest.raises(SystemExit):
        main(shlex.split(f"worker {tmp_path / 'plan'}"))
    assert "this machine would play another campaign" in (said := capsys.readouterr().err)
    assert "data_sha256 was" in said


def test_a_planned_reproduction_is_that_of_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its campaigns are played, and its tables and figures made, by any number of workers."""
    run, place = partial(run_command, capsys=capsys), tmp_path / "shared"
    run(f"reproduce dbsec figure-3 --scale test --out {place} --plan")
    assert "0 blocks finished" in run(f"status {place}")
    run(f"worker {place}")
    shown = run(f"status {place}")
    assert f"{json.loads(run(f'status {place} --json'))['finished']} blocks finished." in shown
    finish = run(f"merge {place}").splitlines()[1]
    found = json.loads(run(f"{finish.removeprefix('deniable ')} --json"))
    alone = dn.reproduce("dbsec", "figure-3", scale="test", out=tmp_path / "alone", engine=Local(1))
    assert [item["values"] for item in found["items"]] == [item.values for item in alone.items]


def test_a_plan_is_a_document_where_one_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`audit --plan --json` printed nothing."""
    line = f"audit digits --noise 3 --records 6 --steps 1 --trials 4 --out {tmp_path} --plan --json"
    with pytest.raises(SystemExit):
        main(line.split())
    printed = json.loads(capsys.readouterr().out)
    assert (printed["schema"], printed["command"], printed["blocks"]) == ("deniable/campaign/1", "audit", 1)
