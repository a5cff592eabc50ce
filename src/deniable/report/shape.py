"""What a document must hold to be reported: a shape is written as the data is, with types in place of values.

A dict names the members that must be there ("name?" may be missing), a list of one shape is a list of such, a tuple
lists the types that are allowed. Members that a shape does not name are let through.
"""

from __future__ import annotations

from typing import Any

__all__ = ["ATTACK", "AUDIT", "COMPARE", "MEASURED", "NUMBER", "VERDICT", "check"]

NUMBER, MAYBE = (int, float), (int, float, None)
WORD = (str, None)
LIMITS = {"value": NUMBER, "low": NUMBER, "high": NUMBER}
SPREAD = {"mean": NUMBER, "low": MAYBE, "high": MAYBE, "deviation": MAYBE, "values": [NUMBER]}
BOUND = {
    "name": (str,),
    "method": (str,),
    "value": MAYBE,
    "upper": MAYBE,
    "kind": (str,),
    "confidence?": NUMBER,
    "credible?": NUMBER,
    "valid": (bool,),
    "assumptions": [{"text": (str,), "holds": (bool, None), "p_value": MAYBE}],
}
PROVENANCE = {
    "data?": WORD,
    "shape?": [(int,)],
    "kind?": (str,),
    "classes?": (int, None),
    "weights?": (int,),
    "layers?": [(str,)],
    "sha256?": (str,),
    "versions": {"deniable": (str,)},
    "command?": WORD,
    "call?": (str,),
}
SCORES = {"epsilon": MAYBE, "advantage": NUMBER}
TRAINING = {
    "noise": NUMBER,
    "rate": NUMBER,
    "steps": (int,),
    "clip": NUMBER,
    "adjacency": (str,),
    "sensitivity": (str,),
    "model": (str,),
}
BAND = [[NUMBER]]
COURSE = {
    "quantiles": [NUMBER],
    "steps": [(int,)],
    "steps_in_all": (int,),
    "final_beliefs": {"d": [(int,)], "other": [(int,)]},
    "belief": {"d": (BAND, None), "other": (BAND, None)},
    "sensitivity": (BAND, None),
    "roc": ({"fpr": [NUMBER], "tpr": [NUMBER], "thresholds": (int,)}, None),
}
MEASURED = {
    "trials": (int,),
    "advantage": LIMITS,
    "belief": {
        "max": NUMBER,
        "bound": NUMBER,
        "violation_rate": NUMBER,
        "violation_interval": {"low": NUMBER, "high": NUMBER},
        "at_delta?": LIMITS,
    },
    "epsilon": {
        "sensitivity": MAYBE,
        "belief": MAYBE,
        "advantage": MAYBE,
        "advantage_theorem_3": MAYBE,
        "lower_bound": {"value": MAYBE, "confidence": NUMBER},
        "estimators": [BOUND],
    },
}
TEST = {
    "name": (str,),
    "p_value": NUMBER,
    "passed": (bool,),
    "checked": (bool, int),
    "observed": (str, int, float, None),
    "expected": (str, int, float, None),
    "sentence": WORD,
}
EXPOSURE = {
    "method": (str,),
    "records": (int,),
    "most_exposed": [{"record": (int,), "label?": (int,), "change": NUMBER, "advantage": NUMBER, "belief": NUMBER}],
    "least_advantage": NUMBER,
    "median_advantage": NUMBER,
    "note": (str,),
    "distribution?": {"edges": [NUMBER], "counts": [(int,)]},
}
JUDGED = {"verdict": (str,), "closeness": WORD, "verdict_text": (str,), "notes": [(str,)]}
AUDIT: dict[str, Any] = {
    "input": {"data": (str,), "data_sha256?": (str,), "records": (int,), "seed": (int,), **TRAINING},
    "claimed": {"belief": MAYBE, "advantage": MAYBE, "epsilon": MAYBE, "delta": NUMBER},
    "exact": {**SCORES, "delta": NUMBER, "belief": NUMBER, "belief_delta": NUMBER, "accuracy": NUMBER},
    "measured": ({"trials": (int,)},),
    **JUDGED,
    "course?": (COURSE, None),
    "diagnostics?": {"cause?": WORD, "tests": [TEST], "false_alarm_rate": NUMBER, "noise_ratio": MAYBE},
    "exposure?": EXPOSURE,
    "provenance?": PROVENANCE,
    "finished?": (str,),
}
VERDICT: dict[str, Any] = {
    "input": {
        "scores?": (str,),
        "claimed_epsilon": NUMBER,
        "delta": NUMBER,
        "method": (str,),
        "rule": (str,),
        "noise?": MAYBE,
        "rate?": NUMBER,
        "steps?": (int,),
        "adjacency?": (str,),
        "confidence": NUMBER,
    },
    "exact": (SCORES, None),
    "measured": {
        "trials": (int,),
        "members": (int,),
        "others": (int,),
        "advantage": LIMITS,
        "auc": LIMITS,
        "average_precision": LIMITS,
        "tpr": [{"fpr": NUMBER, **LIMITS}],
        "epsilon": {"lower_bound": BOUND, "estimators": [BOUND]},
    },
    **JUDGED,
    "provenance?": PROVENANCE,
}
LEVEL = {
    "kind": (str,),
    "name": (str,),
    "value": MAYBE,
    "epsilon": ({"value": NUMBER, "average_precision_at_most": NUMBER, "record?": NUMBER}, None),
    "test_accuracy": SPREAD,
    "train_accuracy": SPREAD,
    "average_precision": SPREAD,
    "advantage": SPREAD,
    "blind_average_precision": NUMBER,
    "epsilon_lower_bound": {"value": MAYBE},
    "precision_recall": {"precision": [NUMBER], "recall": [NUMBER]},
    "phi": MAYBE,
    "phi_error": MAYBE,
    "phi_note": WORD,
}
COMPARE: dict[str, Any] = {
    "input": {
        "data": (str,),
        "data_sha256": [(str,)],
        "classes": (int,),
        "records": (int,),
        "attack": (str,),
        "repeats": (int,),
        "seed": (int,),
    },
    "delta": NUMBER,
    "confidence": NUMBER,
    "chance": {"stays_below": NUMBER, "accuracy": NUMBER},
    "blind": {"differs": (bool,)},
    "warning": WORD,
    "levels": [LEVEL],
    "region": [
        {
            "noise": NUMBER,
            "exact": NUMBER,
            "named": {"naive": MAYBE, "advanced": MAYBE, "rdp": MAYBE},
            "lower": MAYBE,
        }
    ],
    "recommendation": {"sentences": [(str,)], "better": WORD},
    "provenance?": PROVENANCE,
    "finished?": (str,),
}
ATTACK: dict[str, Any] = {
    "input": {
        "attack": (str,),
        "repeats": (int,),
        "seed": (int,),
        "delta": NUMBER,
        "confidence": NUMBER,
        "data_sha256": [(str,)],
        "members": (int,),
        "non_members": (int,),
        "tested": (int,),
    },
    "accuracy": {"members": NUMBER, "non_members": NUMBER},
    "average_precision": SPREAD,
    "average_precision_interval": {"low": NUMBER, "high": NUMBER},
    "advantage": SPREAD,
    "tpr_at_fpr": {},
    "epsilon_lower_bound": {"value": MAYBE},
    "precision_recall": {"precision": [NUMBER], "recall": [NUMBER]},
    "blind": {"average_precision": NUMBER, "differs": (bool,)},
    "warning": WORD,
    "provenance?": PROVENANCE,
    "finished?": (str,),
}


def check(shape: Any, value: Any, place: str = "") -> None:
    """Refuse a value that is not of the shape, naming the place and what was found there."""
    options = shape if isinstance(shape, tuple) else (shape,)
    chosen = next((option for option in options if _may_be(option, value)), _NOTHING)
    if chosen is _NOTHING:
        raise ValueError(f"{place or 'the document'} must be {_told(options)}, got {_short(value)}")
    if isinstance(chosen, dict):
        _members(chosen, value, place)
    elif isinstance(chosen, list):
        for number, item in enumerate(value):
            check(chosen[0], item, f"{place}[{number}]")


_NOTHING = object()


def _may_be(option: Any, value: Any) -> bool:
    if option is None or value is None:
        return option is value
    if isinstance(option, dict | list):
        return isinstance(value, type(option))
    return isinstance(value, option) and (option is bool or not isinstance(value, bool))


def _members(shape: dict[str, Any], value: dict[str, Any], place: str) -> None:
    for key, inner in shape.items():
        name, here = key.removesuffix("?"), f"{place}.{key}".strip(".?")
        if name in value:
            check(inner, value[name], here)
        elif name == key:
            raise ValueError(f"{here} is missing")


def _told(options: tuple[Any, ...]) -> str:
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", None: "null"}
    found = ["an object" if isinstance(o, dict) else "a list" if isinstance(o, list) else names[o] for o in options]
    return " or ".join(name for name in found if not (name == "a whole number" and "a number" in found))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
