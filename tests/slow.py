"""Which tests `make quick` leaves out: whole folders and files that train, draw or start programs, and single tests
above about half a second of CPU time. `make test` runs them all.

A new test that takes longer gets a line here; the paths are checked by test_foundation.py. To see what takes long:
pytest --durations 30 tests/loss.
"""

from __future__ import annotations

SLOW = (
    "test_docstrings.py",
    "recorded/",
    "testing/",
    "canary/",
    "adversaries/",
    "audit/test_campaign.py",
    "audit/test_diagnostics.py",
    "audit/test_examination.py",
    "audit/test_exposure.py",
    "audit/test_false_alarms.py",
    "audit/test_followed_noise.py",
    "audit/test_idle_records.py",
    "audit/test_measured.py",
    "audit/test_optimizer_rules.py",
    "audit/test_other_models.py",
    "audit/test_plain_trainings.py",
    "audit/test_recipes.py",
    "audit/test_ties.py",
    "audit/test_unseen_faults.py",
    "audit/test_watch.py",
    "audit/test_watched_campaign.py",
    "audit/test_watched_rows.py",
    "audit/test_whole_scores.py",
    "cli/test_audit.py",
    "cli/test_bad_input.py::test_any_text_is_either_answered_or_refused",
    "cli/test_batches.py",
    "cli/test_compare_command.py",
    "cli/test_frontier_command.py",
    "utility/",
    "cli/test_documents.py",
    "cli/test_hunted_inputs.py",
    "cli/test_people.py",
    "cli/test_serve_command.py",
    "cli/test_written.py",
    "comparison/",
    "engines/test_local.py",
    "engines/test_ray.py",
    "engines/test_shared.py",
    "engines/test_workers.py",
    "experiments/",
    "formats/test_opacus.py",
    "test_identifiability_numbers.py::test_the_us_census_of_2020",
    "hunt/",
    "report/",
    "test_docs.py::test_the_site_is_whole_and_asks_nobody",
    "test_docs.py::test_a_page_does_what_it_says[frameworks.md]",
    "test_docs.py::test_a_page_does_what_it_says[attacks.md]",
    "test_docs.py::test_a_page_does_what_it_says[canaries.md]",
    "test_docs.py::test_a_page_does_what_it_says[five-minutes.md]",
    "test_docs.py::test_a_page_does_what_it_says[pitfalls.md]",
    "test_docs.py::test_a_page_does_what_it_says[privacy_tests.md]",
    "test_spelling.py::test_docstrings_are_spelled_rightly",
    "test_foundation.py::test_a_source_distribution_holds_what_it_takes_to_test_it",
    "test_foundation.py::test_contracts_refuse",
    "test_foundation.py::test_rooms_are_imported_when_asked_for",
    "test_readme.py",
    "test_examples.py",
    "test_docs.py::test_a_page_does_what_it_says[compared-with.md]",
    "test_notebooks.py",
    "training/",
    "web/",
    "audit/test_choices.py::test_steps_that_are_released_at_random_are_not_called_the_best",
    "audit/test_choices.py::test_stops_at_random_are_not_called_the_losses",
    "audit/test_estimators.py::test_the_mechanism_curve_with_many_points_takes_the_strongest",
    "test_budget.py::test_the_renyi_rule_counts_everything_and_is_the_stricter_one",
    "test_budget.py::test_the_gaussian_rule_loses_nothing",
    "loss/test_apart.py",
    "loss/test_largest_jump.py::test_one_line_and_many_bands_agree_wherever_both_serve",
    "loss/test_densities.py::test_moments_at_high_frequencies",
    "audit/test_final_model.py::test_all_bounds_hold_together_as_often_as_they_say",
    "audit/test_final_model.py::test_crafted_gradients_reach_the_true_mu",
    "audit/test_final_model.py::test_sampled_batches_give_the_sum_of_draws",
    "audit/test_final_model.py::test_the_heuristic_is_never_above_the_bound_for_all_steps",
    "audit/test_final_model.py::test_too_little_noise_is_caught_by_the_final_model",
    "audit/test_final_model.py::test_words_follow_the_figures",
    "audit/test_final_model.py::test_audit_offers_it",
    "audit/test_final_model.py::test_an_interrupted_campaign_goes_on_where_it_was",
    "audit/test_final_model.py::test_worst_initial_weights_show_more_than_usual_ones",
    "adversaries/test_regressions.py",
    "comparison/test_member_exposure.py",
    "comparison/test_attack_limits.py",
    "loss/test_extremes.py::test_calibration_trusts_no_cap",
    "loss/test_extremes.py::test_divergences_fall_with_epsilon_rise_with_runs_and_come_back",
    "loss/test_extremes.py::test_losses_far_above_700",
    "loss/test_lines.py::test_earlier_questions_do_not_change_an_answer",
    "loss/test_lines.py::test_little_noise_gives_no_less_than_more",
    "loss/test_allocated.py::test_calibration_over_noise",
    "loss/test_allocated.py::test_faint_noise_is_bounded_by_no_sampling_and_near_it",
    "loss/test_allocated.py::test_several_turns_by_their_definition",
    "loss/test_allocated.py::test_extremes_are_answered_with_a_small_error",
    "loss/test_allocated.py::test_published_noise_for_total_variation",
    "loss/test_allocated.py::test_published_values",
    "loss/test_allocated.py::test_complex_moments_by_the_laplace_transform",
    "loss/test_masses.py::test_any_masses_composed",
    "loss/test_masses.py::test_calibration",
    "loss/test_masses.py::test_census",
    "loss/test_masses.py::test_choices_composed_against_a_density_on_a_grid",
    "loss/test_regressions.py",
    "loss/test_renyi_guarantee.py",
    "loss/test_round_off.py::test_atoms_beside_a_faint_gaussian_band_by_band",
    "loss/test_round_off.py::test_errors_of_one_sampled_step_cover_the_truth",
    "loss/test_routes.py::test_unlike_phases_against_the_twin",
    "loss/test_samplings.py",
    "loss/test_several_records.py",
    "loss/test_schedules.py",
    "loss/test_tapered.py",
    "test_calibration.py::test_extreme_promises_are_kept",
    "test_calibration.py::test_rarely_sampled_trainings_are_calibrated_exactly",
    "test_scores.py::test_more_noise_fewer_steps_or_a_smaller_rate_never_raise_a_score",
    "test_scores.py::test_trainings",
    "test_sweeps.py::test_a_sweep_is_what_one_by_one_gives_on_the_safe_side",
    "test_tradeoff.py::test_guessing_stays_below_the_chance_level_as_often_as_it_says",
)
"""Folders end with "/", single tests are named as pytest names them, without their parameters."""

LONGEST = (
    "hunt/test_share.py",
    "audit/test_plain_trainings.py",
    "audit/test_examination.py",
    "audit/test_recipes.py",
    "audit/test_unseen_faults.py",
    "audit/test_other_models.py",
    "audit/test_diagnostics.py",
    "test_docs.py",
    "cli/test_audit.py",
    "audit/test_false_alarms.py",
    "test_readme.py",
    "engines/test_shared.py",
    "audit/test_final_model.py",
)
"""Files above about twenty seconds of CPU time, longest first: `make test` begins with them, so that no core waits for
one of them in the end."""


def longest_first(place: str) -> int:
    """The key to order tests by; `place` as in `is_slow`."""
    file = place.partition("::")[0]
    return LONGEST.index(file) if file in LONGEST else len(LONGEST)


def is_slow(place: str) -> bool:
    """Whether a test is left out by `make quick`; `place` is its name from tests/ on, as "loss/test_apart.py::test"."""
    return any(place.startswith(entry) if entry.endswith("/") else _is_or_holds(entry, place) for entry in SLOW)


def _is_or_holds(entry: str, place: str) -> bool:
    return place == entry or place.startswith((f"{entry}::", f"{entry}["))
