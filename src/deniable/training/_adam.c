/* One step of Adam in one pass over memory; torch needs eight. See ensemble.py. */

#include "_adam.h"

/* weights, sums and moments (trials, size), a learning rate a trial. */
EXPORT FOR_THIS_CPU int adam(float *restrict weights, const float *restrict sums, float *restrict first,
                             float *restrict second, const float *rates, const long *shape, const Correction *by) {
    for (long t = 0; t < shape[0]; t++) {
        const long start = t * shape[1];
        adam_values(weights + start, sums + start, first + start, second + start, shape[1], rates[t], by);
    }
    return 0;
}
