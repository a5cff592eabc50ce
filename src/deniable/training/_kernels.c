/* Max pooling of 2 x 2 windows and the backward pass of the convolution before it.

   A pooled convolution sends its gradient through one of four positions, and a ReLU stops it at about half of those:
   a product over all positions, which is what a BLAS would do, does eight times the work. Images are channels-last.
   Built as an optional extension; without it the same results come from torch, more slowly. */

#include <Python.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_THIS_CPU __attribute__((target_clones("arch=x86-64-v3", "default"), optimize("O3", "no-trapping-math", "no-math-errno")))
#else
#define FOR_THIS_CPU
#endif

/* x (n, h, w, c) -> out, place (n, h / 2, w / 2, c): the largest of each window (at least 0 with relu), and which of the
   four it is: the first of equal ones. NaN stays NaN. */
EXPORT FOR_THIS_CPU void pool(const float *restrict x, float *restrict out, int32_t *restrict place, long n, long h,
                              long w, long c, int relu) {
    const float floor = relu ? 0.0f : -__builtin_inff();
    for (long i = 0; i < n * (h / 2); i++) {
        const float *upper = x + ((i / (h / 2)) * h + 2 * (i % (h / 2))) * w * c;
        for (long j = 0; j < w / 2; j++, upper += 2 * c, out += c, place += c)
            for (long k = 0; k < c; k++) {
                const float *at = upper + k;
                float best = at[0];
                int32_t which = 0;
                which = at[c] > best ? 1 : which, best = at[c] > best ? at[c] : best;
                which = at[w * c] > best ? 2 : which, best = at[w * c] > best ? at[w * c] : best;
                which = at[w * c + c] > best ? 3 : which, best = at[w * c + c] > best ? at[w * c + c] : best;
                out[k] = best < floor ? floor : best;
                place[k] = which;
            }
    }
}

#define SMALL 4096

/* One example of few channels: vectors run over the filters, once for each of the four places. */
static inline __attribute__((always_inline)) void few_channels(const float *restrict x, const float *restrict delta, const int32_t *restrict place,
                                float *restrict gradient, const long *sizes) {
    const long w = sizes[2], c = sizes[3], q = sizes[5], o = sizes[6], row = sizes[8] * c, taps = sizes[7] * row;
    float sums[SMALL] = {0}, part[SMALL];
    for (long cell = 0; cell < sizes[4] * q; cell++, delta += o, place += o)
        for (int32_t t = 0; t < 4; t++) {
            const float *at = x + ((2 * (cell / q) + t / 2) * w + 2 * (cell % q) + t % 2) * c;
            for (long f = 0; f < o; f++) part[f] = place[f] == t ? delta[f] : 0.0f;
            float *sum = sums;
            for (long k = 0; k < sizes[7]; k++, at += w * c)
                for (long i = 0; i < row; i++, sum += o)
                    for (long f = 0; f < o; f++) sum[f] += at[i] * part[f];
        }
    for (long f = 0; f < o; f++)
        for (long tap = 0; tap < taps; tap++) gradient[f * taps + tap] = sums[tap * o + f];
}

/* delta, place (n, p, q, o) of the pooled outputs; x (n, h, w, c) inputs; kernel (o, r, s, c).
   gradient (n, o, r, s, c) of every example; back (n, h, w, c), or NULL where it is not needed. */
EXPORT FOR_THIS_CPU void pooled_backward(const float *restrict x, const float *restrict delta,
                                         const int32_t *restrict place, const float *restrict kernel,
                                         float *restrict gradient, float *restrict back, const long *sizes) {
    const long n = sizes[0], h = sizes[1], w = sizes[2], c = sizes[3], p = sizes[4], q = sizes[5], o = sizes[6];
    const long r = sizes[7], row = sizes[8] * c, image = h * w * c, size = o * r * row;
    if (!back && row < 8 && size <= SMALL) {
        for (long e = 0; e < n; e++)
            few_channels(x + e * image, delta + e * p * q * o, place + e * p * q * o, gradient + e * size, sizes);
        return;
    }
    memset(gradient, 0, sizeof(float) * n * size);
    if (back) memset(back, 0, sizeof(float) * n * image);
    for (long e = 0; e < n; e++, x += image, gradient += size, back = back ? back + image : back)
        for (long cell = 0; cell < p * q; cell++)
            for (long f = 0; f < o; f++, delta++, place++) {
                const float d = *delta;
                if (d == 0.0f) continue;
                const long at = ((2 * (cell / q) + *place / 2) * w + 2 * (cell % q) + *place % 2) * c;
                for (long k = 0; k < r; k++) {
                    const float *restrict in = x + at + k * w * c, *restrict weight = kernel + (f * r + k) * row;
                    float *restrict sum = gradient + (f * r + k) * row;
                    for (long i = 0; i < row; i++) sum[i] += d * in[i];
                    if (!back) continue;
                    float *restrict to = back + at + k * w * c;
                    for (long i = 0; i < row; i++) to[i] += d * weight[i];
                }
            }
}

static struct PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_kernels", .m_size = -1};

PyMODINIT_FUNC PyInit__kernels(void) { return PyModule_Create(&module); }
