"""What a question leaves behind."""

from __future__ import annotations

import gc
import pickle
from weakref import ref

import pytest

import deniable as dn

RELEASES = [
    dn.Gaussian(1.0).subsampled(0.01).composed(100),
    dn.Laplace(3.0).subsampled(0.1).composed(10),
    dn.compose(dn.Laplace(3.0).subsampled(0.1), dn.RandomizedResponse(1.0, 3)),
]


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_nothing_stays_when_the_loss_is_forgotten(release):
    """Both directions kept each other alive: a grid's 100 MB stayed until Python looked for cycles."""
    gc.collect()
    gc.disable()
    try:
        loss = dn.privacy_loss(release, "add-remove")
        loss.tpr(0.01)
        pairs = [ref(loss.pair), ref(loss.pair.reverse())]
        del loss
        assert [pair() for pair in pairs] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_mirror_shows_the_pair_while_it_lives_and_an_equal_one_after(release):
    pair = dn.privacy_loss(release, "add-remove").pair
    value, mirror = pair.hockey_stick(0.5), pair.reverse()
    assert mirror.reverse() is pair
    del pair
    assert mirror.reverse().hockey_stick(0.5) == value


def test_a_mirror_can_be_sent_to_another_process():
    """But for where it came from."""
    pair = dn.privacy_loss(RELEASES[1], "add-remove").pair
    sent = pickle.loads(pickle.dumps(pair.reverse()))
    assert sent.reverse().hockey_stick(0.5) == pair.hockey_stick(0.5)
