"""The ground of statistics: random scores, and how often every stated interval misses what it speaks of.

A look draws an attack (two distributions, perhaps rounded, clipped or turned into hard labels, so that scores tie),
numbers of trials, a confidence and one statement, and simulates it. A find is a statement whose coverage is below what
it states by more than a fifth of its risk (94 % at nominal 95 %), at a significance of 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

import numpy as np
from scipy.special import bdtrc, expit

from deniable.evidence.anytime.watched_rows import claimed_loss, watch_rows
from deniable.evidence.attack_scores import Scores
from deniable.evidence.bound import epsilon_of_mu
from deniable.evidence.estimators import Region, credible_bound, estimate
from deniable.evidence.examined_claim import Asked
from deniable.evidence.intervals import (
    advantage_interval,
    auc_interval,
    average_precision_interval,
    best_advantage_interval,
    tpr_interval,
)
from deniable.evidence.likelihood import (
    ClassMoments,
    largest_likelihood_mu,
    largest_separation_mu,
    likelihood_mu,
    separation_mu,
)
from deniable.evidence.limits import interval, quantile_interval
from deniable.evidence.one_run import one_run, one_run_gaussian
from deniable.evidence.thresholds import Bonferroni, Fixed, MultiSplit, Split, ThresholdRule
from deniable.evidence.verdict import RowCount, judge_bound
from deniable.promises import Epsilon
from hunt.attacks import Attack, draw_attack
from hunt.find import Find

__all__ = ["look", "simulate"]

SIGNIFICANCE, SLACK, SECONDS = 1e-6, 1.2, 1.0
CLAIMED_DELTA = 1e-5
ROUNDING = 1e-5
"""How far the truths of finely divided distributions are trusted, absolutely."""
WATCHED_ROWS, WATCHED_ROUNDS = 300, 40
"""Of either kind in a file that is watched, and files: each is looked at after every row."""
KINDS = (
    "epsilon",
    "epsilon",
    "achieved",
    "achieved",
    "achieved",
    "beliefs",
    "scores",
    "one-run",
    "verdict",
    "watch",
    "credible",
)
RULES: tuple[ThresholdRule, ...] = (Fixed(0.25), Bonferroni(), Split(), MultiSplit(3))


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
    kind = generator.choice(KINDS)
    rounds = int(SECONDS / (4e-4 + 4e-7 * trials))
    if kind in ("scores", "one-run", "credible"):
        of = {"scores": _of_scores, "one-run": _of_canaries, "credible": _of_credible}[str(kind)]
        statement, draw = of(members, others, confidence, generator)
        rounds = min(rounds, {"one-run": 400, "credible": 60}.get(str(kind), rounds))
    else:
        attack = draw_attack(generator)
        while kind in ("verdict", "watch") and not isfinite(attack.epsilon(CLAIMED_DELTA)):
            attack = draw_attack(generator)  # no claim is true of it
        if kind == "watch":
            members, others, rounds = min(members, WATCHED_ROWS), min(others, WATCHED_ROWS), WATCHED_ROUNDS
        statement = OF_AN_ATTACK[str(kind)](attack, members, others, confidence, generator)
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

    def ends(scores: Scores) -> Ends:
        bound = estimate(Region(delta), scores, rule, confidence)
        return bound.value, bound.upper

    most = attack.epsilon(delta)
    if isinstance(rule, Fixed):
        fpr, fnr = attack.at(rule.threshold)
        most = max(0.0, float(Region(delta).strength(np.array(fpr), np.array(fnr))))
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


def _of_beliefs(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    """How often a belief is exceeded, and the belief that a share delta exceeds."""
    risk = (1 - confidence) / 2
    if generator.random() < 0.5:
        rate = 1 - attack.at(1.25)[1]
        found = lambda s: interval(int(np.sum(s.members > 1.25)), members, confidence)[1:]  # noqa: E731
        return Statement(f"rate, {attack.name}", found, rate, rate, risk, 2 * risk)
    share = 1 - float(generator.choice([0.3, 0.05, 0.01, 1e-3]))
    least, most = (float(expit(attack.quantile(share + nudge))) for nudge in (-1e-9, 1e-9))
    seen = lambda s: quantile_interval(expit(s.members), share, confidence)[1:]  # noqa: E731
    return Statement(f"quantile {share:g}, {attack.name}", seen, most, least, risk, 2 * risk)


Draw = Callable[[np.random.Generator], Scores]


def _of_scores(members: int, others: int, confidence: float, generator: np.random.Generator) -> tuple[Statement, Draw]:
    """Estimators of log-likelihood ratios."""
    mu = float(generator.choice([0.1, 1.0, 3.0]))
    separate = generator.random() < 0.5
    least, most = (separation_mu, largest_separation_mu) if separate else (likelihood_mu, largest_likelihood_mu)

    def ends(scores: Scores) -> Ends:
        found = ClassMoments.of(scores)
        return least(found, confidence), most(found, confidence)

    def draw(generator: np.random.Generator) -> Scores:
        drawn = (generator.normal(sign * mu * mu / 2, mu, size) for sign, size in ((1, members), (-1, others)))
        return Scores(*drawn)

    return Statement(f"{least.__name__}, mu {mu:g}", ends, mu, mu, 1 - confidence), draw


def _of_credible(
    members: int, others: int, confidence: float, generator: np.random.Generator
) -> tuple[Statement, Draw]:
    """The credible interval holds epsilon with its probability where both rates are drawn from its prior."""
    delta, truth = float(generator.choice([1e-5, 0.01])), 0.0

    def draw(generator: np.random.Generator) -> Scores:
        nonlocal truth
        fpr, fnr = generator.beta(0.5, 0.5, 2)
        rates = np.array([fpr, 1 - fpr]), np.array([fnr, 1 - fnr])
        truth = max(0.0, float(Region(delta).strength(*rates).max()))
        return Scores((generator.random(members) >= fnr).astype(float), (generator.random(others) < fpr).astype(float))

    def ends(scores: Scores) -> Ends:
        found = credible_bound(scores.errors(0.5), delta, confidence)
        return float(found.value > truth + 1e-6), float(found.upper >= truth - 1e-6)

    return Statement("credible", ends, 0.5, 0.5, (1 - confidence) / 2, 1 - confidence), draw


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
    claim = Epsilon(attack.epsilon(CLAIMED_DELTA), CLAIMED_DELTA)
    asked = Asked(claim, confidence=confidence, rule=RULES[generator.integers(4)])

    def ends(scores: Scores) -> Ends:
        bound = asked.estimator(asked.primary)(scores)
        return float(judge_bound(bound, claim, RowCount(len(scores))).name == "violated"), inf

    return Statement(f"violated, {asked.thresholds.name}, {attack.name}", ends, 0.5, 0.5, 1 - confidence)


def _of_watch(
    attack: Attack, members: int, others: int, confidence: float, generator: np.random.Generator
) -> Statement:
    """A claim that is exactly true of this attack is ever refuted by a watch no more often than is stated."""
    claim = claimed_loss(Epsilon(attack.epsilon(CLAIMED_DELTA), CLAIMED_DELTA), None)

    def ends(scores: Scores) -> Ends:
        return float(watch_rows(scores, claim, 1 - confidence).refuted_after is not None), inf

    return Statement(f"watched, {attack.name}", ends, 0.5, 0.5, 1 - confidence)


OF_AN_ATTACK = {
    "epsilon": _of_epsilon,
    "achieved": _of_achieved,
    "beliefs": _of_beliefs,
    "verdict": _of_verdict,
    "watch": _of_watch,
}
