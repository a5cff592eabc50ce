/* What all kernels share: eight floats at a time, and the sums under a kernel. */

#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
/* Clones for a processor need the loader of glibc, and gcc 12 for this name of one. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define CLONED 1
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
#define HAS_AVX512 __builtin_cpu_supports("x86-64-v4")
#define FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_THIS_CPU
#define FOR_AVX512
#define HAS_AVX512 0
#endif

/* Eight floats; the compiler makes two or one or half a register of them. */
typedef float wide __attribute__((vector_size(32)));
typedef float unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t places __attribute__((vector_size(32)));
typedef int16_t half_places __attribute__((vector_size(16)));
typedef uint8_t small_places __attribute__((vector_size(8), aligned(1), may_alias));
/* Sixteen, one register of AVX-512: only for functions that are `FOR_AVX512`, others would keep them in memory. */
typedef float wider __attribute__((vector_size(64)));
typedef int32_t wider_places __attribute__((vector_size(64)));
typedef uint8_t wider_small_places __attribute__((vector_size(16), aligned(1), may_alias));
typedef float wider_unaligned __attribute__((vector_size(64), aligned(4), may_alias));
#define LOAD_WIDER(at) ((wider)*(const wider_unaligned *)(at))
#define STORE_WIDER(at, value) (*(wider_unaligned *)(at) = (value))
#define LOAD(at) ((wide)*(const unaligned *)(at))
#define STORE(at, value) (*(unaligned *)(at) = (value))
#define LOAD_PLACES(at) __builtin_convertvector(*(const small_places *)(at), places)
/* In two steps, for each of which processors have an instruction. */
#define STORE_PLACES(at, value) \
    (*(small_places *)(at) = __builtin_convertvector(__builtin_convertvector(value, half_places), small_places))
#define CHOOSE(mask, yes, no) ((wide)(((mask) & (places)(yes)) | (~(mask) & (places)(no))))

enum { STOPPED = 4 }; /* the place of a window whose largest value a ReLU made zero */

typedef struct {
    long n, h, w, c, o, r, s;
} Sizes;

/* sums[4][2]: sixteen filters (or, without `both`, eight) at four positions, whose inputs begin at x0 ... x3. Eight
   accumulators keep the multipliers busy. */
INLINE void some_filters(const float *x0, const float *x1, const float *x2, const float *x3, const float *kernel,
                         const float *bias, wide *restrict sums, const Sizes *z, const int both) {
    const long row = z->s * z->c, line = z->w * z->c, o = z->o;
    const wide none = {0}, low = bias ? LOAD(bias) : none, high = bias && both ? LOAD(bias + 8) : none;
    wide a0 = low, b0 = high, a1 = low, b1 = high, a2 = low, b2 = high, a3 = low, b3 = high;
    for (long k = 0; k < z->r; k++, x0 += line, x1 += line, x2 += line, x3 += line)
        for (long i = 0; i < row; i++, kernel += o) {
            const wide first = LOAD(kernel);
            a0 += x0[i] * first, a1 += x1[i] * first, a2 += x2[i] * first, a3 += x3[i] * first;
            if (!both) continue;
            const wide second = LOAD(kernel + 8);
            b0 += x0[i] * second, b1 += x1[i] * second, b2 += x2[i] * second, b3 += x3[i] * second;
        }
    sums[0] = a0, sums[1] = b0, sums[2] = a1, sums[3] = b1, sums[4] = a2, sums[5] = b2, sums[6] = a3, sums[7] = b3;
}

/* One filter at one position. */
INLINE float one_filter(const float *x, const float *kernel, const float *bias, const Sizes *z) {
    const long row = z->s * z->c;
    float sum = bias ? *bias : 0.0f;
    for (long k = 0; k < z->r; k++, x += z->w * z->c)
        for (long i = 0; i < row; i++, kernel += z->o) sum += x[i] * *kernel;
    return sum;
}

/* The largest of four, at least `floor`, and the first place that has it. */
INLINE void largest_of_four(const wide *four, long step, float floor, float *out, uint8_t *place) {
    wide best = four[0];
    places which = {0};
    for (int t = 1; t < 4; t++) {
        const places better = (four[t * step] > best) | (four[t * step] != four[t * step]); /* NaN is never hidden */
        best = CHOOSE(better, four[t * step], best);
        which = (better & t) | (~better & which);
    }
    const wide least = floor - (wide){0};
    const places stopped = best <= least;
    STORE(out, CHOOSE(stopped, least, best));
    STORE_PLACES(place, (stopped & STOPPED) | (~stopped & which));
}

/* from (rows, columns) to (columns, rows). */
INLINE void turn(const float *restrict from, float *restrict to, long rows, long columns) {
    for (long k = 0; k < columns; k++)
        for (long i = 0; i < rows; i++) to[k * rows + i] = from[i * columns + k];
}

/* A kernel as torch has it (o, c, r, s) to (r, s, c, o). */
INLINE void put_filters_last(const float *restrict kernel, float *restrict to, const Sizes *z) {
    const long taps = z->r * z->s;
    for (long f = 0; f < z->o; f++)
        for (long c = 0; c < z->c; c++)
            for (long t = 0; t < taps; t++) to[(t * z->c + c) * z->o + f] = *kernel++;
}

INLINE float square_of(const float *values, long count) {
    wide squares = {0};
    long i = 0;
    for (; i + 8 <= count; i += 8) squares += LOAD(values + i) * LOAD(values + i);
    float sum = 0.0f;
    for (int lane = 0; lane < 8; lane++) sum += squares[lane];
    for (; i < count; i++) sum += values[i] * values[i];
    return sum;
}
