/* Convolutions with 3 x 3 kernels and a 2 x 2 pooling by Winograd's F(2 x 2, 3 x 3): 16 products instead of 36 for a
   window (Lavin and Gray 2016, doi:10.1109/CVPR.2016.435). One tile is one pooled window. */

#include "_vectors.h"

enum { POINTS = 16, TILES = 5, FILTERS = 16 };

/* One tile, whose inputs begin at x, of points (16, tiles, c). */
INLINE void transform_inputs(const float *x, float *restrict points, long tiles, const Sizes *z) {
    const long line = z->w * z->c;
    for (long f = 0; f < z->c; f += 8) {
        wide rows[4][4];
        for (int j = 0; j < 4; j++) {
            const float *at = x + j * z->c + f;
            const wide a = LOAD(at), b = LOAD(at + line), c = LOAD(at + 2 * line), d = LOAD(at + 3 * line);
            rows[0][j] = a - c, rows[1][j] = b + c, rows[2][j] = c - b, rows[3][j] = b - d;
        }
        for (int i = 0; i < 4; i++) {
            float *to = points + 4 * i * tiles * z->c + f;
            const long next = tiles * z->c;
            STORE(to, rows[i][0] - rows[i][2]);
            STORE(to + next, rows[i][1] + rows[i][2]);
            STORE(to + 2 * next, rows[i][2] - rows[i][1]);
            STORE(to + 3 * next, rows[i][1] - rows[i][3]);
        }
    }
}

/* kernel (3, 3, c, o) to points (o / 16, 16, c, 16). */
INLINE void transform_kernel(const float *kernel, float *restrict points, const Sizes *z) {
    const long plane = z->c * z->o, next = z->c * FILTERS;
    for (long c = 0; c < z->c; c++)
        for (long f = 0; f < z->o; f += 8) {
            const float *from = kernel + c * z->o + f;
            float *to = points + f / FILTERS * POINTS * next + c * FILTERS + f % FILTERS;
            wide rows[4][3];
            for (int j = 0; j < 3; j++) {
                const wide a = LOAD(from + j * plane), b = LOAD(from + (3 + j) * plane), c3 = LOAD(from + (6 + j) * plane);
                rows[0][j] = a, rows[1][j] = 0.5f * (a + b + c3), rows[2][j] = 0.5f * (a - b + c3), rows[3][j] = c3;
            }
            for (int i = 0; i < 4; i++, to += 4 * next) {
                STORE(to, rows[i][0]);
                STORE(to + next, 0.5f * (rows[i][0] + rows[i][1] + rows[i][2]));
                STORE(to + 2 * next, 0.5f * (rows[i][0] - rows[i][1] + rows[i][2]));
                STORE(to + 3 * next, rows[i][2]);
            }
        }
}

/* Five tiles (5, c) by sixteen filters (c, 16) of one point: ten accumulators. */
INLINE void multiply_tiles(const float *tiles, const float *filters, float *restrict out, long c) {
    wide low[TILES], high[TILES];
    for (int t = 0; t < TILES; t++) low[t] = high[t] = (wide){0};
    for (long k = 0; k < c; k++, filters += FILTERS) {
        const wide first = LOAD(filters), second = LOAD(filters + 8);
        for (int t = 0; t < TILES; t++) low[t] += tiles[t * c + k] * first, high[t] += tiles[t * c + k] * second;
    }
    for (int t = 0; t < TILES; t++) STORE(out + t * FILTERS, low[t]), STORE(out + t * FILTERS + 8, high[t]);
}

/* One tile's points, `next` floats apart, to the four values of its window. */
INLINE void transform_outputs(const float *points, long next, wide bias, wide *window) {
    wide rows[2][4];
    for (int j = 0; j < 4; j++, points += next) {
        const wide a = LOAD(points), b = LOAD(points + 4 * next), c = LOAD(points + 8 * next), d = LOAD(points + 12 * next);
        rows[0][j] = a + b + c, rows[1][j] = b - c - d;
    }
    for (int i = 0; i < 2; i++) {
        window[2 * i] = rows[i][0] + rows[i][1] + rows[i][2] + bias;
        window[2 * i + 1] = rows[i][1] - rows[i][2] - rows[i][3] + bias;
    }
}

/* As convolve_and_pool, for 3 x 3 kernels, channels in eights, filters in sixteens, and from five windows on. */
EXPORT FOR_THIS_CPU int winograd_and_pool(const float *x, const float *given, const float *bias, float *out,
                                          uint8_t *place, const Sizes *z, int relu, int flat) {
    const long p = (z->h - 2) / 2, q = (z->w - 2) / 2, tiles = p * q, c = z->c, o = z->o;
    const float floor = relu ? 0.0f : -__builtin_inff();
    const wide none = {0};
    float *inputs = malloc(sizeof(float) * (POINTS * (tiles * (c + FILTERS) + c * o) + (tiles + 9 * c) * o));
    if (!inputs) return 1;
    float *filters = inputs + POINTS * tiles * c, *products = filters + POINTS * c * o;
    float *pooled = products + POINTS * tiles * FILTERS, *kernel = pooled + tiles * o;
    put_filters_last(given, kernel, z);
    transform_kernel(kernel, filters, z);
    for (long e = 0; e < z->n; e++, x += z->h * z->w * c, out += tiles * o, place += tiles * o) {
        float *to = flat ? pooled : out;
        for (long t = 0; t < tiles; t++)
            transform_inputs(x + (2 * (t / q) * z->w + 2 * (t % q)) * c, inputs + t * c, tiles, z);
        for (long f = 0; f < o; f += FILTERS) {
            for (long i = 0; i < POINTS; i++)
                for (long t = 0; t < tiles; t += TILES) {
                    const long first = t + TILES <= tiles ? t : tiles - TILES; /* the last overlap those before */
                    multiply_tiles(inputs + (i * tiles + first) * c, filters + (f * POINTS + i * FILTERS) * c,
                                   products + (i * tiles + first) * FILTERS, c);
                }
            for (long t = 0; t < tiles; t++)
                for (long half = f; half < f + FILTERS; half += 8) {
                    wide window[4];
                    transform_outputs(products + t * FILTERS + half - f, tiles * FILTERS,
                                      bias ? LOAD(bias + half) : none, window);
                    largest_of_four(window, 1, floor, to + t * o + half, place + t * o + half);
                }
        }
        if (flat) turn(pooled, out, tiles, o);
    }
    free(inputs);
    return 0;
}
