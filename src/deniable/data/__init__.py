"""Data sets, how unlike two records are, and the choice of the neighbour D' (Bernau 2021, Section 5.1)."""

from __future__ import annotations

from deniable.data.dataset import Dataset, Kind, split
from deniable.data.dissimilarity import MEASURES, dissimilarity
from deniable.data.neighbours import Neighbour, Progress, least_dissimilar, most_dissimilar
from deniable.data.own_data import from_arrays, import_function
from deniable.data.registry import LEAKING_RECORDS, NAMES, Part, digits, load, purchases, skewed_purchases

__all__ = [
    "LEAKING_RECORDS",
    "MEASURES",
    "NAMES",
    "Dataset",
    "Kind",
    "Neighbour",
    "Part",
    "Progress",
    "digits",
    "dissimilarity",
    "from_arrays",
    "import_function",
    "least_dissimilar",
    "load",
    "most_dissimilar",
    "purchases",
    "skewed_purchases",
    "split",
]
