"""The ground of statistics: random scores, and how often every stated interval misses what it speaks of.

A look draws an attack (two distributions, perhaps rounded, clipped or turned into hard labels, so that scores tie),
numbers of trials, a confidence and one statement, and simulates it. A find is a statement whose coverage is below what
it states by more than a fifth of its risk (94 % at nominal 95 %), at a significance of 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, expit, ndtr

from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import epsilon_of_mu
from deniable.evidence.estimators import Region
from deniable.evidence.examined_claim import Asked
from deniable.evidence.intervals import (
    advantage_interval,
    auc_interval,
    average_precision_interval,
    best_advantage_interval,
    tpr_interval,
)
from deniable.evidence.likelihood import (
    Moments,
    largest_likelihood_mu,
    largest_separation_mu,
    likelihood_mu,
    separation_mu,
)
from deniable.evidence.one_run import one_run, one_run_gaussian
from deniable.evidence.thresholds import Bonferroni, Fixed, MultiSplit, Rule, Split
from deniable.evidence.verdict import Rows, judge_bound
from deniable.evidence.watched_rows import claimed_loss, watch_rows
from deniable.promises import Epsilon
from hunt.find import Find

__all__ = ["Attack", "draw_attack", "look", "simulate"]

Floats = NDArray[np.float64]
SIGNIFICANCE, SLACK, SECONDS = 1e-6, 1.2, 1.0
BINS = 24_001
ROUNDING = 1e-5
"""How far the truths of finely divided distributions are trusted, absolutely."""
WATCHED_ROWS, WATCHED_ROUNDS = 300, 40
"""Of either kind in a file that is watched, and files: each is looked at after every row."""
RULES: tuple[Rule, ...] = (Fixed(0.25), Bonferroni(), Split(), MultiSplit(3))


@dataclass(frozen=True)
class Attack:
    """Scores of members and others: values with their probabilities, spread over a bin where they do not tie."""

    name: str
    values: Floats
    member: Floats
    other: Floats
    width: float = 0.0

    def draw(self, members: int, others: int, generator: np.random.Generator) -> Scores:
        """As many scores of either class."""
        return Scores(self._drawn(self.member, members, generator), self._drawn(self.other, others, generator))

    def _drawn(self, mass: Floats, number: int, generator: np.random.Generator) -> Floats:
        place = np.searchsorted(np.cumsum(mass)[:-1], generator.random(number), side="right")
        return self.values[place] + self.width * generator.random(number)

    @cached_property
    def rates(self) -> tuple[Floats, Floats]:
        """(FPR, TPR) of accusing from each value on, ascending values, and of accusing nobody."""
        fpr, tpr = (np.append(mass[::-1].cumsum()[::-1], 0.0) for mass in (self.other, self.member))
        return np.minimum(fpr, 1.0), np.minimum(tpr, 1.0)

    def at(self, threshold: float) -> tuple[float, float]:
        """(FPR, FNR) of accusing above a threshold."""
        above = (self.values > threshold).astype(np.float64)
        if self.width:  # the threshold may cut a bin
            above = np.clip((self.values - threshold) / self.width + 1, 0, 1)
        return float(self.other @ above), float(1 - self.member @ above)

    def epsilon(self, delta: float) -> float:
        """The most that any threshold shows."""
        fpr, tpr = self.rates
        return max(0.0, float(Region(delta).strength(fpr[1:-1], 1 - tpr[1:-1]).max(initial=0.0)))

    def advantage(self) -> float:
        """At the best threshold."""
        fpr, tpr = self.rates
        return float((tpr - fpr).max())

    def auc(self) -> float:
        """A tie counts one half."""
        fpr = self.rates[0]
        return float(self.member @ (1 - (fpr[:-1] + fpr[1:]) / 2))

    def average_precision(self, members: int, others: int) -> float:
        """At this ratio of members to others."""
        ends = [rates[:-1] if not self.width else (rates[:-1] + rates[1:]) / 2 for rates in self.rates]
        right, wrong = members * ends[1], others * ends[0]
        return float(self.member @ np.divide(right, right + wrong, out=np.zeros_like(right), where=right > 0))

    def tpr(self, fpr: float) -> tuple[float, float]:
        """The largest TPR of a threshold with at most this FPR, and the one on the line between two thresholds."""
        known, reached = self.rates
        return float(reached[known <= fpr].max()), float(np.interp(fpr, known[::-1], reached[::-1]))


def draw_attack(generator: np.random.Generator) -> Attack:
    """Few values with random probabilities, hard labels, or two shifted densities, continuous, rounded or clipped.

    Of *rare* ones a few of a class lie far from the rest.
    """
    kind = generator.choice(["labels", "categories", "gaussian", "laplace", "rounded", "clipped", "rare"])
    if kind == "labels":
        epsilon = float(generator.choice([0.0, 0.2, 1.0, 3.0]))
        share = float(generator.choice([1.0, 0.1]))
        right, wrong = share * float(expit(epsilon)), share * float(expit(-epsilon))
        return Attack(f"labels {right:.3g} {wrong:.3g}", np.array([0.0, 1.0]), _two(right), _two(wrong))
    if kind == "categories":
        number = int(generator.integers(3, 9))
        first, second = generator.dirichlet(np.full(number, 0.7), 2)
        mixed = 0.5 * first + 0.5 * second if generator.random() < 0.5 else second
        return Attack(f"{number} categories", np.arange(number, dtype=np.float64) - number // 2, first, mixed)
    return _shifted(str(kind), generator)


def _two(right: float) -> Floats:
    return np.array([1 - right, right])


def _shifted(kind: str, generator: np.random.Generator) -> Attack:
    mu = float(generator.choice([0.0, 0.3, 1.0, 2.0, 6.0]))
    cdf = _laplace if kind == "laplace" else ndtr
    edges = np.linspace(-12, 12, BINS)
    member, other = np.diff(cdf(edges - mu / 2)), np.diff(cdf(edges + mu / 2))
    member, other = member / member.sum(), other / other.sum()
    values, width = edges[:-1], float(edges[1] - edges[0])
    if kind == "rare":
        share, place = float(generator.choice([0.002, 0.02, 0.06])), float(generator.choice([-8.0, 8.0]))
        bump = np.diff(ndtr(edges - place))
        if generator.random() < 0.5:
            member = (1 - share) * member + share * bump / bump.sum()
        else:
            other = (1 - share) * other + share * bump / bump.sum()
        return Attack(f"{share:g} at {place:g} gaussian {mu:g}", values, member, other, width)
    if kind not in ("rounded", "clipped"):
        return Attack(f"{kind} {mu:g}", values, member, other, width)
    step = float(generator.choice([0.1, 0.5, 2.0]))
    tied = np.round(values / step) * step if kind == "rounded" else np.clip(values, -step, step)
    seen, place = np.unique(tied, return_inverse=True)
    first, second = (np.bincount(place, mass, seen.size).astype(np.float64) for mass in (member, other))
    return Attack(f"{kind} {step:g} gaussian {mu:g}", seen, first, second)


def _laplace(x: Floats) -> Floats:
    return np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)


Ends = tuple[float, float]
"""What is stated, lowest and highest."""


@dataclass(frozen=True)
class Statement:
    """What is said of scores, and the truths that its two ends must not pass; `risk` is that of either end."""

    name: str
    ends: Callable[[Scores], Ends]
    low_truth: float
    high_truth: float
    risk: float
    together: float = 1.0
    """The risk that either end misses, where an interval states it."""


def simulate(
    statement: Statement, draw: Callable[[np.random.Generator], Scores], rounds: int, generator: np.random.Generator
) -> tuple[int, int]:
    """How often the lower end was above its truth, and the upper one below."""
    missed = np.zeros(2, dtype=np.int64)
    for _ in range(rounds):
        low, high = statement.ends(draw(generator))
        missed += [low > statement.low_truth + ROUNDING, high < statement.high_truth - ROUNDING]
    return int(missed[0]), int(missed[1])


def look(seed: int) -> Find | None:
    """One attack, one statement, simulated."""
    generator = np.random.default_rng(seed)
    confidence = float(generator.choice([0.9, 0.95, 0.99]))
    trials = int(10 ** generator.uniform(2, 4))
    members = max(2, round(trials * float(generator.choice([0.05, 0.5, 0.95]))))
    others = trials - members
    kind = generator.choice(["epsilon", "epsilon", "achieved", "achieved", "scores", "one-run", "verdict", "watch"])
    rounds = int(SECONDS / (4e-4 + 4e-7 * trials))
    if kind in ("scores", "one-run"):
        statement, draw = (_of_scores if kind == "scores" else _of_canaries)(members, others, confidence, generator)
        rounds = min(rounds, 400) if kind == "one-run" else rounds
    else:
        attack = draw_attack(generator)
        if kind == "watch":
            members, others, rounds = min(members, WATCHED_ROWS), min(others, WATCHED_ROWS), WATCHED_ROUNDS
        make = {"epsilon": _of_epsilon, "achieved": _of_achieved, "verdict": _of_verdict, "watch": _of_watch}[str(kind)]
        statement = make(attack, members, others, confidence, generator)
        rounds //= 1 + 2 * (MultiSplit.name in statement.name) + (kind == "verdict")

        def draw(generator: np.random.Generator) -> Scores:
            return attack.draw(members, others, generator)

    missed = simulate(statement, draw, rounds, generator)
    counts = {"lower": (missed[0], statement.risk), "upper": (missed[1], statement.risk)}
    counts["one or the other"] = sum(missed), statement.together
    for end, (count, risk) in counts.items():
        if count and bdtrc(count - 1, rounds, min(1.0, SLACK * risk)) < SIGNIFICANCE:
            says = f"{statement.name}, {members} + {others}: the {end} end misses in {count} of {rounds} simulations"
            return Find(f"python -m hunt statistics --seed {seed}", says, f"in at most {risk:.3g} of them")
    return None


def _of_epsilon(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    """Region's bound by any rule: of the fixed threshold, or of the best."""
    rule, delta = RULES[generator.integers(len(RULES))], float(generator.choice([1e-5, 0.01]))
    strength = Region(delta).strength

    def ends(scores: Scores) -> Ends:
        limits = rule.limits(scores, strength, confidence)
        return limits.lower(strength), limits.upper(strength)

    most = attack.epsilon(delta)
    if isinstance(rule, Fixed):
        fpr, fnr = attack.at(rule.threshold)
        most = float(strength(np.array(fpr), np.array(fnr)))
    return Statement(f"region, {rule.name}, {attack.name}", ends, most, most, 1 - confidence)


def _of_achieved(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    kind, risk = generator.choice(["fixed", "best", "auc", "average precision", "tpr"]), (1 - confidence) / 2
    name = f"{kind}, {attack.name}"
    if kind == "fixed":
        gap = 1 - sum(attack.at(0.25))
        return Statement(name, lambda s: advantage_interval(s.errors(0.25), confidence)[1:], gap, gap, risk, 2 * risk)
    if kind == "best":
        rule, most = RULES[1 + generator.integers(3)], attack.advantage()
        name = f"{name}, {rule.name}"
        return Statement(name, lambda s: best_advantage_interval(s, rule, confidence)[1:], most, most, risk, 2 * risk)
    if kind == "auc":
        auc = attack.auc()
        return Statement(name, lambda s: auc_interval(s, confidence)[1:], auc, auc, 2 * risk, 2 * risk)
    if kind == "tpr":
        fpr = float(generator.choice([0.001, 0.01, 0.1]))
        return Statement(name, lambda s: tpr_interval(s, fpr, confidence)[1:], *attack.tpr(fpr), risk, 2 * risk)
    mean = attack.average_precision(members, others)
    return Statement(name, lambda s: average_precision_interval(s, confidence)[1:], mean, mean, 2 * risk, 2 * risk)


Draw = Callable[[np.random.Generator], Scores]


def _of_scores(members: int, others: int, confidence: float, generator: np.random.Generator) -> tuple[Statement, Draw]:
    """Estimators of log-likelihood ratios."""
    mu = float(generator.choice([0.1, 1.0, 3.0]))
    separate = generator.random() < 0.5
    least, most = (separation_mu, largest_separation_mu) if separate else (likelihood_mu, largest_likelihood_mu)

    def ends(scores: Scores) -> Ends:
        found = Moments.of(scores)
        return least(found, confidence), most(found, confidence)

    def draw(generator: np.random.Generator) -> Scores:
        drawn = (generator.normal(sign * mu * mu / 2, mu, size) for sign, size in ((1, members), (-1, others)))
        return Scores(*drawn)

    return Statement(f"{least.__name__}, mu {mu:g}", ends, mu, mu, 1 - confidence), draw


def _of_canaries(
    members: int, others: int, confidence: float, generator: np.random.Generator
) -> tuple[Statement, Draw]:
    """One run: a Gaussian release for each canary, included by its own fair coin; rounded in half of the cases."""
    canaries, mu = min(members + others, 1000), float(generator.choice([0.0, 1.0, 2.0]))
    of, rounded = (one_run if generator.random() < 0.5 else one_run_gaussian), generator.random() < 0.5

    def draw(generator: np.random.Generator) -> Scores:
        member = generator.random(canaries) < 0.5
        score = generator.normal(mu * member, 1)
        return Scores.of(score.round() if rounded else score, member)

    truth = epsilon_of_mu(mu, 1e-5)
    ends = lambda scores: (of(scores, 1e-5, confidence).value, inf)  # noqa: E731
    return Statement(f"{of.__name__}, mu {mu:g}", ends, truth, truth, 1 - confidence), draw


def _of_verdict(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    """A claim that is exactly true of this attack is called violated no more often than is stated."""
    claim = Epsilon(attack.epsilon(1e-5), 1e-5)
    asked = Asked(claim, confidence=confidence, rule=RULES[generator.integers(4)])

    def ends(scores: Scores) -> Ends:
        bound = asked.estimator(asked.primary)(scores)
        return float(judge_bound(bound, claim, Rows(len(scores))).name == "violated"), inf

    return Statement(f"violated, {asked.thresholds.name}, {attack.name}", ends, 0.5, 0.5, 1 - confidence)


def _of_watch(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    """A claim that is exactly true of this attack is ever refuted by a watch no more often than is stated."""
    claim = claimed_loss(Epsilon(attack.epsilon(1e-5), 1e-5), None)

    def ends(scores: Scores) -> Ends:
        return float(watch_rows(scores, claim, 1 - confidence).refuted_after is not None), inf

    return Statement(f"watched, {attack.name}", ends, 0.5, 0.5, 1 - confidence)
