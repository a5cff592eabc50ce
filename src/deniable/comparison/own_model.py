"""A user's own trained model: its function and weights, the files of members and non-members, and the attack on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import BadZipFile, is_zipfile

import numpy as np
import torch
from msgspec import convert, structs
from torch import Tensor, nn

from deniable.adversaries import Blind, Scored, ShadowTraining
from deniable.adversaries.model_observation import accuracy, losses
from deniable.adversaries.shadow_recipes import Train
from deniable.adversaries.shadow_scores import RULES
from deniable.checks import of_kind, one_of, probability, whole
from deniable.comparison.attack_measures import (
    check_exposure,
    expose_members,
    measure_attack,
    most_exposed,
    proven_limits,
)
from deniable.comparison.attack_plan import CHOICES, AttackPlan, OwnAttack, PlayedBlock, divide_rules
from deniable.comparison.confidence_table import ConfidenceTable
from deniable.comparison.repeat_measures import Shift, advantages, curve, lower_bound, precisions, rates_at, shift, void
from deniable.data import Dataset, from_arrays, import_function, load
from deniable.data.files import read_npz
from deniable.data.own_data import call_user_code
from deniable.data.table_reader import first_row
from deniable.engines import Campaign, Engine, choose_engine, open_store, play_missing
from deniable.evidence.attack_scores import Scores
from deniable.evidence.intervals import average_precision_interval
from deniable.results.attack_result import AttackInput, AttackResult, BlindMean, ModelAccuracy
from deniable.results.shared import Ends

MEMBER = "member"
UNSEEN = (
    "The records themselves were not given: whether members and non-members differ without the model could not be "
    "looked at. If they do, these figures measure that difference."
)
Progress = Callable[[int, int], None]


def read_model(reference: str, weights: Path | str | None = None, *, regression: bool = False) -> nn.Module | Any:
    """The model that ``module:function`` returns, with the weights of a file if one is named.

    An `nn.Module`, or, without weights, a fitted estimator with `predict_proba` (of a `regression`: with `predict`).

    Weights are a .safetensors file or a checkpoint of tensors alone (`torch.load` with ``weights_only=True``): nothing
    that could run code is ever unpickled. A checkpoint may hold the weights under "state_dict" or "model_state_dict".
    """
    model = call_user_code(reference, import_function(reference))
    if weights is None and hasattr(model, "predict" if regression else "predict_proba"):
        return model
    if not isinstance(model, nn.Module):
        estimator = "" if weights else f", or an estimator with {'predict' if regression else 'predict_proba'}"
        raise ValueError(f"{reference} must return an nn.Module{estimator}, got {type(model).__name__}")
    if weights is not None:
        try:
            model.load_state_dict(_weights(Path(weights)))
        except RuntimeError as error:
            raise ValueError(f"{weights} does not fit the model of {reference}: {error}") from error
    return model


def _weights(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    found = _safetensors(path) if path.suffix == ".safetensors" else _checkpoint(path)
    for name in ("state_dict", "model_state_dict"):
        if isinstance(found, dict) and isinstance(found.get(name), dict):
            found = found[name]
    if not isinstance(found, dict) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ValueError(f"{path} must hold a model's weights by name (model.state_dict()), it holds something else")
    return found


def _safetensors(path: Path) -> Any:
    from safetensors import SafetensorError  # noqa: PLC0415 (only who has such a file needs it)
    from safetensors.torch import load_file  # noqa: PLC0415

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a readable .safetensors file: {error}") from error


def _checkpoint(path: Path) -> Any:
    """What torch.save wrote: a zip file since torch 1.6. In a damaged one torch may stumble over anything."""
    if not is_zipfile(path):
        raise ValueError(f"{path} is not a checkpoint: save model.state_dict() with torch.save, or as .safetensors")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise ValueError(
            f"{path} holds more than tensors, which is never loaded, since it could run code: save "
            "model.state_dict() with torch.save, or as .safetensors"
        ) from error
    except (RuntimeError, EOFError, BadZipFile, LookupError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a readable checkpoint: {error}") from error


def read_records(
    files: Sequence[Path | str], label: str | None = None, *, regression: bool = False
) -> tuple[Dataset, Dataset]:
    """(members, non-members) from two files in this order, or from one with an array or column "member" of 0 and 1.

    With `regression` the labels are any numbers.
    """
    if len(files) == 2:
        members, non_members = (load(Path(file), label=label, regression=regression) for file in files)
        return members, non_members
    if len(files) != 1:
        raise ValueError(f"name one file with a column {MEMBER!r}, or two: members, non-members; got {len(files)}")
    path = Path(files[0])
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    records, member = _npz(path, regression) if path.suffix == ".npz" else _table(path, label, regression)
    if member.shape != (len(records),) or not np.isin(member, (0, 1)).all():
        raise ValueError(f"{MEMBER!r} of {path} must be 0 or 1, one a record, {len(records)} in all")
    inside = member.astype(bool)
    if inside.all() or not inside.any():
        raise ValueError(f"{path} must hold members and non-members, {int(inside.sum())} of {len(inside)} are members")
    return records.take(np.flatnonzero(inside)), records.take(np.flatnonzero(~inside))


def _npz(path: Path, regression: bool) -> tuple[Dataset, np.ndarray[Any, Any]]:
    arrays = read_npz(path)
    if MEMBER not in arrays:
        raise ValueError(f"{path} must hold an array {MEMBER!r} of 0 and 1, or name two files: members, non-members")
    return load(path, regression=regression), np.asarray(arrays[MEMBER])


def _table(path: Path, label: str | None, regression: bool) -> tuple[Dataset, np.ndarray[Any, Any]]:
    """Read with "member" as the label; the label is then one of the other columns."""
    header = [name.strip() for name in first_row(path)]
    if MEMBER not in header:
        raise ValueError(f"{path} must have a column {MEMBER!r} of 0 and 1, or name two files: members, non-members")
    table = load(path, label=MEMBER)
    columns = [name for name in header if name != MEMBER]
    wanted = label or ("label" if "label" in columns else columns[-1])
    if wanted not in columns:
        raise ValueError(f"{path} has no column {wanted!r}: its columns are {', '.join(header)}")
    place = columns.index(wanted)
    features, labels = np.delete(table.features, place, axis=1), table.features[:, place]
    return from_arrays(path.stem, features, labels, regression=regression), table.labels


def attack(
    model: nn.Module | Any,
    members: Dataset,
    non_members: Dataset,
    *,
    attack: OwnAttack = "strongest",
    shadows: int = 32,
    queries: int = 1,
    training: ShadowTraining | None = None,
    train: Train | None = None,
    repeats: int = 5,
    seed: int = 0,
    delta: float | None = None,
    confidence: float = 0.95,
    exposure: bool = False,
    out: Path | str | None = None,
    resume: bool = False,
    processes: int | None = None,
    engine: Engine | str = "local",
    progress: Progress | None = None,
) -> AttackResult:
    """Attack one trained model; each repeat divides the records anew into those the attacker knows and those tested.

    The lower bound on epsilon and the interval of the average precision are those of the first repeat alone: further
    ones test the same records of the same model again. The result is the same wherever the blocks run.

    Args:
        model: The trained model: an `nn.Module`, or a fitted estimator with `predict_proba`; for a regression an
            `nn.Module` with one output, or an estimator with `predict`.
        members: Records that it was trained on; of a regression, `from_arrays(..., regression=True)`.
        non_members: Records that it never saw, of the same kind.
        attack: strongest (of those with shadow models and the loss threshold, the one that does best on the known
            half), all (the same, with every other attack beside it), or one by its name: lira, rmia, bayes (each also
            with -offline), quantile, whitebox, threshold.
        shadows: Shadow models, from 4 on.
        queries: Ways to show an image to a model; 1 for other records.
        training: How the target was trained, so that shadows are trained alike; what is not known is chosen.
        train: A training of your own, of records and a seed, for shadow models; in place of `training`.
        repeats: How many times records are divided.
        seed: Of the divisions, of shadow models and of the attack's own training.
        delta: At which epsilon is bounded. Default 1 / members.
        confidence: Of the interval and the lower bound together, each of which spends half of the risk.
        exposure: Say of every member, too, how sure LiRA is of it and how sure an observer of every step may be: needs
            the noise and the epochs of `training`.
        out: A directory in which every finished block is kept.
        resume: Go on in `out`, with the same model and records.
        processes: Workers of the local engine. Default 1; with more, the model's class must be importable.
        engine: Where the blocks run (`deniable.engines`).
        progress: Hears (blocks done, blocks in all).

    Returns:
        What every attack reached, with limits, and the lower bound on epsilon that it proves.

    Examples:
        >>> import deniable as dn
        >>> from sklearn.linear_model import LogisticRegression
        >>> records = dn.data.load("digits")
        >>> members, others = dn.data.split(records, 900, seed=0)
        >>> model = LogisticRegression(max_iter=20).fit(members.features.reshape(900, -1), members.labels)
        >>> dn.attack(model, members, others, attack="threshold", repeats=1, processes=1).input.attack
        'threshold'
    """
    chosen_engine = choose_engine(engine, 1 if engine == "local" and processes is None else processes)
    for name, records in (("members", members), ("non_members", non_members)):
        of_kind(
            name,
            records,
            Dataset,
            "records",
            "deniable.data.load(...) reads files, deniable.data.from_arrays(...) arrays",
        )
    repeated = _repeated_records(members, non_members)
    plan = AttackPlan(model, members, non_members, attack, repeats, seed, shadows, queries, training, train)
    allowed = probability("delta", 1 / len(members) if delta is None else delta)
    if exposure:
        check_exposure(plan)
    campaign = plan.campaign
    with open_store(chosen_engine, out, resume) as store:
        if store is not None:
            store.begin(campaign.settings)
        tell = None if progress is None else partial(_tell, progress, campaign.blocks)
        kept = play_missing(campaign, chosen_engine, store, tell=tell)
    found = _judge_plan(plan, kept, allowed, confidence, exposure)
    return found.replace(warning=" ".join(filter(None, (repeated, found.warning))) or None)


def _repeated_records(members: Dataset, non_members: Dataset) -> str | None:
    """A sentence where non-members have the very values of a member; refused where all of them have."""
    known = set(_values_of(members))
    shared = sum(values in known for values in _values_of(non_members))
    if shared == len(non_members):
        raise ValueError("non_members must be records that the model never saw: all of them are among the members")
    if not shared:
        return None
    return (
        f"{shared:,} of {len(non_members):,} non-members have exactly the values of a member: no attack can tell "
        "these apart, so the figures are lower than they would be without them."
    )


def _values_of(records: Dataset) -> Iterator[tuple[bytes, float]]:
    """Of each record, all its features and its label."""
    return zip((features.tobytes() for features in records.features), records.labels.tolist(), strict=True)


def campaign_of(
    model: nn.Module | Any,
    members: Dataset,
    non_members: Dataset,
    *,
    attack: OwnAttack = "strongest",
    shadows: int = 32,
    queries: int = 1,
    training: ShadowTraining | None = None,
    train: Train | None = None,
    repeats: int = 5,
    seed: int = 0,
) -> Campaign[PlayedBlock]:
    """The attack's blocks, as every engine plays them."""
    return AttackPlan(model, members, non_members, attack, repeats, seed, shadows, queries, training, train).campaign


def _tell(progress: Progress, total: int, done: int) -> None:
    progress(done, total)


def attack_confidences(
    table: ConfidenceTable,
    *,
    attack: OwnAttack = "strongest",
    repeats: int = 5,
    seed: int = 0,
    delta: float | None = None,
    confidence: float = 0.95,
) -> AttackResult:
    """The same judgement of confidences from elsewhere: a target's, and those of shadow models.

    Args:
        table: What a file of confidences holds (`read_confidence_table`).
        attack: strongest or all (the one that does best on the known half), lira, rmia, bayes, these with -offline, or
            threshold.
        repeats: How many times records are divided.
        seed: Of the divisions.
        delta: At which epsilon is bounded. Default 1 / members.
        confidence: Of the interval and the lower bound together.
    """
    one_of("attack", attack, (*CHOICES, *RULES))
    whole("repeats", repeats)
    found, judged = divide_rules(table.scores(table.rules if attack in CHOICES else (attack,)), table, repeats, seed)
    main = [found[name][repeat] for repeat, name in enumerate(judged)]
    given = AttackInput(
        attack=attack,
        repeats=repeats,
        seed=whole("seed", seed, low=0),
        delta=probability("delta", 1 / len(table.members) if delta is None else delta),
        confidence=confidence,
        data_sha256=(table.sha256,),
        members=len(table.members),
        non_members=len(table.non_members),
        tested=len(main[0].scores),
    )
    result = _judge_repeats(given, None, main, None)
    return result.replace(
        judged=judged,
        attacks=tuple(measure_attack(name, scored[0], given, None) for name, scored in found.items()),
        shadows=table.describe(),
    )


def _judge_plan(
    plan: AttackPlan, kept: Sequence[PlayedBlock], delta: float, confidence: float, exposed: bool
) -> AttackResult:
    found, judged, shadows = plan.read(kept)
    main = [found[name][repeat] for repeat, name in enumerate(judged)]
    asked = {
        **plan.settings,
        "delta": delta,
        "confidence": confidence,
        "members": len(plan.members),
        "non_members": len(plan.non_members),
        "tested": len(main[0].scores),
        "task": "regression" if plan.members.regression else "classification",
    }
    given = convert(asked, AttackInput)
    right = ModelAccuracy(
        members=accuracy(plan.model, plan.members), non_members=accuracy(plan.model, plan.non_members)
    )
    blind = Blind()(None, plan.members, plan.non_members, plan.seed)
    result = _judge_repeats(given, right, main, blind)
    differ = shift([blind])
    used = None if shadows is None else plan.describe_shadows(shadows)
    if used is not None:
        used = structs.replace(used, target_loss=float(losses(plan.model, plan.members).mean()))
    likelihoods = None if shadows is None else plan.likelihoods(shadows)
    people = expose_members(plan, likelihoods, delta) if exposed and likelihoods is not None else None
    return result.replace(
        judged=judged,
        attacks=tuple(measure_attack(name, scored[0], given, differ) for name, scored in found.items()),
        shadows=used,
        most_exposed=() if likelihoods is None else most_exposed(likelihoods, len(plan.members), people),
        exposure=people,
        proven=proven_limits(plan.training, len(plan.members), delta),
    )


def _judge_repeats(
    given: AttackInput, accuracy: ModelAccuracy | None, found: Sequence[Scored], blind: Scored | None
) -> AttackResult:
    each = 1 - (1 - given.confidence) / 2  # an outcome rests on either of two statements
    shifted = None if blind is None else shift([blind])
    limits = average_precision_interval(Scores(found[0].members, found[0].non_members), each)
    return AttackResult(
        input=given,
        accuracy=accuracy,
        average_precision=precisions(found),
        average_precision_interval=Ends(low=float(limits.low), high=float(limits.high)),
        advantage=advantages(found),
        tpr_at_fpr=rates_at(found),
        epsilon_lower_bound=void(lower_bound(found[:1], given.delta, each).result(), shifted),
        precision_recall=curve(found),
        blind=None if shifted is None else _blind(shifted),
        warning=UNSEEN if shifted is None else shifted.warning,
    )


def _blind(shifted: Shift) -> BlindMean:
    return BlindMean(average_precision=shifted.precision.mean, stays_below=shifted.chance, differs=shifted.found)
