"""The hunt: random questions with fresh seeds, each answered by at least two independent routes.

    make hunt                          every ground, ten minutes
    make hunt HUNT_MINUTES=120         longer
    python -m hunt theory --seed 7     one ground, one case again

A *ground* is a module of this folder with one function, `look(seed) -> Find | None`: it makes one random case from the
seed, checks it, and returns what is wrong with it, shrunk to a call of one line. A find becomes a test.
"""
