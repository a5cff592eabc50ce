"""Rules that are known by nobody: settled by twins that are handed gradients, or whose noise is shifted."""

from __future__ import annotations

from dataclasses import replace

from deniable.examination.diagnostics.around_the_steps import FINAL, STEPS
from deniable.examination.diagnostics.gradient import FOLLOWS, MOVED_OTHERWISE
from deniable.examination.diagnostics.trial_evidence import Diagnosis, Evidence
from deniable.examination.twins.handed_twins import follows_gradients_alone, ignores_draws
from deniable.examination.twins.shifted_noise import follows_noisy_sums


def settle_own_rule(test: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same diagnosis, passed if it failed for an unknown rule that is one of yielded gradients or noisy sums alone.

    A number of steps that varies stays another recipe.
    """
    unknown = test.weakens is None or test.sentence in MOVED_OTHERWISE
    asked = test.name in (FOLLOWS, FINAL, STEPS) and unknown and test.p_value < evidence.level
    if not asked or not (follows_gradients_alone(evidence.twins) or follows_noisy_sums(evidence.twins)):
        return test
    if test.name == STEPS:
        if evidence.twins is None or (evidence.claim.rate < 1 and not ignores_draws(evidence.twins)):
            return test  # the batches' sizes may decide, which are no more public than the records
        text = (
            f"the training takes {test.observed}; the noisy gradients decide, which is safe: claim the largest number"
        )
        return replace(test, sentence=text, weakens=False)
    return replace(test, p_value=1.0, observed="made of the yielded gradients alone", weakens=True)
