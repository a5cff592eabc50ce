"""Campaigns of our own trainings: the strongest observer against them, and what its trials say.

campaign (data, D and the training; neighbours, trials, disk) | audit (`deniable.audit`), score_verdict
(`deniable.verdict`), look (`deniable status`) | plot_data (what pictures show) | exposure, exposure_result (who is
exposed) | final_model, linear_loss (what hiding the steps buys) | provenance, progress.
"""
