"""A user's script as a module: its functions and claims by their names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from deniable.data.own_data import call_user_code


@contextmanager
def imported_script(name: str) -> Iterator[ModuleType]:
    """The module of a file ``folder/script.py`` or of a name; others in its folder are found, as Python does it."""
    path = Path(name)
    is_file = name.endswith(".py")
    if is_file and not path.is_file():
        raise ValueError(f"there is no file {name!r}")
    folder = str(path.resolve().parent if is_file else Path.cwd())
    sys.path.insert(0, folder)
    try:
        yield call_user_code(name, lambda: _run_file(path.resolve()) if is_file else import_module(name))
    except ModuleNotFoundError as error:
        raise ValueError(f"{name}: there is no module {error.name!r} in {folder} or the installed packages") from error
    finally:
        sys.path.remove(folder)


def _run_file(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # where dataclasses and pickles of the script look for their names
    try:
        spec.loader.exec_module(module)
    except BaseException:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
        raise
    return module


def named_in(module: ModuleType, name: str) -> Any:
    """What has this name in the script; refused where nothing has."""
    if not hasattr(module, name):
        raise ValueError(f"{getattr(module, '__file__', module.__name__)} has nothing named {name!r}")
    return getattr(module, name)
