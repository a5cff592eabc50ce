"""Twin trainings: the same seed on data sets that differ in one record.

All randomness comes from the seed, so twins draw the same weights, batches and noise, and whatever else differs between
them differs because of the record. That shows, without any noise in the way,

- public values that are computed from the records (initial weights, divisors, learning rates, clipping norms);
- batches that are chosen by looking at the records;
- the very gradient that is summed: the difference of two noisy sums is the difference of the clean ones;
- how far one record changes the first sum, whatever the recipe, and whether its share depends on other records;
- whether records that no batch has drawn, or that change after their step, change anything at all;
- whether all that is shown is a function of the noisy sums, by noise that is shifted by what other records lack.

A record is exchanged for another one of the data set, so that twins have equally many. For add-remove neighbours D' is
a further twin: numbers that depend on how many records there are differ there.

twin_run (one training) | twin_differences (what differs between two, in words) | probes (one record's share) |
provoking_records (with longer and shorter gradients) | idle_records (that may change nothing) | shifted_noise,
handed_twins (what is done with noisy sums, with handed gradients) | twins (which trainings are compared).
"""

from __future__ import annotations
