/* Convolutions of small images with every example's own gradient.

   Libraries sum over examples inside, or take a product over all positions; both do several times the work that is
   needed here. A pooled convolution sends its gradient through one of four positions, and a ReLU stops it at some of
   those. Images are channels-last (n, h, w, c), kernels (r, s, c, o), outputs (n, p, q, o) with stride 1 and without
   padding. Every kernel returns 0, or 1 for want of memory.
   Built as an optional extension; without it the same results come from torch, more slowly. */

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define FOR_THIS_CPU
#endif

/* Eight floats; the compiler makes two or one or half a register of them. */
typedef float wide __attribute__((vector_size(32)));
typedef float unaligned __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t places __attribute__((vector_size(32)));
typedef int32_t unaligned_places __attribute__((vector_size(32), aligned(4), may_alias));
#define LOAD(at) ((wide)*(const unaligned *)(at))
#define STORE(at, value) (*(unaligned *)(at) = (value))
#define STORE_PLACES(at, value) (*(unaligned_places *)(at) = (value))
#define CHOOSE(mask, yes, no) ((wide)(((mask) & (places)(yes)) | (~(mask) & (places)(no))))

enum { STOPPED = 4 }; /* the place of a window whose largest value a ReLU made zero */

typedef struct {
    long n, h, w, c, o, r, s;
} Sizes;

/* sums[4][16]: sixteen filters at four positions, whose inputs begin at x0 ... x3. Eight accumulators keep both
   multipliers busy. */
INLINE void sixteen_filters(const float *x0, const float *x1, const float *x2, const float *x3, const float *kernel,
                            const float *bias, wide *restrict sums, const Sizes *z) {
    const long row = z->s * z->c, line = z->w * z->c, o = z->o;
    const wide none = {0}, low = bias ? LOAD(bias) : none, high = bias ? LOAD(bias + 8) : none;
    wide a0 = low, b0 = high, a1 = low, b1 = high, a2 = low, b2 = high, a3 = low, b3 = high;
    for (long k = 0; k < z->r; k++, x0 += line, x1 += line, x2 += line, x3 += line)
        for (long i = 0; i < row; i++, kernel += o) {
            const wide first = LOAD(kernel), second = LOAD(kernel + 8);
            a0 += x0[i] * first, b0 += x0[i] * second;
            a1 += x1[i] * first, b1 += x1[i] * second;
            a2 += x2[i] * first, b2 += x2[i] * second;
            a3 += x3[i] * first, b3 += x3[i] * second;
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
INLINE void largest_of_four(const wide *four, long step, float floor, float *out, int32_t *place) {
    wide best = four[0];
    places which = {0};
    for (int t = 1; t < 4; t++) {
        const places better = four[t * step] > best;
        best = CHOOSE(better, four[t * step], best);
        which = (better & t) | (~better & which);
    }
    const wide least = floor - (wide){0};
    const places stopped = best <= least;
    STORE(out, CHOOSE(stopped, least, best));
    STORE_PLACES(place, (stopped & STOPPED) | (~stopped & which));
}

INLINE void largest_of_one_filter(const float *x, const float *kernel, const float *bias, float floor, float *out,
                                  int32_t *place, const Sizes *z) {
    for (int t = 0; t < 4; t++) {
        const float value = one_filter(x + ((t / 2) * z->w + t % 2) * z->c, kernel, bias, z);
        if (t == 0 || value > *out) *out = value, *place = t;
    }
    if (*out <= floor) *out = floor, *place = STOPPED;
}

/* The convolution, a ReLU if asked for, and the largest of each 2 x 2 window: out, place (n, p / 2, q / 2, o). */
EXPORT FOR_THIS_CPU int convolve_and_pool(const float *x, const float *kernel, const float *bias, float *out,
                                          int32_t *place, const Sizes *z, int relu) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, o = z->o, c = z->c;
    const float floor = relu ? 0.0f : -__builtin_inff();
    for (long cell = 0; cell < z->n * p * q; cell++, out += o, place += o) {
        const float *at = x + ((cell / (p * q) * z->h + 2 * (cell / q % p)) * z->w + 2 * (cell % q)) * c;
        const float *below = at + z->w * c;
        long f = 0;
        for (; f + 16 <= o; f += 16) {
            wide sums[8];
            sixteen_filters(at, at + c, below, below + c, kernel + f, bias ? bias + f : bias, sums, z);
            largest_of_four(sums, 2, floor, out + f, place + f);
            largest_of_four(sums + 1, 2, floor, out + f + 8, place + f + 8);
        }
        for (; f < o; f++)
            largest_of_one_filter(at, kernel + f, bias ? bias + f : bias, floor, out + f, place + f, z);
    }
    return 0;
}

/* sums of value[j] times the floats at from + at[j], added to `to`; two by two, to hide the latency. */
#define WEIGHTED(BLOCKS)                                                                              \
    {                                                                                                 \
        wide even[BLOCKS] = {{0}}, odd[BLOCKS] = {{0}};                                               \
        long j = 0;                                                                                   \
        for (; j + 2 <= count; j += 2)                                                                \
            for (int b = 0; b < (BLOCKS); b++) {                                                      \
                even[b] += value[j] * LOAD(from + at[j] + 8 * b);                                     \
                odd[b] += value[j + 1] * LOAD(from + at[j + 1] + 8 * b);                              \
            }                                                                                         \
        if (j < count)                                                                                \
            for (int b = 0; b < (BLOCKS); b++) even[b] += value[j] * LOAD(from + at[j] + 8 * b);      \
        for (int b = 0; b < (BLOCKS); b++) STORE(to + 8 * b, LOAD(to + 8 * b) + even[b] + odd[b]);    \
    }

INLINE void add_weighted(const float *from, const int32_t *at, const float *value, long count, float *to, long row) {
    for (; row >= 48; row -= 48, from += 48, to += 48) WEIGHTED(6)
    for (; row >= 24; row -= 24, from += 24, to += 24) WEIGHTED(3)
    for (; row >= 8; row -= 8, from += 8, to += 8) WEIGHTED(1)
    for (; row > 0; row--, from++, to++)
        for (long j = 0; j < count; j++) *to += value[j] * from[at[j]];
}

/* Of one example: gradient (o, r, s, c), one filter after the other. */
INLINE void gradient_of_filters(const float *x, const float *delta, const int32_t *place, float *gradient,
                                int32_t *at, float *value, const Sizes *z) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, row = z->s * z->c;
    for (long f = 0; f < z->o; f++, gradient += z->r * row) {
        long count = 0;
        for (long cell = 0; cell < p * q; cell++) {
            const int32_t t = place[cell * z->o + f];
            value[count] = delta[cell * z->o + f];
            at[count] = (int32_t)(((2 * (cell / q) + t / 2) * z->w + 2 * (cell % q) + t % 2) * z->c);
            count += t != STOPPED;
        }
        memset(gradient, 0, sizeof(float) * z->r * row);
        for (long k = 0; k < z->r; k++)
            add_weighted(x + k * z->w * z->c, at, value, count, gradient + k * row, row);
    }
}

/* Of one example: the inputs' gradient (h, w, c), one position after the other; `turned` is the kernel (o, r, s, c). */
INLINE void gradient_of_inputs(const float *delta, const int32_t *place, const float *turned, float *back, int32_t *at,
                               float *value, const Sizes *z) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, row = z->s * z->c, o = z->o;
    memset(back, 0, sizeof(float) * z->h * z->w * z->c);
    for (long cell = 0; cell < p * q; cell++, delta += o, place += o)
        for (int t = 0; t < 4; t++) {
            long count = 0;
            for (long f = 0; f < o; f++) {
                value[count] = delta[f], at[count] = (int32_t)(f * z->r * row);
                count += place[f] == t;
            }
            float *to = back + ((2 * (cell / q) + t / 2) * z->w + 2 * (cell % q) + t % 2) * z->c;
            for (long k = 0; k < z->r; k++, to += z->w * z->c)
                add_weighted(turned + k * row, at, value, count, to, row);
        }
}

enum { FEW = 64 }; /* values under a kernel, at most, for vectors over the filters */

/* As gradient_of_filters, where a row under the kernel is shorter than a vector: vectors over eight filters. */
INLINE void gradient_of_few(const float *x, const float *delta, const int32_t *place, float *gradient, const Sizes *z) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, row = z->s * z->c, taps = z->r * row;
    for (long f = 0; f < z->o; f += 8) {
        wide sums[FEW] = {{0}};
        for (long cell = 0; cell < p * q; cell++) {
            const float *upper = x + (2 * (cell / q) * z->w + 2 * (cell % q)) * z->c, *lower = upper + z->w * z->c;
            const wide d = LOAD(delta + cell * z->o + f);
            const places which = *(const unaligned_places *)(place + cell * z->o + f);
            const wide d0 = (wide)((which == 0) & (places)d), d1 = (wide)((which == 1) & (places)d);
            const wide d2 = (wide)((which == 2) & (places)d), d3 = (wide)((which == 3) & (places)d);
            for (long k = 0; k < z->r; k++, upper += z->w * z->c, lower += z->w * z->c)
                for (long i = 0; i < row; i++) {
                    const wide above = upper[i] * d0 + upper[i + z->c] * d1;
                    sums[k * row + i] += above + (lower[i] * d2 + lower[i + z->c] * d3);
                }
        }
        for (long lane = 0; lane < 8; lane++)
            for (long tap = 0; tap < taps; tap++) gradient[(f + lane) * taps + tap] = sums[tap][lane];
    }
}

INLINE void gradient_of_bias(const float *delta, const int32_t *place, float *gradient, long cells, long o) {
    memset(gradient, 0, sizeof(float) * o);
    for (long cell = 0; cell < cells; cell++, delta += o, place += o)
        for (long f = 0; f < o; f++) gradient[f] += place[f] == STOPPED ? 0.0f : delta[f];
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

/* delta, place (n, p / 2, q / 2, o) of the pooled outputs. To gradient (n, o r s c [+ o with bias]), whose squared
   norms are added to squares (n), and to back (n, h, w, c) unless it is NULL. */
EXPORT FOR_THIS_CPU int pooled_backward(const float *x, const float *delta, const int32_t *place, const float *turned,
                                        float *gradient, float *squares, float *back, const Sizes *z, int bias) {
    const long cells = ((z->h - z->r + 1) / 2) * ((z->w - z->s + 1) / 2), o = z->o, longest = cells > o ? cells : o;
    const long row = z->s * z->c, weights = o * z->r * row, size = weights + (bias ? o : 0);
    int32_t *at = malloc((longest + 1) * (sizeof(int32_t) + sizeof(float)));
    if (!at) return 1;
    float *value = (float *)(at + longest + 1);
    for (long e = 0; e < z->n; e++, x += z->h * z->w * z->c, delta += cells * o, place += cells * o, gradient += size) {
        if (row < 8 && z->r * row <= FEW && o % 8 == 0)
            gradient_of_few(x, delta, place, gradient, z);
        else
            gradient_of_filters(x, delta, place, gradient, at, value, z);
        if (bias) gradient_of_bias(delta, place, gradient + weights, cells, o);
        squares[e] += square_of(gradient, size);
        if (back) gradient_of_inputs(delta, place, turned, back + e * z->h * z->w * z->c, at, value, z);
    }
    free(at);
    return 0;
}

static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = -1};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&module); }
