"""The house itself: what an import costs, which pins stand where, and that the import contracts bite."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import deniable
from slow import SLOW, is_slow

ROOT = Path(__file__).resolve().parent.parent
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PIN = re.compile(r"([a-z0-9-]+)==([0-9][0-9a-z.]*)")
# Joined here, so that this file does not contain what it looks for.
REGISTRIES = [f"{name}.org".encode() for name in ("pypi", "pythonhosted", "pytorch", "anaconda")]
HEAVY = ("torch", "sklearn", "matplotlib", "typer", "rich", "scipy.stats", "pyarrow")


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    matches = [PIN.fullmatch(line) for line in lines]
    assert all(matches), [line for line, match in zip(lines, matches, strict=True) if not match]
    return {match[1]: match[2] for match in matches if match}


def requirements() -> list[Requirement]:
    optional = METADATA["optional-dependencies"].values()
    return [Requirement(text) for group in (METADATA["dependencies"], *optional) for text in group]


def own_files() -> list[Path]:
    """Tracked files and those about to be, without what .gitignore leaves out."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: the project's own files cannot be told from others")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_import_loads_nothing_heavy() -> None:
    program = f"import deniable, sys; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_metadata_never_pins_torch() -> None:
    specifiers = [part.operator for wanted in requirements() if wanted.name == "torch" for part in wanted.specifier]
    assert set(specifiers) == {">="}


def test_constraints_pin_torch_exactly() -> None:
    assert pins()["torch"] == "2.13.0"


def test_constraints_pin_every_direct_requirement_within_its_range() -> None:
    pinned = pins()
    for wanted in requirements():
        assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)]), wanted


def test_constraints_name_no_accelerator_packages() -> None:
    assert not [name for name in pins() if name.startswith(("nvidia", "cuda", "triton"))]


def test_no_file_names_a_registry() -> None:
    naming = [
        (file.relative_to(ROOT), host)
        for file in own_files()
        for host in REGISTRIES
        if host in file.read_bytes().lower()
    ]
    assert naming == []


def test_changelog_leads_with_this_version() -> None:
    headings = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == deniable.__version__


def test_the_citation_has_this_version() -> None:
    assert f"\nversion: {deniable.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_wheels_are_made_for_the_pythons_that_are_claimed() -> None:
    built = re.findall(r"cp3(\d+)-\*", (ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    claimed = re.findall(r":: 3\.(\d+)", " ".join(METADATA["classifiers"]))
    assert built == claimed == ["11", "12", "13"]


def test_a_source_distribution_holds_what_it_takes_to_test_it(tmp_path: Path) -> None:
    place = tmp_path / "house"
    place.mkdir()
    for file in own_files():
        if not file.is_relative_to(ROOT / "docs" / "results"):  # pictures, which take longest
            (place / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place / file.relative_to(ROOT))
    build = "from setuptools.build_meta import build_sdist; build_sdist('made')"
    subprocess.run([sys.executable, "-W", "ignore", "-c", build], cwd=place, capture_output=True, check=True)
    (archive,) = (place / "made").glob("deniable-*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    wanted = {
        "CHANGELOG.md",
        "constraints.txt",
        "LICENSE",
        "Makefile",
        "mkdocs.yml",
        "tests/draws.py",
        "hunt/__main__.py",
    }
    assert wanted <= names
    assert {"src/deniable/training/_vectors.h", "src/deniable/web/static/vendor/uPlot.LICENSE.txt"} <= names
    assert {str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("*.py")} <= names
    assert not [name for name in names if name.endswith(".so")]


def test_slow_tests_are_named_rightly() -> None:
    """A name that fits nothing would let a slow test into `make quick`."""
    for entry in SLOW:
        file, _, name = entry.partition("::")
        place = ROOT / "tests" / file
        assert place.exists(), entry
        assert not name or f"def {name.partition('[')[0]}(" in place.read_text(), entry  # also of one parameter
    assert is_slow("loss/test_apart.py::test_any[3]")
    assert not is_slow("loss/test_pair.py::test_any")


def test_every_room_of_the_contracts_is_described() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = set(re.findall(r"\w+", " ".join(contracts[0]["layers"]))) - {"__main__"}
    text = (ROOT / "CONTRIBUTING.md").read_text()
    described = re.findall(
        r"^    (\S.{26}|  \| .{24})", text[text.index("## The rooms") : text.index("## Pins")], re.MULTILINE
    )
    assert rooms == set(re.findall(r"[a-z]+", " ".join(line for line in described if not line.startswith("---"))))


def contracts_hold(house: Path) -> bool:
    """Whether import-linter accepts the package in `house`/src; a configuration error is a failure of the test."""
    run = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache", "--config", ROOT / "pyproject.toml"],
        cwd=house,
        env={"PYTHONPATH": str(house / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts: " in run.stdout, run.stdout + run.stderr
    return run.returncode == 0


@pytest.fixture
def house(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src" / "deniable", tmp_path / "src" / "deniable")
    return tmp_path


def add(house: Path, room: str, line: str) -> None:
    """Append an import to a room, as a lazy import, which is no way round the contracts; make the room if needed."""
    package = house / "src" / "deniable" / room
    module = package / "__init__.py" if package.is_dir() else package.with_suffix(".py")
    before = module.read_text() if module.exists() else ""
    module.write_text(f"{before}\n\ndef _lazy() -> None:\n    {line}\n")


@pytest.mark.parametrize(
    ("room", "line"),
    [
        ("checks", "import torch"),
        ("mechanisms", "import matplotlib.pyplot"),
        ("bounds", "import sklearn.metrics"),
        ("loss", "from rich import print"),
        ("scores", "import typer"),
        ("checks", "from deniable.mechanisms import Gaussian"),
        ("loss", "import deniable.mechanisms, deniable.calibration"),
        ("mechanisms", "import deniable.cli"),
        ("report", "import deniable.cli"),
        ("training", "import deniable.adversaries"),
        ("local", "import deniable.training"),
        ("loss", "import deniable.store"),
        ("store", "import deniable.mechanisms"),
        ("a_room_without_a_place", "pass"),
        ("loss/pairs/pair", "import deniable.loss.compose.grid"),
        ("loss/moments/nodes", "import deniable.loss.pairs.step"),
    ],
)
def test_contracts_refuse(house: Path, room: str, line: str) -> None:
    for other in ("cli", "calibration", "adversaries", "training", "store"):
        add(house, other, "pass")
    add(house, room, line)
    assert not contracts_hold(house)


def test_contracts_allow_the_design(house: Path) -> None:
    for room in ("loss", "bounds", "store", "data"):
        add(house, room, "import deniable.checks, numpy, scipy.special")
    add(house, "scores", "import deniable.loss")
    add(house, "calibration", "import deniable.scores, deniable.bounds")
    add(house, "training", "import deniable.mechanisms, deniable.data, torch")
    add(house, "adversaries", "import deniable.training, sklearn")
    add(house, "evidence", "import deniable.scores, numpy, scipy.special")
    add(house, "campaigns", "import deniable.adversaries, deniable.evidence, torch")
    add(house, "examination", "import deniable.campaigns, torch")
    add(house, "experiments", "import deniable.campaigns, deniable.calibration, deniable.store")
    add(house, "report", "import matplotlib, jinja2")
    add(house, "cli", "import deniable.experiments, deniable.report, typer, rich")
    assert contracts_hold(house)


def test_rooms_are_imported_when_asked_for() -> None:
    """In a fresh process, since a module that anybody imported is an attribute of the package."""
    rooms = ("bounds", "data", "local", "training", "campaigns")
    program = (
        "import deniable as dn, sys, inspect; assert 'torch' not in sys.modules; assert inspect.isfunction(dn.audit); "
        "import deniable.campaigns.audit; assert inspect.isfunction(dn.audit); assert inspect.isfunction(dn.examine); "
        "import deniable.examination.examine; assert not {'sklearn', 'scipy.stats'} & set(sys.modules); "
        f"assert {set(rooms)} <= set(dir(dn)); "
        f"print(*(getattr(dn, room).__name__ for room in {rooms}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [f"deniable.{room}" for room in rooms], done.stderr


def test_names_are_listed_by_packages_alone() -> None:
    """A list inside a room says what underscores say, and nothing holds it to the truth."""
    house = ROOT / "src" / "deniable"
    inner = (path for path in house.rglob("*.py") if path.name != "__init__.py" and path.parent != house)
    listed = [str(path.relative_to(house)) for path in inner if re.search(r"^__all__", path.read_text(), re.MULTILINE)]
    assert listed == ["promises/table.py"]  # `import deniable` offers what it lists


MAPPED = [file.parent for file in sorted((ROOT / "src").rglob("__init__.py")) if ") | " in file.read_text()]


@pytest.mark.parametrize("room", MAPPED, ids=lambda room: room.name)
def test_a_room_is_mapped_as_it_is(room: Path) -> None:
    """The last paragraph of its docstring names every file and folder of the room, and nothing else."""
    document = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
    named = set(re.findall(r"\w+", re.sub(r"\([^()]*(\([^()]*\))?[^()]*\)", "", document.rpartition("\n\n")[2])))
    inside = {file.stem for file in room.glob("*.py")} | {file.parent.name for file in room.glob("*/*.*")}
    assert named == inside - {"__init__", "__pycache__"}


def test_every_file_that_is_named_is_there() -> None:
    """Of Python, in docstrings, comments, pages and kernels; a page on a choice may tell of what was rejected."""
    files = {file.name for file in own_files()} | {"script.py", "mine.py", "nowhere.py", "sitecustomize.py"}
    gone = {
        (str(file.relative_to(ROOT)), name)
        for file in own_files()
        if file.suffix in {".py", ".c", ".h", ".md"} and file.parts[-2] not in {"results", "decisions", "tests"}
        for name in re.findall(r"(?<![\w./*{<-])(?:src/deniable/|[a-z_]+/)*([a-z_]+\.py)\b", file.read_text())
        if name not in files and "tests" not in file.parts
    }
    assert not gone
