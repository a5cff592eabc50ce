"""Files of other tools: JSON of a bounded size and depth, nothing that could run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deniable.checks import RefusedError

MOST_BYTES = 4_000_000
"""Of a file, or of what is sent to the planner."""


def read_document(field: str, path: Path | str) -> Any:
    """The JSON value of a file; `field` is named in a refusal."""
    place = Path(path)
    try:
        with place.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as refused:
        raise RefusedError(f"{{{field}}} {place}: {refused.strerror or refused}", field, str(path)) from refused
    return read_text(field, content, place.name)


def read_text(field: str, content: bytes | str, name: str = "the document") -> Any:
    """The JSON value of a text, as a file's."""
    if len(content) > MOST_BYTES:
        raise RefusedError(f"{{{field}}} {name} is larger than {MOST_BYTES / 1e6:g} MB", field, name)
    try:
        return json.loads(content)
    except RecursionError as refused:
        raise RefusedError(f"{{{field}}} {name} is nested too deeply", field, name) from refused
    except ValueError as refused:  # also bytes that are no text
        raise RefusedError(f"{{{field}}} {name} is not JSON: {refused}", field, name) from refused
