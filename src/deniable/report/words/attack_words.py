"""What an attack on one trained model showed, in words and figures; for the page and for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from deniable.formatting import at_least, at_most, count_of, percent_at_most, short, times
from deniable.report.words.amount_text import share
from deniable.report.words.verdict_words import ATTACKS
from deniable.results.attack_result import AttackResult, AttackRow, MemberExposure, ProvenLimits
from deniable.results.compare_result import CompareResult

MOST_ACCURACY_APART, MOST_GAP_APART = 0.1, 0.05
"""Shares of records: shadows whose accuracy on their own records, or whose gap to the others, is further from the
target's were not trained alike. Two trainings of one recipe on a hundred records differ by less."""
TONES = {"cannot be told": "open", "gives members away": "bad", "gives something away": "odd", "nothing shown": "open"}
FRESH = (
    "Warning: no --weights were given. The network was attacked as MODEL returns it; if that is a freshly made one, "
    "this is NOT your trained model, and the result says nothing about it."
)


def outcome(document: AttackResult) -> str:
    """One of `TONES`."""
    if document.blind is not None and document.blind.differs:
        return "cannot be told"
    if document.average_precision_interval.low > 0.5:
        return "gives members away"
    bound = document.epsilon_lower_bound.value
    return "nothing shown" if bound == 0 else "gives something away"


def meaning(document: AttackResult) -> str:
    """The outcome in a sentence, with the figures that it rests on."""
    limits, bound = document.average_precision_interval, document.epsilon_lower_bound.value
    epsilon = "any number" if bound is None else at_least(bound)
    precision = _precision(document)
    worse = limits.high < 0.5
    nothing = (
        f"The attack does worse than guessing on these records ({precision}): its scores point the wrong way; were "
        "members and others exchanged?"
        if worse
        else f"{_turned_scores(document)}These records cannot tell this attack from guessing ({precision})"
    )
    return {
        "cannot be told": "Whether the model gives away who was in its training data cannot be told from these "
        "records.",
        "gives members away": "The model gives away who was in its training data: the attack does better than "
        f"guessing ({precision}).",
        "gives something away": "The model gives away something of who was in its training data: the attack's errors "
        f"prove an epsilon of at least {epsilon}, though precision alone ({precision}) does not tell it from guessing.",
        "nothing shown": f"{nothing}. More records, or a stronger attack, may show more.",
    }[outcome(document)]


def _turned_scores(document: AttackResult) -> str:
    """A question where an attack's scores clearly point the wrong way, by twice their limits; else nothing."""
    worst = min(document.attacks, key=lambda row: row.auc.high, default=None)
    if worst is None or 2 * worst.auc.high - worst.auc.value >= 0.5:
        return ""
    name, figures = ATTACKS.get(worst.name, worst.name), f"AUC {worst.auc.value:.3f}, at most {worst.auc.high:.3f}"
    return f"Were members and others exchanged? The scores of the {name} attack point the wrong way ({figures}). "


def _precision(document: AttackResult) -> str:
    """The average precision of all repeats beside the limits, which are of the first one alone."""
    limits, repeats = document.average_precision_interval, document.input.repeats
    first = "limits" if repeats == 1 else f"the mean of {repeats} times; limits of the first"
    mean = document.average_precision.mean
    return f"average precision {mean:.3f}, {first} {limits.low:.3f} to {limits.high:.3f}; guessing has 0.5"


def compared_attack(document: CompareResult) -> str:
    """The attack of a comparison; of the strongest of several, which it was on the unprotected model."""
    name, judged = document.input.attack, document.levels[0].judged
    if not judged:
        return f"the {ATTACKS.get(name, name)} attack"
    chosen = sorted(set(judged), key=lambda rule: (-judged.count(rule), rule))
    counts = ", ".join(f"{ATTACKS.get(rule, rule)} {judged.count(rule)}" for rule in chosen)
    return (
        "the strongest of several attacks, chosen on records that the attacker knows (on the unprotected model: "
        f"{counts} of {len(judged)})"
    )


def judged_name(document: AttackResult) -> str:
    """The attack that the limits are of, in words."""
    name = document.judged[0] if document.judged else document.input.attack
    return ATTACKS.get(name, name)


def attack_sentence(document: AttackResult) -> str:
    """How it was found out, and by which attack."""
    given = document.input
    sure = f"with confidence {100 * given.confidence:.4g} %"
    first = "" if given.repeats == 1 else ", both of the first time,"
    limits = f"The limits and the bound on epsilon{first} hold together {sure}."
    if document.epsilon_lower_bound.value is None:
        limits = f"The limits{'' if given.repeats == 1 else ', of the first time,'} hold {sure}."
    return _choice_sentence(document) + (
        f"The attacker knew half of {given.members:,} members and {given.non_members:,} non-members (as many of "
        f"each) and was tested on {given.tested:,} others, {times(given.repeats)}. {limits}"
    )


def _choice_sentence(document: AttackResult) -> str:
    if document.input.attack not in ("strongest", "all") or not document.judged:
        return ""
    names = sorted(set(document.judged), key=document.judged.count, reverse=True)
    told = judged_name(document)
    if len(names) > 1:
        counts = ", ".join(f"{ATTACKS.get(name, name)} {document.judged.count(name)}" for name in names)
        told += f" the first time (all times: {counts})"
    return f"Judged is the attack that did best on the known half: {told}. "


def shadow_sentence(document: AttackResult) -> str:
    """What the attacker's own models were, or nothing without them."""
    used = document.shadows
    if used is None:
        return ""
    if used.accuracy_inside is None or used.accuracy_outside is None:
        online = any(row.name in ("lira", "rmia", "bayes") for row in document.attacks)
        inside = "" if not online else "; each record is in some of them and not in others"
        return f"{used.shadows} shadow models' confidences were given{inside}."
    how = {
        "engine": "by the vectorised engine",
        "loop": "one after the other, since the engine does not take this network,",
        "own": "by the model's own training",
    }[used.trained_by]
    epochs = "" if used.epochs is None else f" for {used.epochs} epoch{'s' * (used.epochs > 1)}"
    if used.epochs_loss is not None:
        epochs += ", as many as fit them as closely as the target was fitted"
    does, what, on = ("are right on", "", "on ")
    if document.input.task == "regression":
        does, what, on = "explain", " of the variance", ""
    own = document.accuracy
    beside = "" if own is None else f"; the attacked model {on}{share(own.members)} and {share(own.non_members)}"
    return (
        f"{used.shadows} shadow models were trained {how} on {used.records:,} of these records each{epochs}. They "
        f"{does} {share(used.accuracy_inside)}{what} of their own records and {share(used.accuracy_outside)} of the "
        f"others{beside}."
    )


def shadow_caution(document: AttackResult) -> str | None:
    """Where shadows are unlike the target, so that the attack may find less than it could; None where they match."""
    if document.shadows is None or document.accuracy is None:
        return None
    unlike = list(_unlike(document))
    if not unlike:
        return None
    return (
        f"The shadow models do not match the attacked one: {'; '.join(unlike)}. An attacker who knows its recipe may "
        f"find more. {_remedy(document)}"
    )


def _remedy(document: AttackResult) -> str:
    """What to do about shadows that are unlike the target: name the recipe, or look at the one that was named."""
    given = document.input
    if given.train is not None or given.noise is not None or given.epochs is not None:
        return "The recipe that was named does not seem to be the attacked model's: look at both."
    return "Name the recipe (epochs, batch, learning rate, optimizer, noise), or give a training of your own."


def _unlike(document: AttackResult) -> Iterator[str]:
    used, own = document.shadows, document.accuracy
    assert used is not None
    assert own is not None
    if not 0.8 < used.records / document.input.members < 1.25:
        yield f"they were trained on {used.records:,} records, the target on {document.input.members:,}"
    loss = used.target_loss
    if used.epochs_loss is not None and loss is not None and used.epochs_loss > 1.5 * loss:
        after = f"after {count_of(used.epochs or 0, 'epoch')}"
        yield f"their loss on their own records is {used.epochs_loss:.3g} {after}, the target's {loss:.3g}"
    assert used.accuracy_inside is not None
    assert used.accuracy_outside is not None
    how = "explain {} of the variance" if document.input.task == "regression" else "are right {} of the time"
    if abs(used.accuracy_inside - own.members) > MOST_ACCURACY_APART:
        yield f"they {how.format(share(used.accuracy_inside))} on their own records, the target {share(own.members)}"
    gap, target_gap = used.accuracy_inside - used.accuracy_outside, own.members - own.non_members
    if abs(gap - target_gap) > MOST_GAP_APART:
        yield f"they {how.format(_points(gap))} on their own records than on others, the target {_points(target_gap)}"


def _points(difference: float) -> str:
    """Of two shares, so that 60 % beside 40 % is 20 points, and not 20 %."""
    return f"{100 * abs(difference):.3g} percentage points {'more' if difference >= 0 else 'less'}"


def proven_sentence(document: AttackResult) -> str:
    """How far below the proven bound the judged attack stays, and what that means; nothing without a bound."""
    proven, row = document.proven, _judged_row(document)
    if proven is None or row is None:
        return ""
    bound, found, gain = proven.tpr[-1], row.tpr[-1], row.advantage
    promised = (
        f"On a model that was trained with the named noise no attack has an advantage above "
        f"{at_most(proven.advantage)}, or finds more than {percent_at_most(bound.tpr)} of the members at "
        f"{100 * bound.fpr:g} % false alarms"
    )
    first = "" if document.input.repeats == 1 else " the first time"
    measured = (
        f"{judged_name(document)} has{first} {gain.value:.3f} (limits {gain.low:.3f} to {gain.high:.3f}) and "
        f"{share(found.value)} (limits {share(found.low)} to {share(found.high)})"
    )
    if exceeded := _name_exceeded(row, proven):
        return (
            f"{promised}; {measured}. More than is proven {'is' if len(exceeded) == 1 else 'are'} "
            f"{' and '.join(exceeded)}: the model was not trained as stated, or members and non-members are not of one "
            "source."
        )
    return (
        f"{promised}; {measured}. The gap is no reserve: the bound holds for the most exposed record and for an "
        "observer of every step, the attack saw one final model and these records."
    )


def _name_exceeded(row: AttackRow, proven: ProvenLimits) -> list[str]:
    """The figures of the attack whose lower limit lies above what is proven."""
    shown, most = row.epsilon_lower_bound.value or 0.0, proven.epsilon
    found = ["the advantage"] * (row.advantage.low > proven.advantage)
    for limits, bound in zip(row.tpr, proven.tpr, strict=True):
        found += [f"the members found at {100 * bound.fpr:g} %"] * (limits.low > bound.tpr)
    return found + ["the epsilon"] * (most is not None and shown > most)


def _judged_row(document: AttackResult) -> AttackRow | None:
    name = document.judged[0] if document.judged else document.input.attack
    return next((row for row in document.attacks if row.name == name), None)


def side_by_side(document: AttackResult) -> Iterator[tuple[str, ...]]:
    """Every attack's AUC, TPR at both rates, advantage and epsilon at least, each with its limits."""
    judged = _judged_row(document)
    for row in sorted(document.attacks, key=lambda row: -row.auc.value):
        low = {f"{limits.fpr:g}": limits for limits in row.tpr}
        bound = row.epsilon_lower_bound.value
        yield (
            ATTACKS.get(row.name, row.name) + (" *" if row is judged else ""),
            f"{row.auc.value:.3f} ({row.auc.low:.3f} to {row.auc.high:.3f})",
            *(f"{share(each.value)} ({share(each.low)} to {share(each.high)})" for each in low.values()),
            f"{row.advantage.value:.3f} ({row.advantage.low:.3f} to {row.advantage.high:.3f})",
            "-" if bound is None else at_least(bound),
        )
    if document.proven is not None:
        proven = document.proven
        shown = "no limit" if proven.epsilon is None else at_most(proven.epsilon)
        rates = (percent_at_most(each.tpr) for each in proven.tpr)
        yield ("Proven: at most", "", *rates, at_most(proven.advantage), shown)


def exposure_sentence(document: AttackResult) -> str:
    """How the members stand on the one scale of both observers; nothing where it was not asked for."""
    found = document.exposure
    if found is None:
        return ""
    half, half_of_observer = share(median(found.lira)), percent_at_most(median(found.observer))
    surer = "no member" if found.surer == 0 else f"{found.surer:,} of {len(found.lira):,} members"
    overstated = "" if found.surer == 0 else f"; {_surer_than_proven(document)}"
    return (
        f"From 50 %, Bayesian LiRA becomes {share(max(found.lira))} sure of the member that it is surest of, by "
        f"likelihoods that are estimates and may be wrong; an observer of every step may become "
        f"{percent_at_most(max(found.observer))} sure of the most exposed one (more with probability at most "
        f"{short(found.delta)}; {found.method}). Half of the members: at most {half} and {half_of_observer}. "
        f"LiRA is surer than that observer of {surer}{overstated}. {_ranks_sentence(found)}"
    )


def _ranks_sentence(people: MemberExposure) -> str:
    """Whether both observers put the members into one order, where there is an order to be seen."""
    limits = {percent_at_most(limit) for limit in people.observer}
    if len(limits) == 1:
        return f"That observer's limit is {limits.pop()} for every member: there is no order to compare."
    if people.rank_correlation is None:
        return "LiRA is equally sure of every member: there is no order to compare."
    return f"The rank correlation of the two is {people.rank_correlation:+.2f}."


def _surer_than_proven(document: AttackResult) -> str:
    """What it means that LiRA is surer than the observer of every step."""
    row, proven = _judged_row(document), document.proven
    if row is not None and proven is not None and _name_exceeded(row, proven):
        return "the observer's figures hold for a training as stated, which this model does not seem to have had"
    return "there it overstates, if the model was trained as stated"


def exposed_rows(document: AttackResult) -> Iterator[tuple[str, ...]]:
    """The members that the attack is surest of: number, its belief and, where it is known, the observer's."""
    for one in document.most_exposed:
        limit = () if one.observer is None else (percent_at_most(one.observer),)
        yield f"{one.number:,}", share(one.belief), *limit


def rows(document: AttackResult) -> Iterator[tuple[str, str]]:
    """A label and a figure."""
    given, limits, bound = document.input, document.average_precision_interval, document.epsilon_lower_bound
    yield "Attack", judged_name(document)
    mean = "" if given.repeats == 1 else f", mean of {given.repeats} times"
    yield f"Average precision (0.5: guessing){mean}", f"{document.average_precision.mean:.3f}"
    yield f"  its limits{', first time' if mean else ''}", f"{limits.low:.3f} to {limits.high:.3f}"
    if document.blind is not None:
        yield "Blind average precision, without the model", f"{document.blind.average_precision:.3f}"
    yield f"Advantage (TPR - FPR){mean}", f"{document.advantage.mean:.3f}"
    others = given.tested // 2
    for fpr, tpr in document.tpr_at_fpr.items():
        none = f" (no false alarm in {others:,})" if float(fpr) * others < 1 else ""
        yield f"Members found (TPR) at {100 * float(fpr):g} % FPR{none}{mean}", share(tpr)
    shown = "cannot be told" if bound.value is None else at_least(bound.value)
    yield f"Epsilon at delta {short(given.delta)}, at least{', first time' if mean else ''}", shown
    if document.accuracy is not None:
        what = "Variance explained" if given.task == "regression" else "The model's accuracy"
        yield f"{what} on members", share(document.accuracy.members)
        yield f"{what} on non-members", share(document.accuracy.non_members)
