/* One step of Adam on some values: decay .9 and .999, epsilon 1e-8. */

#pragma once

#include <math.h>

#include "_dense.h"

#ifdef CLONED
#include <immintrin.h>

/* 1 / (root * the square root of each + 1e-8). The processor's estimates have 14 bits, one step of Newton's method makes 27
   of them; exact roots and divisions take three times as long as all that Adam does besides. */
FOR_AVX512 static inline wider divisors(wider squares, float root) {
    const __m512 least = _mm512_set1_ps(1e-36f), value = _mm512_max_ps(least, (__m512)squares); /* NaN stays NaN */
    wider inverse = (wider)_mm512_rsqrt14_ps(value);
    inverse *= 1.5f - 0.5f * (wider)value * inverse * inverse;
    const wider divisor = (wider)value * inverse * root + 1e-8f, estimate = (wider)_mm512_rcp14_ps((__m512)divisor);
    return estimate * (2.0f - divisor * estimate);
}

FOR_AVX512 static void adam_of_sixteens(float *restrict weights, const float *restrict sums, float *restrict first,
                                        float *restrict second, long count, float rate, float mean, float root) {
    for (long i = 0; i < count; i += 16) {
        const wider gradient = LOAD_WIDER(sums + i) * mean;
        const wider one = 0.9f * LOAD_WIDER(first + i) + 0.1f * gradient;
        const wider two = 0.999f * LOAD_WIDER(second + i) + 0.001f * gradient * gradient;
        STORE_WIDER(first + i, one), STORE_WIDER(second + i, two);
        STORE_WIDER(weights + i, LOAD_WIDER(weights + i) - rate * one * divisors(two, root));
    }
}
#else
#define adam_of_sixteens(...)
#endif

INLINE void adam_values(float *restrict weights, const float *restrict sums, float *restrict first,
                        float *restrict second, long count, float rate, const Correction *by) {
    const float root = 1.0f / sqrtf(by->second), mean = by->mean;
    rate /= by->first;
    const long done = HAS_AVX512 ? count / 16 * 16 : 0;
    if (done) adam_of_sixteens(weights, sums, first, second, done, rate, mean, root);
    for (long i = done; i < count; i++) {
        const float gradient = sums[i] * mean;
        first[i] = 0.9f * first[i] + 0.1f * gradient;
        second[i] = 0.999f * second[i] + 0.001f * gradient * gradient;
        weights[i] -= rate * first[i] / (sqrtf(second[i]) * root + 1e-8f);
    }
}
