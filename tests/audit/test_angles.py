"""Noise that is used again is told from noise of few directions, whose cosines are large by chance."""

from __future__ import annotations

import numpy as np

from deniable.examination.diagnostics.dependence import Angles


def angles(vectors: np.ndarray, across: np.ndarray) -> Angles:
    """Of (vectors, numbers) as steps of one training, and of others as steps of other trainings."""

    def cosines(rows: np.ndarray) -> np.ndarray:
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return (unit @ unit.T)[np.triu_indices(len(rows), 1)]

    within = cosines(vectors)
    return Angles(vectors.shape[1], within, within, np.empty(0), cosines(across), 1.0, 1.0)


def test_noise_of_few_directions_is_not_called_used_again() -> None:
    generator = np.random.default_rng(0)
    few = generator.normal(size=(60, 3)) @ generator.normal(size=(3, 40))
    found = angles(few[:30], few)
    assert np.abs(found.within).max() > 0.95
    assert found.directions < 6
    assert not found.is_copied(found.within)


def test_noise_that_is_used_again_is_called_so() -> None:
    generator = np.random.default_rng(1)
    fresh = generator.normal(size=(60, 40))
    again = np.concatenate([fresh[:10], -fresh[:1]])
    found = angles(again, fresh)
    assert found.directions > 25
    assert found.is_copied(found.within)
    assert not angles(fresh[:30], fresh).is_copied(angles(fresh[:30], fresh).within)


def test_no_noise_has_no_angles() -> None:
    nothing = np.empty(0)
    found = Angles(40, nothing, nothing, nothing, nothing, 1.0, 1.0)
    assert found.directions == 40
    assert not found.is_copied(found.within)
