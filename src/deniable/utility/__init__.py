"""What privacy costs: how good a model is at every promise, on the user's own data.

Design
------
*Parts.* The training part, a validation part cut from it, and a test part (`parts`). Settings are searched by training
on the training part without the validation records, and judged on these; what is told is measured afterwards: fresh
trainings of the chosen settings on the whole training part, judged on the test part. So nothing that is told was used
for choosing, and its limits hold.

*Noise.* The sampling rate and the epochs of a setting are the same in search and measurement, so a promise has one
noise for each of them: `calibrate`'s, which is `choose`'s.

*Units.* A unit of work trains many settings and promises together on the same batches (`training.together`); it is a
block of a campaign, kept on disk as it finishes.

*Tuning.* Choosing settings by looking at private data is itself a release. `uncovered` (the default) says that the
promise does not cover the choice; `public` searches on other data; `accounted` runs a random number of times, keeps the
best (Papernot 2022) and pays for it with more noise.

parts (the data), local_records (perturbed ones) | tried_settings (grid and promises) | measures (how good, and limits
over repeats) | frontier_plan | units | knee, frontier_rows (what follows from it) | find_frontier (`dn.frontier`) |
expected_quality (a row for `choose`; two frontiers that come with the package), measured.
"""
