"""Local against central privacy: what an attacker achieves and what accuracy is left (Bernau 2021b).

comparison_plan (data, levels, attack) | play (train, attack, keep on disk), trained | repeat_measures (means, spread,
bounds) | recommendation (words) | compare_levels (`compare` and its result) | own_model, attack_plan, attack_measures,
confidence_table (`attack`, on a model of one's own).
"""

from __future__ import annotations

from deniable.comparison.compare_levels import compare, judge, run
from deniable.comparison.comparison_plan import ComparisonPlan, Level
from deniable.comparison.play import play

__all__ = ["ComparisonPlan", "Level", "compare", "judge", "play", "run"]
