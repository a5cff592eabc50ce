"""What lies around the steps: public values, the number of steps, the initial and the final weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from deniable.audit.diagnostics.evidence import Diagnosis, Evidence
from deniable.audit.diagnostics.laws import binomial
from deniable.audit.recipe import Adaptive
from deniable.audit.updates import Ending

__all__ = ["FINAL", "PUBLIC", "STEPS", "final", "norms", "public", "steps", "unseen"]

PUBLIC, STEPS, FINAL = "public values", "number of steps", "final weights"
NEVER = 1e-4
"""A coincidence of smaller probability is none."""


def public(evidence: Evidence) -> Diagnosis:
    """Twin trainings have the same initial weights, divisors, rates, clipping norms and batches."""
    expected = "the same for neighbouring records and the same seed"
    if evidence.twins is None:
        return Diagnosis(PUBLIC, 1.0, "no twins were trained", expected, checked=False)
    found = next(evidence.twins.leaks(), None)
    return found or Diagnosis(PUBLIC, 1.0, "the same", expected, checked=evidence.twins.repeatable)


def steps(evidence: Evidence) -> Diagnosis:
    """As many as claimed, in every training."""
    taken, claimed = evidence.taken, evidence.claim.steps
    expected = f"{claimed} steps"
    if len(set(taken.tolist())) > 1:
        text, weakens = _why_steps_vary(evidence)
        return Diagnosis(STEPS, 0.0, f"{taken.min()} to {taken.max()} steps", expected, text, weakens=weakens)
    if evidence.single is not None and (why := _stops_alone(evidence.single)):
        return Diagnosis(STEPS, 0.0, "another number on a single record", expected, why)
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
    if _stops_on_loss(evidence):
        return (
            f"{between}: training stops when the loss on its own records is low enough, which no noise hides: take a "
            "fixed number of steps, or decide on public data"
        ), True
    if int(taken.max()) > evidence.claim.steps:
        return f"{between}, and {evidence.claim.steps} are claimed: every further step costs privacy", True
    return (
        f"{between} and nothing that was shown tells why; if anything but public data and the noisy weights decides, "
        "it is a leak: take a fixed number of steps, or show the final weights"
    ), None


def _stops_alone(single: Evidence) -> str:
    """Why trainings on a single record take fewer steps than others on one, if it is a leak; else ""."""
    if len(set(single.taken.tolist())) == 1 or not (_skips_empty(single) or _stops_on_loss(single)):
        return ""
    return _why_steps_vary(single)[0]


def _skips_empty(evidence: Evidence) -> bool:
    """No batch is ever empty, and as many steps are missing as empty ones are expected."""
    rate, sizes = evidence.claim.rate, evidence.trials.batch.sum(2)
    if rate == 1 or (sizes == 0).any():
        return False
    chance = float(((1 - rate) ** evidence.members.sum(1)).mean())
    missing = int((evidence.claim.steps - evidence.taken).sum())
    return missing > 0 and float(binomial(missing, len(evidence.taken) * evidence.claim.steps, chance)) > NEVER


def _stops_on_loss(evidence: Evidence) -> bool:
    """Whether one threshold parts the losses that ended a training early from those after which it went on."""
    trials, taken = evidence.trials, evidence.taken
    early = (taken < taken.max()) & np.isfinite(trials.last_loss)
    if not early.any():
        return False
    going = np.concatenate([trials.losses[:, 1:].ravel(), evidence.later_losses])
    return bool(trials.last_loss[early].max() < going.min()) if len(going) else False


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
    """The final weights are those after the last step, or made of what was yielded."""
    kinds, expected = evidence.trials.ending[:, 0], "the weights after the last step, or made of yielded ones"
    if (kinds == Ending.UNSEEN).all():
        return Diagnosis(FINAL, 1.0, "not shown", expected, checked=False)
    if (kinds == Ending.CLEAN).mean() > 0.5:
        text = (
            "the final weights hold a gradient of the records without noise (a last or further step was applied "
            "clean): release the weights that the noisy steps lead to"
        )
        return Diagnosis(FINAL, 0.0, "a clean gradient is in them", expected, text)
    # on a single record noise leads the loss up and down, so that the last weights are not always the best
    if any(_best_by_loss(one.trials.ending, one) for one in (evidence, evidence.single) if one is not None):
        text = (
            "the final weights are those of the step with the lowest loss on the training's own records, a choice that "
            "no noise hides: release the last ones, or choose on public data"
        )
        return Diagnosis(FINAL, 0.0, "the best of all steps", expected, text)
    odd = bool((kinds == Ending.OTHER).any())
    observed = "made in an unknown way" if odd else "as expected"
    return Diagnosis(FINAL, 1.0, observed, expected, checked=not odd)


def _best_by_loss(endings: NDArray[np.int64], evidence: Evidence) -> bool:
    """Whether in every training the final weights are those of lowest loss, and not always those of one step."""
    earlier, last = endings[:, 0] == Ending.EARLIER, endings[:, 0] == Ending.LAST
    if earlier.sum() < 3 or not (earlier | last).all() or len(set(endings[:, 1].tolist())) < 2:
        return False
    losses = evidence.trials.losses
    lowest = losses.min(1) if evidence.steps else np.inf
    best = np.where(earlier, losses.argmin(1) == endings[:, 1], evidence.trials.last_loss <= lowest)
    return bool(best.all()) and bool((evidence.taken == evidence.steps).all())


def unseen(evidence: Evidence) -> Iterator[str]:
    """What was not shown, in words."""
    kinds = evidence.trials.ending[:, 0]
    if (kinds == Ending.UNSEEN).any():
        yield "the final weights (yield or return Released(weights))"
    elif (kinds == Ending.OTHER).any():
        yield "how the final weights are made of the steps"
    if evidence.twins is not None and not evidence.twins.repeatable:
        yield "public values and initial weights (trainings with the same seed do not repeat)"
    if evidence.claim.recipe.augmentations > 1:
        yield "the gradients of augmented records (they cannot be recomputed)"
