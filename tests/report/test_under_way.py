"""A campaign under way, in sentences that follow its figures."""

from __future__ import annotations

from typing import Any

import pytest

from deniable.report.under_way import sentences
from deniable.results.status_result import StatusResult


def told(**figures: Any) -> str:
    usual = {"blocks": 10, "finished": 4, "under_way": 0, "blocks_a_minute": 0.0, "seconds_left": None, "nodes": {}}
    return " ".join(
        sentences(StatusResult(**{**usual, "is_certain": False, "evidence": None, "finish": "F", **figures}))
    )


@pytest.mark.parametrize(
    ("rate", "seconds", "said"),
    [
        (0.5, 720.0, "0.5 blocks a minute on one (2 CPU); about 12 minutes left."),
        (1363.4, 0.2, "1,363 blocks a minute on one (2 CPU); about 1 second left."),
        (3.0, 119.0, "3 blocks a minute on one (2 CPU); about 119 seconds left."),
        (3.0, 4e5, "3 blocks a minute on one (2 CPU); about 5 days left."),
        (3.0, None, "3 blocks a minute on one (2 CPU)."),
    ],
)
def test_rate_and_time(rate: float, seconds: float | None, said: str) -> None:
    assert told(blocks_a_minute=rate, seconds_left=seconds, nodes={"one": 2.0}) == f"4 of 10 blocks finished. {said}"


def test_the_end() -> None:
    assert told() == "4 of 10 blocks finished. Nobody plays it now, or has said so for five minutes."
    assert told(under_way=2, blocks=None).startswith("4 blocks finished, 2 under way.")
    assert told(finished=10) == "10 of 10 blocks finished. This judges the blocks: F"
    certain = "The answer was certain before all trials were played: workers play no more of them."
    assert told(is_certain=True) == f"4 of 10 blocks finished. {certain} This judges the blocks: F"
