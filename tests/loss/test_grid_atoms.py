"""Atoms at the edges of cells: whichever way round-off places them, no tail may lose them."""

from math import exp

import pytest

import deniable as dn


@pytest.mark.parametrize(
    ("rate", "epsilon", "steps"),
    [
        (0.7411688324822225, 1.0, 2),
        (0.8373464168565662, 0.6092693467484578, 3),
        (0.5069267761449234, 1.0298405847586298, 4),
        (0.6883778291519332, 1.8654069898952415, 4),
        (0.4481808551428858, 0.1301718848748044, 4),
    ],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_an_atom_on_an_edge_is_in_exactly_one_cell(rate: float, epsilon: float, steps: int, backwards: bool) -> None:
    """The attack that accuses where every step's loss is near its largest is a lower bound without any grid."""
    step = dn.Laplace(1 / epsilon).subsampled(rate)
    single, whole = (
        dn.privacy_loss(mechanism, adjacency="add-remove").pair for mechanism in (step, step.composed(steps))
    )
    if backwards:
        single, whole = single.reverse(), whole.reverse()
    t = 0.95 * single.largest_finite
    p, q = single.tail(t).least ** steps, single.null_tail(t).least ** steps
    assert whole.tail(steps * t) >= p * (1 - 1e-9)
    assert whole.null_tail(steps * t) >= q * (1 - 1e-9)
    assert whole.hockey_stick(steps * t) >= (p - exp(steps * t) * q) * (1 - 1e-6) - 1e-12
