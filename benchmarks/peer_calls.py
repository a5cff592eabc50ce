"""What other tools print, behind docs/compared-with.md: `python benchmarks/peer_calls.py TOOL`.

Nothing of deniable is imported, so that each tool can have the versions that it needs. Files are written into the
current folder.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np


def scores() -> tuple[np.ndarray, np.ndarray]:
    """An attack's scores of 400 members and 400 others, two standard deviations apart."""
    random = np.random.default_rng(0)
    return random.normal(2, 1, 400), random.normal(0, 1, 400)


def jax_privacy() -> str:
    from jax_privacy.auditing import CanaryScoreAuditor  # noqa: PLC0415

    found = CanaryScoreAuditor(*scores()).epsilon_clopper_pearson(significance=0.05, delta=1e-5)
    return f"epsilon at least {found:.3g}"


def opake_auditing() -> str:
    """800 canaries with a fair coin each; their scores are kept, for `deniable verdict --from one-run`."""
    from opake import auditing  # noqa: PLC0415
    from opake.random import key  # noqa: PLC0415

    coins = auditing.coin_flip(list(range(1000)), num_canaries=800, key=key(0))
    canaries, random = np.asarray(coins.canary_indices), np.random.default_rng(0)
    inside = np.isin(canaries, np.asarray(coins.train_indices(1000)))
    found = np.array([random.normal(2 if member else 0, 1) for member in inside])
    Path("scores.csv").write_text(
        "score,member\n" + "".join(f"{score},{int(member)}\n" for score, member in zip(found, inside, strict=True))
    )
    estimate = auditing.one_run(auditing.canary_scores(found, canary_indices=canaries), coin_flip=coins)
    proven, gaussian = (method.epsilon_at(delta=1e-5) for method in (estimate.eps_delta(), estimate.gdp()))
    return (
        f"{inside.sum()} canaries of 800 in; epsilon at least {proven:.3g}, if the release is Gaussian {gaussian:.3g}"
    )


def tensorflow_privacy() -> str:
    from tensorflow_privacy.privacy.analysis import compute_dp_sgd_privacy_lib as analysis  # noqa: PLC0415

    said = analysis.compute_dp_sgd_privacy_statement(
        number_of_examples=60_000,
        batch_size=300,
        num_epochs=30,
        noise_multiplier=1.0,
        delta=1e-5,
        used_microbatching=False,
    )
    return "; ".join(" ".join(line.split()) for line in said.splitlines() if "Epsilon" in line)


def sacroml() -> str:
    import logging  # noqa: PLC0415

    from sacroml.attacks.target import Target  # noqa: PLC0415
    from sacroml.attacks.worst_case_attack import WorstCaseAttack  # noqa: PLC0415
    from sklearn.datasets import load_breast_cancer  # noqa: PLC0415
    from sklearn.ensemble import RandomForestClassifier  # noqa: PLC0415
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    logging.disable(logging.CRITICAL)
    features, labels = load_breast_cancer(return_X_y=True)
    inside, outside, known, other = train_test_split(features, labels, test_size=0.5, stratify=labels, random_state=0)
    model = RandomForestClassifier(bootstrap=False, random_state=0).fit(inside, known)
    data = {"X_train": inside, "y_train": known, "X_test": outside, "y_test": other}
    found = WorstCaseAttack(n_reps=5, output_dir="sacroml").attack(Target(model=model, dataset_name="cancer", **data))
    first = next(iter(found["attack_experiment_logger"]["attack_instance_logger"].values()))
    return f"AUC {first['AUC']:.3f}; wrote {', '.join(sorted(path.name for path in Path('sacroml').glob('report.*')))}"


def ml_privacy_meter() -> str:
    """RMIA of the repository's `attacks.py`, in the current folder: eight models of digits, each on half of 1,000."""
    sys.path.insert(0, ".")
    from attacks import run_rmia  # type: ignore[import-not-found]  # noqa: PLC0415
    from sklearn.datasets import load_digits  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    features, labels = load_digits(return_X_y=True)
    member, random = np.zeros((1000, 8), bool), np.random.default_rng(0)
    for pair in range(0, 8, 2):
        member[random.permutation(1000)[:500], pair] = True
        member[:, pair + 1] = ~member[:, pair]
    right = np.zeros((len(features), 8))
    for place, inside in enumerate(member.T):
        model = LogisticRegression(C=1e3, max_iter=300).fit(features[:1000][inside], labels[:1000][inside])
        right[:, place] = model.predict_proba(features)[np.arange(len(features)), labels]
    found = run_rmia(0, right[:1000], right[1000:], member, num_reference_models=3, offline_a=0.0)
    return f"RMIA, three reference models: AUC {roc_auc_score(member[:, 0], found):.3f}"


def dp_wizard() -> str:
    import polars as pl  # noqa: PLC0415
    from dp_wizard.types import Product  # noqa: PLC0415
    from dp_wizard.utils.code_generators import AnalysisPlan, AnalysisPlanColumn  # noqa: PLC0415
    from dp_wizard.utils.code_generators.script_generator import ScriptGenerator  # noqa: PLC0415

    ages = np.random.default_rng(0).integers(18, 80, 1000)
    Path("people.csv").write_text("age\n" + "".join(f"{age}\n" for age in ages))
    plan = AnalysisPlan(
        product=Product.STATISTICS,
        path="people.csv",
        contributions=1,
        contributions_entity="Individual",
        epsilon=1.0,
        max_rows=1000,
        groups={},
        analysis_columns={"age": [AnalysisPlanColumn("Mean", 18, 80, 10, 1)]},
        schema_columns={"age": pl.Int32()},
    )
    code = ScriptGenerator(plan, "").make_py()
    Path("release.py").write_text(code)
    command = [sys.executable, "release.py", "--csv", "people.csv"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    told = next(word for word in reversed(said.split()) if word.replace(".", "").isdigit())
    return (
        f"a script of {len(code.splitlines())} lines; its private mean of age {float(told):.1f}, true {ages.mean():.1f}"
    )


TOOLS: dict[str, Callable[[], str]] = {
    "jax-privacy": jax_privacy,
    "opake-auditing": opake_auditing,
    "tensorflow-privacy": tensorflow_privacy,
    "sacroml": sacroml,
    "ml_privacy_meter": ml_privacy_meter,
    "dp-wizard": dp_wizard,
}


def main() -> None:
    """Version, answer and CPU seconds, without imports."""
    warnings.simplefilter("ignore")
    tool = sys.argv[1]
    version = "repository" if tool == "ml_privacy_meter" else importlib.metadata.version(tool)
    start = time.process_time()
    print(f"{tool} {version}: {TOOLS[tool]()}, {time.process_time() - start:.1f} s")


if __name__ == "__main__":
    main()
