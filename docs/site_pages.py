"""The pages that are made from the code and from the files beside docs/, and the order of all pages.

A hook of mkdocs (mkdocs.yml). A new page in docs/theory or docs/decisions, a new room in src/deniable and a new command
take their place by themselves; only their order is written here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click
from typer.main import get_command

from deniable.cli import app

ROOT = Path(__file__).parents[1]
BESIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files beside docs/ that are pages, too."""
FIRST = ("README", "index", "glossary", "contour", "grid", "lattice", "samplers", "mechanisms", "evidence")
LAST = ("errata", "references")
AUDIT = ("watched_run", "frameworks", "privacy_tests", "canaries", "read-a-verdict", "pitfalls", "attacks", "scale")
TRUST = ("numbers", "validation", "compared-with", "results/RESULTS")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the made pages, and set the order of all."""
    made = {**_beside(), **_api(), **_notebooks(), **_examples(), "command-line.md": _command_line()}
    for name, content in made.items():
        files.append(File.generated(config, name, content=content))
    pages = [file.src_uri for file in files.documentation_pages()]
    folders = [{"Notebooks": _of("notebooks", pages)}, {"Examples": _of("examples", pages)}]
    config.nav = [
        {"Start": ["index.md", "five-minutes.md", "limitations.md", "tour.md", *folders]},
        {"Choose": ["which-promise.md", "samplers.md", "frontier.md", "privacy-officers.md"]},
        {"Audit": [f"{name}.md" for name in AUDIT]},
        {"Trust": [*(f"{name}.md" for name in TRUST), {"Theory": _of("theory", pages)}]},
        {"Look up": ["command-line.md", "formats.md", {"Python": _of("api", pages)}]},
        {"Take part": ["contributing.md", "cite.md", "changelog.md", {"Decisions": _of("decisions", pages)}]},
    ]
    return files


def _of(folder: str, pages: list[str]) -> list[str]:
    """A folder's pages, those that a reader needs first before the others."""

    def order(page: str) -> tuple[int, str]:
        name = page.rpartition("/")[2].removesuffix(".md")
        return (FIRST.index(name) if name in FIRST else len(FIRST) + (name in LAST), name)

    return sorted((page for page in pages if page.startswith(f"{folder}/")), key=order)


def _beside() -> dict[str, str]:
    """README, CONTRIBUTING and CHANGELOG, with their links as seen from docs/."""
    found = {}
    for source, name in BESIDE.items():
        text = (ROOT / source).read_text().replace("](docs/", "](")
        text = re.sub(r"\]\((notebooks/\w+)\.ipynb", r"](\1.md", text)
        text = re.sub(r"\]\((examples/\w+)/README\.md", r"](\1.md", text)
        for other, page in BESIDE.items():
            text = text.replace(f"]({other}", f"]({page}")
        found[name] = text
    return found


def _api() -> dict[str, str]:
    """One page for the package and one for each of its rooms."""
    house = ROOT / "src" / "deniable"
    rooms = sorted(path.stem for path in house.iterdir() if _has_names(path))
    index = "# Python\n\n::: deniable\n    options:\n      heading_level: 2\n"
    pages = {f"api/{room}.md": f"# deniable.{room}\n\n::: deniable.{room}\n" for room in rooms}
    return {"api/index.md": index, **pages}


def _notebooks() -> dict[str, str]:
    """The notebooks with the outputs that they hold; tests/test_notebooks.py makes these."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        found[f"notebooks/{path.stem}.md"] = "\n\n".join(part for cell in cells for part in _cell(cell)) + "\n"
    return found


def _examples() -> dict[str, str]:
    """Each example project: what it says of itself, then its files."""
    found = {}
    for page in sorted((ROOT / "examples").glob("*/README.md")):
        files = sorted(page.parent.rglob("*.py"))
        parts = [f"## {file.relative_to(page.parent)}\n\n```python\n{file.read_text()}```" for file in files]
        found[f"examples/{page.parent.name}.md"] = "\n\n".join([page.read_text(), *parts]) + "\n"
    return found


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    yield source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```"
    for output in cell.get("outputs", ()):
        picture = output.get("data", {}).get("image/png")
        if picture:
            yield f'<img alt="What the code above draws" src="data:image/png;base64,{picture}">'
        else:
            printed = "".join(output.get("text") or output["data"]["text/plain"]).rstrip("\n")
            yield f"```text\n{printed}\n```"


def _has_names(path: Path) -> bool:
    """Whether a room is public: it lists its names."""
    file = path / "__init__.py" if path.is_dir() else path
    private = path.stem.startswith("_") or path.stem in ("cli", "web")
    return not private and file.suffix == ".py" and file.exists() and "__all__" in file.read_text()


def _command_line() -> str:
    """Every command with its options, from the code."""
    group = get_command(app)
    context = typer.Context(group, info_name="deniable")
    text = get_docs_for_click(obj=group, ctx=context, name="deniable", title="Command line")
    for name, command in group.commands.items():  # the list of commands cuts its sentences off
        text = re.sub(
            rf"^\* `{name}`: .*\.\.\.$", f"* `{name}`: {command.get_short_help_str(200)}", text, flags=re.MULTILINE
        )
    return re.sub(r"^deniable .*$", r"    \g<0>", text, flags=re.MULTILINE)  # examples stand as code
