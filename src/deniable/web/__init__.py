"""The planner: a page for people who decide, and the JSON API behind it.

`create_app` makes the application; `deniable serve` runs it. Every number is that of `deniable.answers.explain`.
"""

from __future__ import annotations

from deniable.web.app import create_app

__all__ = ["create_app"]
