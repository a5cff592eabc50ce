/* One step of Adam in one pass over memory; torch needs eight. See optimizers.py. */

#include <math.h>

#include "_vectors.h"

typedef struct {
    float mean;         /* of the batch: 1 / its (expected) number of records */
    float first, second; /* what bias correction divides the moments by */
} Correction;

/* weights, sums and moments (trials, size), a learning rate a trial. Decay .9 and .999, epsilon 1e-8. */
EXPORT FOR_THIS_CPU int adam(float *restrict weights, const float *restrict sums, float *restrict first,
                             float *restrict second, const float *rates, const long *shape, const Correction *by) {
    const float root = 1.0f / sqrtf(by->second);
    for (long t = 0; t < shape[0]; t++) {
        const float rate = rates[t] / by->first;
        for (long i = t * shape[1]; i < (t + 1) * shape[1]; i++) {
            const float gradient = sums[i] * by->mean;
            first[i] = 0.9f * first[i] + 0.1f * gradient;
            second[i] = 0.999f * second[i] + 0.001f * gradient * gradient;
            weights[i] -= rate * first[i] / (sqrtf(second[i]) * root + 1e-8f);
        }
    }
    return 0;
}
