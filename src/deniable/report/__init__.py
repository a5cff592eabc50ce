"""Records -> figures and a page; everything is drawn from the audit's document and its trials."""

from __future__ import annotations

from deniable.report.page import write

__all__ = ["write"]
