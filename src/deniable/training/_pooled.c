/* A convolution, a ReLU if asked for, and a 2 x 2 max pooling; see _kernels.c. */

#include "_vectors.h"

INLINE void largest_of_one_filter(const float *x, const float *kernel, const float *bias, float floor, float *out,
                                  uint8_t *place, const Sizes *z) {
    for (int t = 0; t < 4; t++) {
        const float value = one_filter(x + ((t / 2) * z->w + t % 2) * z->c, kernel, bias, z);
        if (t == 0 || value > *out || value != value) *out = value, *place = t; /* NaN is never hidden */
    }
    if (*out <= floor) *out = floor, *place = STOPPED;
}

/* One window: sixteen, eight or single filters at a time. */
INLINE void pool_one(const float *at, const float *kernel, const float *bias, float floor, float *out, uint8_t *place,
                     const Sizes *z) {
    const long c = z->c, o = z->o;
    const float *below = at + z->w * c;
    wide sums[8];
    long f = 0;
    for (; f + 16 <= o; f += 16) {
        some_filters(at, at + c, below, below + c, kernel + f, bias ? bias + f : bias, sums, z, 1);
        largest_of_four(sums, 2, floor, out + f, place + f);
        largest_of_four(sums + 1, 2, floor, out + f + 8, place + f + 8);
    }
    for (; f + 8 <= o; f += 8) {
        some_filters(at, at + c, below, below + c, kernel + f, bias ? bias + f : bias, sums, z, 0);
        largest_of_four(sums, 2, floor, out + f, place + f);
    }
    for (; f < o; f++)
        largest_of_one_filter(at, kernel + f, bias ? bias + f : bias, floor, out + f, place + f, z);
}

/* The convolution, a ReLU if asked for, and the largest of each 2 x 2 window: place (n, p / 2, q / 2, o), and out the
   same or, `flat`, (n, o, p / 2, q / 2). Kernels here are torch's (o, c, r, s). */
EXPORT FOR_THIS_CPU int convolve_and_pool(const float *x, const float *filters, const float *bias, float *out,
                                          uint8_t *place, const Sizes *z, int relu, int flat) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, cells = p * q, o = z->o;
    const float floor = relu ? 0.0f : -__builtin_inff();
    float *pooled = malloc(sizeof(float) * (cells + z->r * z->s * z->c) * o), *kernel = pooled + cells * o;
    if (!pooled) return 1;
    put_filters_last(filters, kernel, z);
    for (long e = 0; e < z->n; e++, x += z->h * z->w * z->c, out += cells * o) {
        float *to = flat ? pooled : out;
        for (long i = 0; i < p; i++)
            for (long j = 0; j < q; j++, to += o, place += o)
                pool_one(x + 2 * (i * z->w + j) * z->c, kernel, bias, floor, to, place, z);
        if (flat) turn(pooled, out, cells, o);
    }
    free(pooled);
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

/* Of one example: added to gradient (o, r, s, c), one filter after the other. */
INLINE void gradient_of_filters(const float *x, const float *delta, const uint8_t *place, float *gradient,
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
        for (long k = 0; k < z->r; k++) add_weighted(x + k * line, at, value, count, gradient + k * row, row);
    }
}

/* Of one example: the inputs' gradient (h, w, c), one position after the other; `turned` is a kernel (o, r, s, c).
   at, value have room for o entries of each place, those that are stopped as well. */
INLINE void gradient_of_inputs(const float *delta, const uint8_t *place, const float *turned, float *back, int32_t *at,
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

/* As gradient_of_filters, where a row under the kernel is shorter than a vector: vectors over eight or sixteen filters. */
#define GRADIENT_OF_FEW(NAME, VECTOR, UNALIGNED, PLACES, BYTES, LANES)                                                \
    INLINE void NAME(const float *x, const float *delta, const uint8_t *place, float *gradient,                       \
                     const Windows *windows, const Sizes *z, const long r, const long row) {                          \
        const long line = z->w * z->c, c = z->c;                                                                      \
        for (long f = 0; f < z->o; f += LANES) {                                                                      \
            VECTOR sums[FEW] = {{0}};                                                                                 \
            for (long cell = 0; cell < windows->cells; cell++) {                                                      \
                const float *upper = x + windows->origin[cell], *lower = upper + line;                                \
                const PLACES d = (PLACES)*(const UNALIGNED *)(delta + cell * z->o + f);                               \
                const PLACES which = __builtin_convertvector(*(const BYTES *)(place + cell * z->o + f), PLACES);      \
                const VECTOR d0 = (VECTOR)((which == 0) & d), d1 = (VECTOR)((which == 1) & d);                        \
                const VECTOR d2 = (VECTOR)((which == 2) & d), d3 = (VECTOR)((which == 3) & d);                        \
                for (long k = 0; k < r; k++, upper += line, lower += line)                                            \
                    for (long i = 0; i < row; i++) {                                                                  \
                        VECTOR sum = sums[k * row + i];                                                               \
                        sum += upper[i] * d0, sum += upper[i + c] * d1;                                               \
                        sum += lower[i] * d2, sum += lower[i + c] * d3;                                               \
                        sums[k * row + i] = sum;                                                                      \
                    }                                                                                                 \
            }                                                                                                         \
            for (long lane = 0; lane < LANES; lane++)                                                                 \
                for (long tap = 0; tap < r * row; tap++) gradient[(f + lane) * r * row + tap] += sums[tap][lane];     \
        }                                                                                                             \
    }

GRADIENT_OF_FEW(gradient_of_few, wide, unaligned, places, small_places, 8)
GRADIENT_OF_FEW(gradient_of_few_at_once, wider, wider_unaligned, wider_places, wider_small_places, 16)

FOR_AVX512 static void gradient_of_nine(const float *x, const float *delta, const uint8_t *place, float *gradient,
                                        const Windows *windows, const Sizes *z) {
    gradient_of_few_at_once(x, delta, place, gradient, windows, z, 3, 3);
}

INLINE void gradient_of_bias(const float *delta, const uint8_t *place, float *gradient, long cells, long o) {
    for (long cell = 0; cell < cells; cell++, delta += o, place += o)
        for (long f = 0; f < o; f++) gradient[f] += place[f] == STOPPED ? 0.0f : delta[f];
}

/* delta and place of the pooled outputs, as in `convolve_and_pool`. To gradient (n, o r s c [+ o with bias]), whose
   squared norms are added to squares (n), and to back (n, h, w, c) unless it is NULL. Where squares is NULL, gradient
   (o c r s [+ o]) is the sum over examples. */
EXPORT FOR_THIS_CPU int pooled_backward(const float *x, const float *deltas, const uint8_t *place, const float *kernel,
                                        float *gradient, float *squares, float *back, const Sizes *z, int bias,
                                        int flat) {
    const long p = (z->h - z->r + 1) / 2, q = (z->w - z->s + 1) / 2, cells = p * q, o = z->o, row = z->s * z->c;
    const long weights = o * z->r * row, size = weights + (bias ? o : 0), image = z->h * z->w * z->c;
    const long longest = cells > 5 * o ? cells : 5 * o, taps = z->r * z->s;
    int32_t *origin = malloc((cells + 2 * (longest + 1) + cells * o + weights) * sizeof(int32_t));
    if (!origin) return 1;
    int32_t *at = origin + cells;
    float *value = (float *)(at + longest + 1), *pooled = value + longest + 1, *turned = pooled + cells * o;
    const Windows windows = {cells, {0, z->c, z->w * z->c, (z->w + 1) * z->c, 0}, origin};
    for (long i = 0; i < cells; i++) origin[i] = (int32_t)((2 * (i / q) * z->w + 2 * (i % q)) * z->c);
    for (long f = 0; f < o; f++) turn(kernel + f * taps * z->c, turned + f * taps * z->c, z->c, taps);
    const int few = row < 8 && z->r * row <= FEW && o % 8 == 0;
    memset(gradient, 0, sizeof(float) * size * (squares ? z->n : 1));
    for (long e = 0; e < z->n; e++, x += image, place += cells * o) {
        const float *delta = deltas + e * cells * o;
        if (flat) turn(delta, pooled, o, cells), delta = pooled;
        if (few && HAS_AVX512 && row == 3 && z->r == 3 && o % 16 == 0)
            gradient_of_nine(x, delta, place, gradient, &windows, z);
        else if (few && row == 3 && z->r == 3)
            gradient_of_few(x, delta, place, gradient, &windows, z, 3, 3);
        else if (few)
            gradient_of_few(x, delta, place, gradient, &windows, z, z->r, row);
        else
            gradient_of_filters(x, delta, place, gradient, at, value, &windows, z);
        if (bias) gradient_of_bias(delta, place, gradient + weights, cells, o);
        if (back) gradient_of_inputs(delta, place, turned, back + e * image, at, value, &windows, z);
        if (squares) squares[e] += square_of(gradient, size), gradient += size;
    }
    if (!squares) {
        memcpy(turned, gradient, sizeof(float) * weights);
        for (long f = 0; f < o; f++) turn(turned + f * taps * z->c, gradient + f * taps * z->c, taps, z->c);
    }
    free(origin);
    return 0;
}
