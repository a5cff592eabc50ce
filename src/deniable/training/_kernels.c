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
            some_filters(at, at + c, below, below + c, kernel + f, bias ? bias + f : bias, sums, z, 1);
            largest_of_four(sums, 2, floor, out + f, place + f);
            largest_of_four(sums + 1, 2, floor, out + f + 8, place + f + 8);
        }
        for (; f + 8 <= o; f += 8) {
            wide sums[8];
            some_filters(at, at + c, below, below + c, kernel + f, bias ? bias + f : bias, sums, z, 0);
            largest_of_four(sums, 2, floor, out + f, place + f);
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

/* Where the windows of an example begin, and how far from there each of the four places is. */
typedef struct {
    long cells, shift[5];
    int32_t *origin;
} Windows;

/* Of one example: gradient (o, r, s, c), one filter after the other. */
INLINE void gradient_of_filters(const float *x, const float *delta, const int32_t *place, float *gradient,
                                int32_t *at, float *value, const Windows *windows, const Sizes *z) {
    const long row = z->s * z->c, line = z->w * z->c;
    for (long f = 0; f < z->o; f++, gradient += z->r * row) {
        long count = 0;
        for (long cell = 0; cell < windows->cells; cell++) {
            const int32_t t = place[cell * z->o + f];
            value[count] = delta[cell * z->o + f];
            at[count] = windows->origin[cell] + (int32_t)windows->shift[t];
            count += t != STOPPED;
        }
        memset(gradient, 0, sizeof(float) * z->r * row);
        for (long k = 0; k < z->r; k++) add_weighted(x + k * line, at, value, count, gradient + k * row, row);
    }
}

/* Of one example: the inputs' gradient (h, w, c), one position after the other; `turned` is the kernel (o, r, s, c).
   at, value have room for o entries of each place, those that are stopped as well. */
INLINE void gradient_of_inputs(const float *delta, const int32_t *place, const float *turned, float *back, int32_t *at,
                               float *value, const Windows *windows, const Sizes *z) {
    const long row = z->s * z->c, line = z->w * z->c, o = z->o;
    memset(back, 0, sizeof(float) * z->h * line);
    for (long cell = 0; cell < windows->cells; cell++, delta += o, place += o) {
        long end[5] = {0, o, 2 * o, 3 * o, 4 * o};
        for (long f = 0; f < o; f++) {
            const long next = end[place[f]]++;
            value[next] = delta[f], at[next] = (int32_t)(f * z->r * row);
        }
        for (long t = 0; t < 4; t++) {
            float *to = back + windows->origin[cell] + windows->shift[t];
            for (long k = 0; k < z->r; k++, to += line)
                add_weighted(turned + k * row, at + t * o, value + t * o, end[t] - t * o, to, row);
        }
    }
}

enum { FEW = 64 }; /* values under a kernel, at most, for vectors over the filters */

/* As gradient_of_filters, where a row under the kernel is shorter than a vector: vectors over eight filters. */
INLINE void gradient_of_few(const float *x, const float *delta, const int32_t *place, float *gradient,
                            const Windows *windows, const Sizes *z, const long r, const long row) {
    const long line = z->w * z->c, c = z->c;
    for (long f = 0; f < z->o; f += 8) {
        wide sums[FEW] = {{0}};
        for (long cell = 0; cell < windows->cells; cell++) {
            const float *upper = x + windows->origin[cell], *lower = upper + line;
            const wide d = LOAD(delta + cell * z->o + f);
            const places which = *(const unaligned_places *)(place + cell * z->o + f);
            const wide d0 = (wide)((which == 0) & (places)d), d1 = (wide)((which == 1) & (places)d);
            const wide d2 = (wide)((which == 2) & (places)d), d3 = (wide)((which == 3) & (places)d);
            for (long k = 0; k < r; k++, upper += line, lower += line)
                for (long i = 0; i < row; i++) {
                    wide sum = sums[k * row + i];
                    sum += upper[i] * d0, sum += upper[i + c] * d1;
                    sum += lower[i] * d2, sum += lower[i + c] * d3;
                    sums[k * row + i] = sum;
                }
        }
        for (long lane = 0; lane < 8; lane++)
            for (long tap = 0; tap < r * row; tap++) gradient[(f + lane) * r * row + tap] = sums[tap][lane];
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
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, cells = p * q, o = z->o, row = z->s * z->c;
    const long weights = o * z->r * row, size = weights + (bias ? o : 0), image = z->h * z->w * z->c;
    const long longest = cells > 5 * o ? cells : 5 * o;
    int32_t *origin = malloc((cells + 2 * (longest + 1)) * sizeof(int32_t));
    if (!origin) return 1;
    int32_t *at = origin + cells;
    float *value = (float *)(at + longest + 1);
    const Windows windows = {cells, {0, z->c, z->w * z->c, (z->w + 1) * z->c, 0}, origin};
    for (long i = 0; i < cells; i++) origin[i] = (int32_t)((2 * (i / q) * z->w + 2 * (i % q)) * z->c);
    const int few = row < 8 && z->r * row <= FEW && o % 8 == 0;
    for (long e = 0; e < z->n; e++, x += image, delta += cells * o, place += cells * o, gradient += size) {
        if (few && row == 3 && z->r == 3)
            gradient_of_few(x, delta, place, gradient, &windows, z, 3, 3);
        else if (few)
            gradient_of_few(x, delta, place, gradient, &windows, z, z->r, row);
        else
            gradient_of_filters(x, delta, place, gradient, at, value, &windows, z);
        if (bias) gradient_of_bias(delta, place, gradient + weights, cells, o);
        squares[e] += square_of(gradient, size);
        if (back) gradient_of_inputs(delta, place, turned, back + e * image, at, value, &windows, z);
    }
    free(origin);
    return 0;
}

/* One image; out (p, q, o), at least `floor`. */
INLINE void convolve_one(const float *x, const float *kernel, const float *bias, float *out, float floor,
                         const Sizes *z) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1, o = z->o, c = z->c;
    const wide least = floor - (wide){0};
    const long vectors = q < 4 ? 0 : o / 8 * 8;
    for (long i = 0; i < p; i++, x += z->w * c, out += q * o) {
        for (long j = 0; j < q && vectors; j += 4) {
            const long first = j + 4 <= q ? j : q - 4; /* the last four overlap those before */
            const float *at = x + first * c;
            for (long f = 0; f < vectors; f += 16) {
                wide sums[8];
                const int both = f + 16 <= o;
                if (both)
                    some_filters(at, at + c, at + 2 * c, at + 3 * c, kernel + f, bias ? bias + f : bias, sums, z, 1);
                else
                    some_filters(at, at + c, at + 2 * c, at + 3 * c, kernel + f, bias ? bias + f : bias, sums, z, 0);
                for (int t = 0; t < 4; t++)
                    for (int half = 0; half <= both; half++) {
                        const places enough = sums[2 * t + half] > least;
                        STORE(out + (first + t) * o + f + 8 * half, CHOOSE(enough, sums[2 * t + half], least));
                    }
            }
        }
        for (long j = 0; j < q; j++)
            for (long f = vectors; f < o; f++) {
                const float sum = one_filter(x + j * c, kernel + f, bias ? bias + f : bias, z);
                out[j * o + f] = sum > floor ? sum : floor;
            }
    }
}

/* The convolution, and a ReLU if asked for. */
EXPORT FOR_THIS_CPU int convolve(const float *x, const float *kernel, const float *bias, float *out, const Sizes *z,
                                 int relu) {
    const long image = z->h * z->w * z->c, result = (z->h - z->r + 1) * (z->w - z->s + 1) * z->o;
    for (long e = 0; e < z->n; e++, x += image, out += result)
        convolve_one(x, kernel, bias, out, relu ? 0.0f : -__builtin_inff(), z);
    return 0;
}

/* sums over positions of `taps` (at most 4) inputs next to each other times sixteen deltas; those are (p, q, o) within
   rows of `line` floats. */
INLINE void taps_of_sixteen(const float *x, const float *delta, long line, float *gradient, const Sizes *z,
                            const int taps) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1;
    wide low[4] = {{0}}, high[4] = {{0}};
    for (long i = 0; i < p; i++, x += z->w * z->c, delta += line) {
        const float *at = x, *d = delta;
        for (long j = 0; j < q; j++, at += z->c, d += z->o) {
            const wide first = LOAD(d), second = LOAD(d + 8);
            for (int t = 0; t < taps; t++) low[t] += at[t] * first, high[t] += at[t] * second;
        }
    }
    for (int t = 0; t < taps; t++) STORE(gradient + t * z->o, low[t]), STORE(gradient + t * z->o + 8, high[t]);
}

INLINE float tap_of_one(const float *x, const float *delta, long line, const Sizes *z) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1;
    float sum = 0.0f;
    for (long i = 0; i < p; i++)
        for (long j = 0; j < q; j++) sum += x[(i * z->w + j) * z->c] * delta[i * line + j * z->o];
    return sum;
}

/* Of one example: gradient (r, s, c, o) of the kernel. */
INLINE void gradient_of_kernel(const float *x, const float *delta, long line, float *gradient, const Sizes *z) {
    const long row = z->s * z->c, o = z->o;
    for (long k = 0; k < z->r; k++, x += z->w * z->c)
        for (long i = 0; i < row;) {
            const long taps = row - i < 4 ? row - i : 4;
            long f = 0;
            for (; f + 16 <= o; f += 16) {
                float *to = gradient + (k * row + i) * o + f;
                if (taps == 4) taps_of_sixteen(x + i, delta + f, line, to, z, 4);
                if (taps == 3) taps_of_sixteen(x + i, delta + f, line, to, z, 3);
                if (taps == 2) taps_of_sixteen(x + i, delta + f, line, to, z, 2);
                if (taps == 1) taps_of_sixteen(x + i, delta + f, line, to, z, 1);
            }
            for (; f < o; f++)
                for (long t = 0; t < taps; t++)
                    gradient[(k * row + i + t) * o + f] = tap_of_one(x + i + t, delta + f, line, z);
            i += taps;
        }
}

/* The deltas that pass the ReLU (all without `out`), and their sum over positions if there is a bias. */
INLINE void pass(const float *delta, const float *out, float *passed, long line, float *bias, const Sizes *z) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1, o = z->o;
    if (bias) memset(bias, 0, sizeof(float) * o);
    for (long i = 0; i < p; i++, delta += q * o, passed += line, out = out ? out + q * o : out) {
        for (long j = 0; j < q * o; j++) passed[j] = delta[j] * (float)(!out || out[j] > 0.0f);
        for (long j = 0; j < q && bias; j++)
            for (long f = 0; f < o; f++) bias[f] += passed[j * o + f];
    }
}

/* delta (n, p, q, o); out, the outputs, if a ReLU made them, else NULL; `turned` is the kernel (r, s, o, c), rows and
   columns reversed. To gradient (n, r s c o [+ o with bias]), squares and back as in `pooled_backward`. The inputs'
   gradient is a convolution of the deltas with zeros around them. */
EXPORT FOR_THIS_CPU int convolve_backward(const float *x, const float *out, const float *delta, const float *turned,
                                          float *gradient, float *squares, float *back, const Sizes *z, int bias) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1, o = z->o, image = z->h * z->w * z->c;
    const Sizes around = {1, p + 2 * (z->r - 1), q + 2 * (z->s - 1), o, z->c, z->r, z->s};
    const long weights = z->r * z->s * z->c * o, size = weights + (bias ? o : 0), line = around.w * o;
    float *padded = calloc(around.h * line, sizeof(float));
    if (!padded) return 1;
    float *inside = padded + ((z->r - 1) * around.w + z->s - 1) * o;
    for (long e = 0; e < z->n; e++, x += image, delta += p * q * o, gradient += size) {
        pass(delta, out ? out + e * p * q * o : out, inside, line, bias ? gradient + weights : NULL, z);
        gradient_of_kernel(x, inside, line, gradient, z);
        squares[e] += square_of(gradient, size);
        if (back) convolve_one(padded, turned, NULL, back + e * image, -__builtin_inff(), &around);
    }
    free(padded);
    return 0;
}

typedef struct {
    long n, h, w, c, groups;
} Norm;

/* Mean and inverse standard deviation of each group of channels of one image. */
INLINE void statistics_of(const float *x, float eps, float *restrict mean, float *restrict inverse, float *restrict sums,
                          const Norm *z) {
    const long pixels = z->h * z->w, c = z->c, width = c / z->groups;
    for (int round = 0; round < 2; round++) {
        memset(sums, 0, sizeof(float) * c);
        for (long i = 0; i < pixels; i++)
            for (long k = 0; k < c; k++) {
                const float value = x[i * c + k] - (round ? mean[k] : 0.0f);
                sums[k] += round ? value * value : value;
            }
        for (long g = 0; g < c; g += width) {
            float sum = 0.0f;
            for (long k = g; k < g + width; k++) sum += sums[k];
            sum /= (float)(pixels * width);
            for (long k = g; k < g + width; k++)
                if (round)
                    inverse[k] = 1.0f / __builtin_sqrtf(sum + eps);
                else
                    mean[k] = sum;
        }
    }
}

/* Group norm, and the largest of each 2 x 2 window: out, place (n, h / 2, w / 2, c). statistics (n, 2, c): mean and
   inverse standard deviation. c is a multiple of 8. */
EXPORT FOR_THIS_CPU int normalise_and_pool(const float *x, const float *scale, const float *shift, float *out,
                                           int32_t *place, float *statistics, const Norm *z, float eps) {
    const long c = z->c, p = z->h / 2, q = z->w / 2;
    float *sums = malloc(sizeof(float) * c);
    if (!sums) return 1;
    for (long e = 0; e < z->n; e++, x += z->h * z->w * c, statistics += 2 * c) {
        const float *mean = statistics, *inverse = statistics + c;
        statistics_of(x, eps, statistics, statistics + c, sums, z);
        for (long cell = 0; cell < p * q; cell++, out += c, place += c) {
            const float *at = x + (2 * (cell / q) * z->w + 2 * (cell % q)) * c;
            for (long k = 0; k < c; k += 8) {
                const wide factor = LOAD(inverse + k) * LOAD(scale + k), centre = LOAD(mean + k);
                wide four[4];
                for (long t = 0; t < 4; t++)
                    four[t] = (LOAD(at + ((t / 2) * z->w + t % 2) * c + k) - centre) * factor + LOAD(shift + k);
                largest_of_four(four, 1, -__builtin_inff(), out + k, place + k);
            }
        }
    }
    free(sums);
    return 0;
}

/* Through the pooling and the normalisation: gradient (n, 2, c) of scale and shift, whose squared norms are added to
   squares (n), and back (n, h, w, c). */
EXPORT FOR_THIS_CPU int normalised_backward(const float *x, const float *delta, const int32_t *place,
                                            const float *scale, const float *statistics, float *gradient,
                                            float *squares, float *back, const Norm *z) {
    const long c = z->c, p = z->h / 2, q = z->w / 2, pixels = z->h * z->w, width = c / z->groups;
    float *slope = malloc(sizeof(float) * 2 * c), *constant = slope + c;
    if (!slope) return 1;
    for (long e = 0; e < z->n; e++, x += pixels * c, back += pixels * c, statistics += 2 * c, gradient += 2 * c) {
        const float *mean = statistics, *inverse = statistics + c;
        const float *deltas = delta + e * p * q * c;
        const int32_t *where = place + e * p * q * c;
        for (long k = 0; k < c; k += 8) {
            wide by_scale = {0}, by_shift = {0};
            for (long cell = 0; cell < p * q; cell++) {
                const wide d = LOAD(deltas + cell * c + k);
                const places which = *(const unaligned_places *)(where + cell * c + k);
                const float *at = x + (2 * (cell / q) * z->w + 2 * (cell % q)) * c + k;
                wide value = {0};
                for (int t = 0; t < 4; t++)
                    value = CHOOSE(which == t, LOAD(at + ((t / 2) * z->w + t % 2) * c), value);
                by_scale += d * (value - LOAD(mean + k)), by_shift += d;
            }
            STORE(gradient + k, by_scale * LOAD(inverse + k));
            STORE(gradient + c + k, by_shift);
        }
        squares[e] += square_of(gradient, 2 * c);
        for (long g = 0; g < c; g += width) {
            float through_mean = 0.0f, through_deviation = 0.0f;
            for (long k = g; k < g + width; k++)
                through_deviation += scale[k] * gradient[k], through_mean += scale[k] * gradient[c + k];
            through_mean /= (float)(pixels * width), through_deviation /= (float)(pixels * width);
            for (long k = g; k < g + width; k++) {
                slope[k] = -inverse[k] * inverse[k] * through_deviation;
                constant[k] = -inverse[k] * through_mean - slope[k] * mean[k];
            }
        }
        for (long i = 0; i < pixels; i++)
            for (long k = 0; k < c; k++) back[i * c + k] = slope[k] * x[i * c + k] + constant[k];
        for (long cell = 0; cell < p * q; cell++)
            for (long k = 0; k < c; k += 8) {
                const wide d = LOAD(deltas + cell * c + k) * LOAD(scale + k) * LOAD(inverse + k);
                const places which = *(const unaligned_places *)(where + cell * c + k);
                float *to = back + (2 * (cell / q) * z->w + 2 * (cell % q)) * c + k;
                for (int t = 0; t < 4; t++, to += t == 2 ? (z->w - 1) * c : c)
                    STORE(to, LOAD(to) + (wide)((which == t) & (places)d));
            }
    }
    free(slope);
    return 0;
}

static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = -1};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&module); }
