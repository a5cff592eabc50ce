"""The identifiability games that Bernau 2020, Chapter 5 and Bernau 2021, Section 6 share: campaigns, each described
here, measured once.

A campaign is one data set, kind of neighbours, sensitivity and belief. What its trials say is kept in the run's
directory, where all tables and figures that need it find it.
"""

# ruff: noqa: PLC0415 (torch is imported when there is something to play)

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from deniable.experiments.game_summary import GameSummary
from deniable.experiments.item import ItemRun, Scale

MNIST, ADULT, PURCHASE, STAND_IN = "mnist", "adult", "purchase100", "location30"
NAMES = {MNIST: "MNIST", ADULT: "Adult", PURCHASE: "Purchase-100", STAND_IN: "Location-30"}
RECORDS = {MNIST: 100, STAND_IN: 1000, PURCHASE: 1000, ADULT: 1000}
DELTA = {MNIST: 0.01}
"""Bernau 2021, Section 6 and Table 3; all other data sets have delta 0.001."""

SMOKE_BELIEFS = (0.75, 0.9, 0.99)
SECONDS = {MNIST: (12.0, 180.0, 240.0), STAND_IN: (4.0, 50.0, 170.0), ADULT: (1.0, 12.0, 20.0)}
"""About how long one campaign takes on two cores, at smoke, hours and full."""

Kind = Literal["replace", "add-remove"]
Sensitivity = Literal["local", "global"]
Case = tuple[str, Sensitivity, Kind]
CASES: tuple[Case, ...] = (
    ("LS bounded", "local", "replace"),
    ("LS unbounded", "local", "add-remove"),
    ("GS bounded", "global", "replace"),
    ("GS unbounded", "global", "add-remove"),
)
"""The four ways to scale noise, in the order of Bernau 2021, Table 2."""


@dataclass(frozen=True)
class Game:
    """One campaign with Bernau 2021's settings: 30 full-batch steps, clipping norm 3, learning rate 0.005, noise by
    Renyi DP.

    A_MI attacks, and the accuracy is measured on, the first `attacked` trainings. `rank` says which neighbour D' is: 0,
    1, 2 are the most dissimilar ones, -1, -2, -3 the least dissimilar ones.
    """

    data: str
    belief: float
    adjacency: Kind = "replace"
    sensitivity: Sensitivity = "local"
    trials: int = 1000
    attacked: int = 200
    records: int = 100
    rank: int = 0
    seed: int = 0
    universe: int | None = None
    """How many of the data's records there are to be drawn and chosen from; None: all."""

    @property
    def delta(self) -> float:
        """The paper's, whatever the size."""
        return DELTA.get(self.data, 0.001)

    @property
    def name(self) -> str:
        """The directory of its trials."""
        parts = (self.data, self.records, self.adjacency, self.sensitivity, f"{self.belief:g}", self.trials)
        rank, seed = f"-rank{self.rank}" if self.rank else "", f"-seed{self.seed}" if self.seed else ""
        return "-".join(map(str, parts)) + rank + seed


def game_of_size(run: ItemRun, data: str, belief: float, case: Case, rank: int = 0) -> Game:
    """The campaign at the run's scale: the paper's records and 1000 trials at full."""
    _, sensitivity, kind = case
    few = {MNIST: (8, 20), STAND_IN: (8, 60), PURCHASE: (8, 60), ADULT: (20, 100)}[data]
    records = run.size(*few, RECORDS[data], hours=300 if data == STAND_IN else RECORDS[data])
    trials = run.size(10, 100, 1000)
    attacked = run.size(4, 20, 1000, hours=200 if kind == "replace" else 100)
    universe = run.size(400, 4000, None)
    return Game(data, belief, kind, sensitivity, trials, attacked, records, rank, run.seed, universe)


def shared_work(data: str, beliefs: Iterable[float], cases: Iterable[Case] = CASES) -> dict[str, dict[Scale, float]]:
    """The campaigns of one data set as work that items share: their names, and how long each takes."""
    smoke, hours, full = SECONDS[data]

    def seconds_of(belief: float) -> dict[Scale, float]:
        return {Scale.SMOKE: smoke if belief in SMOKE_BELIEFS else 0.0, Scale.HOURS: hours, Scale.FULL: full}

    return {f"{data} {belief:g} {case[0]}": seconds_of(belief) for belief in beliefs for case in cases}


def measure_games(run: ItemRun, games: Iterable[Game]) -> list[GameSummary]:
    """What each campaign shows, played unless the run's directory has it."""
    todo = list(games)

    def tell_share(place: int) -> Callable[[float], None]:
        return lambda share: run.tell((place + share) / len(todo))

    return [_measure_game(run, game, tell_share(place)) for place, game in enumerate(todo)]


def _measure_game(run: ItemRun, game: Game, tell: Callable[[float], None]) -> GameSummary:
    def work() -> GameSummary:
        from deniable.experiments.playing import play, summary

        return summary(play(game, run.trials, tell, run.engine))

    return run.once(game.name, asdict(game), work, GameSummary, divided=True)


def available(data: str) -> bool:
    """Whether the data's files are here or can be fetched."""
    from deniable.data import load

    try:
        load(data)
    except FileNotFoundError:
        return False
    return True


def three_sets() -> dict[str, str]:
    """Bernau 2021's three data sets by their names there; Location-30 stands where Purchase-100 is not present."""
    return {"MNIST": MNIST, "Purchase-100": PURCHASE if available(PURCHASE) else STAND_IN, "Adult": ADULT}


def title_of(name: str, data: str) -> str:
    """A data set's name, with what stands in for it."""
    return name if NAMES[data] == name else f"{NAMES[data]} (for {name})"
