"""What lies around the steps: public values, the number of steps, the initial and the final weights, and choices.

No noise hides a choice that is made by looking at the records (when to stop, which step's weights to release). It is
recognised where one rule explains it in every training without exception; rules that fit by chance are ruled out by how
many decisions they explain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from deniable.examination.claim import Adaptive
from deniable.examination.diagnostics.moving_norms import count_noise
from deniable.examination.diagnostics.p_values import binomial
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.final_weights import Ending
from deniable.examination.residuals import TrialStatistics
from deniable.examination.twins.idle_records import later_difference, undrawn_difference

Array = NDArray[np.float64]
NEVER = 1e-4
"""A coincidence of smaller probability is none."""
ROUNDED = 1e-6
"""Losses that differ by less are the same."""
CHANCE = 1e-3
"""The probability below which released weights are not the best by chance."""
MOST_PATIENCE = 3
"""Steps without improvement after which trainings are thought to stop."""


def best_step_by(sets: list[Evidence]) -> str:
    """By what the released weights are the best of all steps, in every training; "" if by nothing that is known."""
    examined = [one for evidence in sets if _releases_steps(evidence) for one in evidence.examined]
    if len({tuple(one.ending) for one in examined}) < 2:
        return ""
    for what, scores in (("lowest loss", _losses), ("most right labels", _wrong_labels)):
        if any(_is_best(examined, scores, saved) for saved in (_of_every_step, _of_later_steps, _before_step)):
            return f"{what} on the training's own records"
    return "lowest loss on its own batch" if _is_best(examined, _batch_losses, _before_step) else ""


def _losses(one: TrialStatistics) -> tuple[Array, float]:
    """Before each step, and at the final weights."""
    return one.losses, float(one.last_loss)


def _wrong_labels(one: TrialStatistics) -> tuple[Array, float]:
    return 1 - one.right, 1 - float(one.last_right)


def _batch_losses(one: TrialStatistics) -> tuple[Array, float]:
    return one.batch_losses, float("nan")


def _releases_steps(evidence: Evidence) -> bool:
    """Whether the final weights are those of a step."""
    known = bool(np.isin(evidence.trials.ending[:, 0], (Ending.EARLIER, Ending.LAST)).all())
    return known and bool((evidence.taken == evidence.steps).all())


Scores = Callable[[TrialStatistics], tuple[Array, float]]
"""(steps,) a score of the weights before each step, lower is better; and that of the final weights."""
Saved = Callable[[Array, float, TrialStatistics], tuple[Array, int]]
"""From such scores to those of all weights that may be released, and the place of those that are."""


def _of_every_step(scores: Array, last: float, one: TrialStatistics) -> tuple[Array, int]:
    """The initial weights among them; the last ones only if they are released."""
    kind, step = one.ending
    return (np.append(scores, last), len(scores)) if kind == Ending.LAST else (scores, int(step))


def _of_later_steps(scores: Array, last: float, one: TrialStatistics) -> tuple[Array, int]:
    """Without the initial weights."""
    every, place = _of_every_step(scores, last, one)
    return every[1:], place - 1


def _before_step(scores: Array, _: float, one: TrialStatistics) -> tuple[Array, int]:
    """Weights after a step by the score before it, as most loops have it at hand."""
    kind, step = one.ending
    return scores, (len(scores) if kind == Ending.LAST else int(step)) - 1


def _is_best(examined: list[TrialStatistics], scores: Scores, saved: Saved) -> bool:
    """Whether every training releases the weights of lowest score, the first of them where several are as good.

    Trainings that release what most others do tell nothing; of the others each agrees by chance with one step of all.
    """
    places, steps, first, equal = [], [], [], []
    for one in examined:
        every, place = saved(*scores(one), one)
        best = np.flatnonzero(every <= np.nanmin(every) + ROUNDED)
        if place not in best:
            return False
        places.append(place)
        steps.append(len(every))
        first.append(place == best[0])
        equal.append(len(best))
    told = np.array(places) != max(places, key=places.count)
    chance = np.where(all(first), 1.0, equal) / np.array(steps)
    return bool(np.log(chance[told]).sum() < np.log(CHANCE))


def stops_by_loss(evidence: Evidence) -> bool:
    """Whether one threshold of one figure of the loss parts the steps that ended a training from all others."""
    most = int(evidence.taken.max())
    figures = [list(_figures(one)) for one in evidence.examined]
    for kind in range(len(figures[0])):
        stopped, going = [], []
        for one, each in zip(evidence.examined, figures, strict=True):
            values, taken = each[kind], int(one.taken)
            going.append(values[: taken - 1])
            if taken < most and np.isfinite(values[taken - 1]):
                stopped.append((taken, values[taken - 1]))
        if _are_parted(stopped, going):
            return True
    return False


def _figures(one: TrialStatistics) -> Iterator[Array]:
    """(steps,) figures after each step that may decide whether it is the last."""
    after, right = np.append(one.losses[1:], one.last_loss), np.append(one.right[1:], one.last_right)
    every = np.append(one.losses[:1], after)
    yield after
    yield right
    yield one.losses
    yield one.batch_losses
    yield after / after[0]
    yield after / one.losses[0]
    yield np.diff(every)
    for losses in (every, after, one.losses):
        for patience in range(1, MOST_PATIENCE + 1):
            found = np.full(len(after), np.nan)
            for step in range(patience, len(losses)):
                before, last = losses[: step - patience + 1], losses[step - patience + 1 : step + 1]
                found[step - len(losses) + len(after)] = last.min() - before.min()
            yield found


def _are_parted(stopped: list[tuple[int, float]], going: list[Array]) -> bool:
    """Whether a threshold parts the two, of more values than chance does; before the first stop nothing is decided."""
    if not stopped:
        return False
    first, ends = min(taken for taken, _ in stopped), np.array([value for _, value in stopped])
    others = np.concatenate([values[first - 1 :] for values in going])
    others = others[np.isfinite(others)]
    if not len(others) or not (ends.max() < others.min() or ends.min() > others.max()):
        return False
    ways = -betaln(len(ends) + 1, len(others) + 1) - np.log(len(ends) + len(others) + 1)
    return bool(ways > -np.log(NEVER / 100))


PUBLIC, STEPS, FINAL, UNDRAWN = "public values", "number of steps", "final weights", "records not drawn"
LATER = "records after their step"
MOST_UNDRAWN = 2
"""Trials that are trained once more with other records in place of those that were never drawn."""
APART = 0.05
"""Shares of moves in the final weights that differ by more are other ones."""


def public(evidence: Evidence) -> Diagnosis:
    """Twin trainings have the same initial weights, divisors, rates, clipping norms and batches."""
    expected = "the same for neighbouring records and the same seed"
    if evidence.twins is None:
        return Diagnosis(PUBLIC, 1.0, "no twins were trained", expected, checked=False)
    found = next(evidence.twins.leaks(), None)
    return found or Diagnosis(PUBLIC, 1.0, "the same", expected, checked=evidence.twins.repeatable)


def undrawn_records(evidence: Evidence) -> Diagnosis:
    """Records that no batch has drawn change nothing: no step, no public value, not the final weights."""
    expected = "nothing changes with records that no batch has drawn"
    twins = evidence.twins
    if twins is None or not twins.repeatable or evidence.claim.rate == 1:
        return Diagnosis(UNDRAWN, 1.0, "no such records", expected, checked=False)
    found = undrawn_difference(twins, _trials_without(evidence))
    observed = found.split(":", maxsplit=1)[0] if found else "nothing changes"
    return Diagnosis(UNDRAWN, float(not found), observed, expected, found)


def later_records(evidence: Evidence) -> Diagnosis:
    """Records that change while the training runs change nothing of the steps that were yielded, nor after the last."""
    expected = "nothing changes with records that are exchanged after a step"
    twins = evidence.twins
    if twins is None or not twins.repeatable:
        return Diagnosis(LATER, 1.0, "no twins were trained", expected, checked=False)
    on_d = [number for number, one in enumerate(evidence.examined) if bool(one.trained_on_d)]
    found = later_difference(twins, on_d[:MOST_UNDRAWN])
    return Diagnosis(LATER, float(not found), "something changes" if found else "nothing changes", expected, found)


def _trials_without(evidence: Evidence) -> list[int]:
    """Trials on D in which some record was never drawn."""
    everybody = evidence.members.sum(1)
    left = [
        number
        for number, one in enumerate(evidence.examined)
        if bool(one.trained_on_d) and (one.batch.sum(0) > 0).sum() < everybody[number]
    ]
    return left[:MOST_UNDRAWN]


def steps(evidence: Evidence) -> Diagnosis:
    """As many as claimed, in every training."""
    taken, claimed = evidence.taken, evidence.claim.steps
    expected = f"{claimed} steps"
    if len(set(taken.tolist())) > 1:
        text, weakens = _why_steps_vary(evidence)
        return Diagnosis(STEPS, 0.0, f"{taken.min()} to {taken.max()} steps", expected, text, weakens=weakens)
    if why := next(filter(None, map(_stops_alone, evidence.others[1:])), ""):
        return Diagnosis(STEPS, 0.0, "another number on few records", expected, why)
    number = int(taken[0])
    text = f"the training takes {number} steps, {claimed} are claimed: "
    text += "every further step costs privacy" if number > claimed else "that is safe, but not what is claimed"
    return Diagnosis(STEPS, float(number == claimed), f"{number} steps", expected, text, weakens=number > claimed)


def _why_steps_vary(evidence: Evidence) -> tuple[str, bool | None]:
    taken, on_d = evidence.taken, evidence.trials.trained_on_d
    between = f"the number of steps varies ({taken.min()} to {taken.max()})"
    if len(set(taken[on_d].tolist())) == 1 == len(set(taken[~on_d].tolist())):
        return f"{between} with the number of records, which it tells: fix it before the records are seen", True
    if _skips_empty(evidence):
        return (
            f"{between}: steps with an empty batch are left out, so their number tells of the records, and no noise is "
            "added where nobody was drawn: take every step, with noise alone if the batch is empty"
        ), True
    if stops_by_loss(evidence):
        return (
            f"{between}: the loss on the training's own records decides when it stops, which no noise hides: take a "
            "fixed number of steps, or decide on public data"
        ), True
    if int(taken.max()) > evidence.claim.steps:
        return f"{between}, and {evidence.claim.steps} are claimed: every further step costs privacy", True
    return (
        f"{between} and nothing that was shown tells why; if anything but public data and the noisy weights decides, "
        "it is a leak: take a fixed number of steps, or show the final weights"
    ), None


def _stops_alone(single: Evidence) -> str:
    """Why trainings on few records take fewer steps than others on as many, if it is a leak; else ""."""
    if len(set(single.taken.tolist())) == 1 or not (_skips_empty(single) or stops_by_loss(single)):
        return ""
    return _why_steps_vary(single)[0]


def _skips_empty(evidence: Evidence) -> bool:
    """Batches are hardly ever empty, and as many steps are missing as empty ones are expected."""
    rate, steps = evidence.claim.rate, int(evidence.taken.sum())
    chance = float(((1 - rate) ** evidence.members.sum(1)).mean())
    empty = sum(int((one.batch.sum(1) == 0).sum()) for one in evidence.examined)
    missing = len(evidence.taken) * evidence.claim.steps - steps
    rarer = empty == 0 or (empty < chance * steps and float(binomial(empty, steps, chance)) < NEVER)
    return missing > 0 and rate < 1 and rarer and float(binomial(missing + empty, steps + missing, chance)) > NEVER


def norms(evidence: Evidence) -> Diagnosis:
    """The clipping norm, where it is yielded, is the claimed one, or follows a noisy count as claimed."""
    clips, claimed = evidence.trials.clip, evidence.claim.clip
    adaptive = isinstance(evidence.claim.recipe.clipping, Adaptive)
    if adaptive or bool(np.allclose(clips, claimed, rtol=1e-6)):
        return Diagnosis("clipping norm", 1.0, "as claimed", f"{claimed:g}")
    between = f"{clips.min():.3g} to {clips.max():.3g}"
    text, weakens = (
        f"the clipping norm is another than claimed ({between}, not {claimed:g}), and the noise with it: ",
        None,
    )
    if not (clips != clips[:1]).any():
        text, weakens = f"{text}claim it, if it was fixed before", False
    elif evidence.twins is not None and evidence.twins.counts_with_noise:
        text, weakens = f"{text}it follows a noisy count; claim it, recipe=Recipe(Adaptive(count_noise))", False
    elif _follows_clean_count(evidence):
        text, weakens = f"{text}it follows how many gradients are clipped, without noise: add noise to the count", True
    else:
        text += "if it follows a noisy count, claim it, recipe=Recipe(Adaptive(count_noise)); if not, it is a leak"
    return Diagnosis("clipping norm", 0.0, between, f"{claimed:g}", text, weakens=weakens)


def _follows_clean_count(evidence: Evidence) -> bool:
    """Whether each change of the norm is a linear function of the clipped share of the batch, or of the norm before."""
    clips, share = evidence.trials.clip, evidence.trials.clipped[:, :-1].ravel()
    change = np.log(clips[:, 1:] / clips[:, :-1]).ravel()
    if len(change) < 8 or change.std() == 0 or share.std() == 0:
        return False
    fit = np.polynomial.polynomial.polyfit(share, change, 1)
    return bool(np.std(change - fit[0] - fit[1] * share) < 1e-3 * change.std())


def final(evidence: Evidence) -> Diagnosis:
    """The final weights are those after the last step, or made of what was yielded, alike in every training."""
    kinds, expected = evidence.trials.ending[:, 0], "the weights after the last step, or made of yielded ones"
    if (kinds == Ending.UNSEEN).all():
        return Diagnosis(FINAL, 1.0, "not shown", expected, checked=False)
    if (kinds == Ending.CLEAN).mean() > 0.5:
        text = (
            "the final weights hold a gradient of the records without noise (a last or further step was applied "
            "clean): release the weights that the noisy steps lead to"
        )
        return Diagnosis(FINAL, 0.0, "a clean gradient is in them", expected, text)
    if what := best_step_by(evidence.others):
        text = (
            f"the final weights are those of the step with the {what}, a choice that no noise hides: release the last "
            "ones, or choose on public data"
        )
        return Diagnosis(FINAL, 0.0, "the best of all steps", expected, text)
    if any(_varies(one) for one in evidence.others):
        text = (
            "the final weights are those of one step, or an average of steps, in one training and of others in the "
            "next, and nothing that was shown tells why: if the records decide, it is a leak; release the last "
            "weights, or the same average in every training"
        )
        return Diagnosis(FINAL, 0.0, "of other steps in other trainings", expected, text, weakens=None)
    if (kinds == Ending.OTHER).any() or (kinds == Ending.CLEAN).any():
        text = (
            "the final weights are not those that the yielded gradients lead to by a rule that is known here, nor an "
            "average of steps: what else is in them was not seen; show the weights as the last step leaves them"
        )
        return Diagnosis(FINAL, 0.0, "made in an unknown way", expected, text, weakens=None)
    return Diagnosis(FINAL, 1.0, "as expected", expected)


def _varies(evidence: Evidence) -> bool:
    """Whether trainings of equally many steps release other steps' weights, or other averages of them."""
    kinds, step = evidence.trials.ending.T
    shares = evidence.trials.shares[kinds == Ending.MIXED]
    known = np.isin(kinds, (Ending.EARLIER, Ending.LAST, Ending.MIXED))
    several = len(set(zip(kinds[known].tolist(), step[known].tolist(), strict=True))) > 1
    apart = len(shares) > 1 and bool((np.ptp(shares, axis=0) > APART).any())
    return (several or apart) and bool((evidence.taken == evidence.steps).all())


def not_shown(evidence: Evidence) -> Iterator[str]:
    """What was not shown, in words."""
    kinds = evidence.trials.ending[:, 0]
    if (kinds == Ending.UNSEEN).any():
        yield "the final weights (yield or return Released(weights))"
    if evidence.twins is not None and not evidence.twins.repeatable:
        yield "public values and initial weights (trainings with the same seed do not repeat)"
    if evidence.alone is not None and evidence.single is None:
        yield "trainings on a single record (the training does not take so few, or does not end)"
    if evidence.gradient_fits and evidence.twins is not None and evidence.twins.on_provoking_records is None:
        yield "records with other gradients than these (the training does not take them, or the model is too large)"
    if isinstance(evidence.claim.recipe.clipping, Adaptive) and not count_noise(evidence).checked:
        yield "the noise of the count that the clipping norm follows (the count hardly varies, or the norm)"
    if evidence.claim.recipe.augmentations > 1:
        yield "the gradients of augmented records (they cannot be recomputed)"
