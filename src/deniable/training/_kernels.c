/* Convolutions of small images with every example's own gradient.

   Libraries sum over examples inside, or take a product over all positions; both do several times the work that is
   needed here. A pooled convolution sends its gradient through one of four positions, and a ReLU stops it at some of
   those. Images are channels-last (n, h, w, c), kernels (r, s, c, o), outputs (n, p, q, o) with stride 1 and without
   padding. Every kernel returns 0, or 1 for want of memory.
   Built as an optional extension; without it the same results come from torch, more slowly. */

#include <Python.h>

#include "_vectors.h"

/* Of the kernels' names, arguments and sizes: kernels.py refuses a library of another number. */
EXPORT int kernel_version(void) { return 8; }

/* Whether this processor runs the kernels faster than torch; on x86 that takes AVX2, in this build and here. */
EXPORT int faster_than_torch(void) {
#if defined(__x86_64__) && (defined(CLONED) || defined(__AVX2__))
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#elif defined(__x86_64__)
    return 0;
#else
    return 1;
#endif
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
                        const places below = sums[2 * t + half] <= least; /* false for NaN, which stays */
                        STORE(out + (first + t) * o + f + 8 * half, CHOOSE(below, least, sums[2 * t + half]));
                    }
            }
        }
        for (long j = 0; j < q; j++)
            for (long f = vectors; f < o; f++) {
                const float sum = one_filter(x + j * c, kernel + f, bias ? bias + f : bias, z);
                out[j * o + f] = sum <= floor ? floor : sum;
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
    for (int t = 0; t < taps; t++, gradient += z->o) {
        STORE(gradient, LOAD(gradient) + low[t]);
        STORE(gradient + 8, LOAD(gradient + 8) + high[t]);
    }
}

INLINE float tap_of_one(const float *x, const float *delta, long line, const Sizes *z) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1;
    float sum = 0.0f;
    for (long i = 0; i < p; i++)
        for (long j = 0; j < q; j++) sum += x[(i * z->w + j) * z->c] * delta[i * line + j * z->o];
    return sum;
}

/* Of one example: added to gradient (r, s, c, o) of the kernel. */
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
                    gradient[(k * row + i + t) * o + f] += tap_of_one(x + i + t, delta + f, line, z);
            i += taps;
        }
}

/* The deltas that pass the ReLU (all without `out`), and their sum over positions, added to a bias if there is one. */
INLINE void pass(const float *delta, const float *out, float *passed, long line, float *bias, const Sizes *z) {
    const long p = z->h - z->r + 1, q = z->w - z->s + 1, o = z->o;
    for (long i = 0; i < p; i++, delta += q * o, passed += line, out = out ? out + q * o : out) {
        for (long j = 0; j < q * o; j++) passed[j] = out && out[j] <= 0.0f ? 0.0f : delta[j];
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
    memset(gradient, 0, sizeof(float) * size * (squares ? z->n : 1));
    for (long e = 0; e < z->n; e++, x += image, delta += p * q * o) {
        pass(delta, out ? out + e * p * q * o : out, inside, line, bias ? gradient + weights : NULL, z);
        gradient_of_kernel(x, inside, line, gradient, z);
        if (squares) squares[e] += square_of(gradient, size), gradient += size;
        if (back) convolve_one(padded, turned, NULL, back + e * image, -__builtin_inff(), &around);
    }
    free(padded);
    return 0;
}

static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = -1};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&module); }
