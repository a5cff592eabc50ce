"""Does an installed deniable work? Run outside of the repository, in an environment with the wheel or sdist alone:

    python smoke.py [--kernels]

`make smoke` does so for every Python that is named. The basic installation has no torch: trainings are refused with the
way to get them. With --kernels an installation without the compiled part fails, too.
"""

from __future__ import annotations

import json
import subprocess
import sys

import deniable as dn


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "deniable", *arguments], capture_output=True, text=True, check=False)


def main() -> None:
    """Numbers, a calibration, JSON both ways, the command line and its refusals."""
    assert "site-packages" in dn.__file__, f"not the installed package: {dn.__file__}"
    loss = dn.privacy_loss(dn.Gaussian(1.0).subsampled(0.01).composed(1000), "add-remove")
    assert abs(loss.epsilon(1e-5) - 1.8282366665) < 1e-9, loss.epsilon(1e-5)
    assert abs(loss.advantage() - 0.1610176196) < 1e-9, loss.advantage()
    found = dn.calibrate(dn.Gaussian, dn.Belief(bound=0.75, delta=1e-5))
    assert found.loss.belief(1e-5) <= 0.75
    result = dn.explain(dn.ApproximateDP(1.0, 1e-5), delta=1e-5)
    assert dn.results.read_result(json.loads(result.to_json())) == result
    shown = run("choose", "--belief", ".75", "--records", "60000", "--batch", "300", "--epochs", "30", "--json")
    assert shown.returncode == 0, shown.stderr
    json.loads(shown.stdout)
    assert run("explain", "--epsilon", "-1").returncode == 2
    shown = run("--version").stdout
    assert f"deniable {dn.__version__}\ncompiled kernels: " in shown, shown
    doctor = json.loads(run("doctor", "--json").stdout)
    missing = {package["name"] for package in doctor["packages"] if package["version"] is None}
    refused = run("audit", "digits", "--belief", ".9", "--trials", "2")
    if "torch" in missing:
        assert "pip install 'deniable[train]'" in refused.stderr, refused.stderr
    if "--kernels" in sys.argv[1:]:
        assert doctor["kernels"].startswith(("in use", "built")), doctor["kernels"]
    print(
        f"deniable {dn.__version__} works with Python {sys.version.split()[0]}; "
        f"compiled kernels {doctor['kernels']}; missing: {sorted(missing) or 'nothing'}"
    )


if __name__ == "__main__":
    main()
