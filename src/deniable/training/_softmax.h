/* Softmax of sixteen examples at a time. */

#pragma once

#include "_vectors.h"

/* e^x for x <= 0, to float accuracy: 2^n e^r with |r| <= ln(2) / 2; below -87 it is that of -87. NaN stays NaN. */
INLINE wide exponential(wide x) {
    const wide least = -87.0f - (wide){0}, shift = 12582912.0f - (wide){0}; /* adding 1.5 * 2^23 rounds to a whole n */
    x = CHOOSE(x < least, least, x);
    const wide shifted = x * 1.44269504f + shift, n = shifted - shift;
    const wide r = x - n * 0.693359375f + n * 2.12194440e-4f; /* ln(2) in two parts, the first times n exact */
    wide p = 0.0013950478f * r + 0.00836888232f; /* a minimax fit, the first omitted term below 4e-9 */
    p = p * r + 0.041666206f;
    p = p * r + 0.166665189f;
    p = p * r + 0.50000001f;
    p = p * (r * r) + r + 1.0f;
    return p * (wide)(((places)shifted - (places)shift + 127) << 23);
}

/* Sixteen examples' columns, a line of the cache each, `line` values from row to row: softmax. */
INLINE void softmax_of_sixteen(float *values, long width, long line) {
    wide top0 = LOAD(values), top1 = LOAD(values + 8), sum0 = {0}, sum1 = {0};
    for (const float *at = values + line; at < values + width * line; at += line) {
        top0 = CHOOSE(LOAD(at) > top0, LOAD(at), top0);
        top1 = CHOOSE(LOAD(at + 8) > top1, LOAD(at + 8), top1);
    }
    for (float *at = values; at < values + width * line; at += line) {
        const wide power0 = exponential(LOAD(at) - top0), power1 = exponential(LOAD(at + 8) - top1);
        STORE(at, power0), STORE(at + 8, power1);
        sum0 += power0, sum1 += power1;
    }
    const wide share0 = 1.0f / sum0, share1 = 1.0f / sum1;
    for (float *at = values; at < values + width * line; at += line)
        STORE(at, LOAD(at) * share0), STORE(at + 8, LOAD(at + 8) * share1);
}
