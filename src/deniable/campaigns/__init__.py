"""Campaigns of our own trainings: the strongest observer against them, and what its trials say.

setup (data, D and the training) | campaign (neighbours, trials, disk) |
plot_data (what pictures show of them) | region (the region of privacy) | audit (`deniable.audit`) | exposure,
exposure_result (who is exposed) | provenance, progress.
"""
