/* One step of Adam on some values: decay .9 and .999, epsilon 1e-8. */

#pragma once

#include <math.h>

#include "_dense.h"

INLINE void adam_values(float *restrict weights, const float *restrict sums, float *restrict first,
                        float *restrict second, long count, float rate, const Correction *by) {
    const float root = 1.0f / sqrtf(by->second), mean = by->mean;
    rate /= by->first;
    for (long i = 0; i < count; i++) {
        const float gradient = sums[i] * mean;
        first[i] = 0.9f * first[i] + 0.1f * gradient;
        second[i] = 0.999f * second[i] + 0.001f * gradient * gradient;
        weights[i] -= rate * first[i] / (sqrtf(second[i]) * root + 1e-8f);
    }
}
