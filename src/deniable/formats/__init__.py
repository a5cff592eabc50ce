"""What other tools write down of a release, read as mechanisms of ours; what is not known is refused by its name."""

from __future__ import annotations

from deniable.formats.dp_events import from_dp_event
from deniable.formats.loss_distributions import from_pld
from deniable.formats.opacus_history import from_opacus

__all__ = ["from_dp_event", "from_opacus", "from_pld"]
