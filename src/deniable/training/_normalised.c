/* A group norm and a 2 x 2 max pooling; see _kernels.c. */

#include "_vectors.h"

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
                                           uint8_t *place, float *statistics, const Norm *z, float eps) {
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
   squares (n) unless it is NULL, and back (n, h, w, c). */
EXPORT FOR_THIS_CPU int normalised_backward(const float *x, const float *delta, const uint8_t *place,
                                            const float *scale, const float *statistics, float *gradient,
                                            float *squares, float *back, const Norm *z) {
    const long c = z->c, p = z->h / 2, q = z->w / 2, pixels = z->h * z->w, width = c / z->groups;
    float *slope = malloc(sizeof(float) * 2 * c), *constant = slope + c;
    if (!slope) return 1;
    for (long e = 0; e < z->n; e++, x += pixels * c, back += pixels * c, statistics += 2 * c, gradient += 2 * c) {
        const float *mean = statistics, *inverse = statistics + c;
        const float *deltas = delta + e * p * q * c;
        const uint8_t *where = place + e * p * q * c;
        for (long k = 0; k < c; k += 8) {
            wide by_scale = {0}, by_shift = {0};
            for (long cell = 0; cell < p * q; cell++) {
                const wide d = LOAD(deltas + cell * c + k);
                const places which = LOAD_PLACES(where + cell * c + k);
                const float *at = x + (2 * (cell / q) * z->w + 2 * (cell % q)) * c + k;
                wide value = {0};
                for (int t = 0; t < 4; t++)
                    value = CHOOSE(which == t, LOAD(at + ((t / 2) * z->w + t % 2) * c), value);
                by_scale += d * (value - LOAD(mean + k)), by_shift += d;
            }
            STORE(gradient + k, by_scale * LOAD(inverse + k));
            STORE(gradient + c + k, by_shift);
        }
        if (squares) squares[e] += square_of(gradient, 2 * c);
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
                const places which = LOAD_PLACES(where + cell * c + k);
                float *to = back + (2 * (cell / q) * z->w + 2 * (cell % q)) * c + k;
                for (int t = 0; t < 4; t++, to += t == 2 ? (z->w - 1) * c : c)
                    STORE(to, LOAD(to) + (wide)((which == t) & (places)d));
            }
    }
    free(slope);
    return 0;
}
