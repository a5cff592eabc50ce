"""The picture of a watch: drawn from what the result keeps, its words from its numbers."""

from __future__ import annotations

import numpy as np

from deniable.evidence.anytime.watch import Watch
from deniable.mechanisms import GaussianDP
from deniable.report.pictures.observer_pictures import watch_picture
from deniable.results.shared import Watched
from deniable.scores import privacy_loss


def watched(true: float, trials: int, blocks: int) -> Watched:
    draw = np.random.default_rng(0)
    watch = Watch(privacy_loss(GaussianDP(1.0)), trials, 0.05)
    for _ in range(blocks):
        on_d = draw.random(trials // blocks) < 0.5
        watch.count(np.where(on_d, 0.5, -0.5) + draw.standard_normal(on_d.size) / true, on_d)
    evidence = watch.evidence()
    return evidence.result(evidence.bare_bound(0.0))


def test_the_evidence_at_the_looks_is_kept() -> None:
    caught, kept = watched(3.0, 300, 300), watched(1.0, 300, 300)
    for found in (caught, kept):
        assert len(found.looks) == len(found.evidence)
        assert found.looks[0] == 1
        assert found.looks[-1] == found.trials == 300
        assert max(found.evidence) <= found.wealth * (1 + 1e-3)
    after = next(trials for trials, value in zip(caught.looks, caught.evidence, strict=True) if value >= 20)
    assert after == caught.refuted_after
    assert max(kept.evidence) < 20


def test_a_picture_is_drawn_from_two_looks_on_and_tells_what_it_shows() -> None:
    assert watch_picture(None) == ()
    assert watch_picture(watched(1.0, 10, 1)) == ()
    (picture,) = watch_picture(found := watched(2.0, 100, 20))
    assert picture.told.startswith(found.text)
    assert "At 20 (dashed)" in picture.told
    (axis,) = picture.draw(picture.data).axes
    assert axis.get_yscale() == "log"
    assert axis.lines[0].get_xdata().tolist() == list(found.looks)
    assert axis.get_ylim()[0] < min(found.evidence) <= max(found.evidence) < axis.get_ylim()[1]
