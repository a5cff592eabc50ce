"""Words of the field in one plain sentence each, for the planner's page and for reports."""

from __future__ import annotations

GLOSSARY = {
    "accuracy": "The share of right answers: of a model on new records, of an attack among its guesses.",
    "advantage": "How much more often an attack accuses members than others: members found minus others accused.",
    "baseline": "How often somebody would guess right without the release.",
    "batch": "The records that one step of a training looks at.",
    "belief": "How sure somebody is that a person's record is in the data, from 0 to 100 %.",
    "clipping norm": "The longest gradient that one record may contribute; longer ones are shortened to it.",
    "confidence": "How rarely a statement like this is wrong: at 95 % confidence, at most 1 time in 20.",
    "delta": "A small probability with which a promise may fail.",
    "differential privacy": "Noise that limits how much a release can depend on any one person's record; epsilon and "
    "delta say how much.",
    "epoch": "As many steps as it takes to look at every record once on average.",
    "epsilon": "The usual measure of differential privacy: how many times likelier, as e to the power of epsilon, one "
    "person's record can make any outcome, but for delta. Smaller is stricter.",
    "false positive rate": "The share of other people whom an attack wrongly takes for members.",
    "members": "The people whose records are in the training data.",
    "neighbours": "Two data sets that differ in one person's record, which nobody should be able to tell apart.",
    "noise multiplier": "The standard deviation of the noise, divided by the most that one record can change.",
    "prior": "How sure the observer was before the release.",
    "reconstruction": "Finding out what a record says, closely enough.",
    "re-identification": "Finding out which of several known people a record belongs to.",
    "release": "Everything that others get to see: a model, its training steps, or statistics.",
    "ROC curve": "Members found, for every share of others that are wrongly accused.",
    "signal to noise": "How large what the records say can be beside the noise that hides it.",
    "singling out": "Describing one person so exactly that the description fits nobody else in the data.",
    "strongest attack": "One that knows every other record and sees all that is released; no real one does better.",
    "true positive rate": "The share of members whom an attack finds.",
}
"""By the word, in alphabetical order."""
