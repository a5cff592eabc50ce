/* Products of layers with few units, which leave a library's matrix product no room to work; see columns.py.

   Weights (trials, width, features), inputs (trials, features, examples), deltas (trials, width, examples). Four units
   and sixteen examples at a time: eight accumulators keep the multipliers busy. */

#include "_vectors.h"

typedef struct {
    long trials, width, features, examples;
} Product;

/* `units` (at most 4) rows of out, sixteen examples or, without `both`, eight. */
INLINE void units_forward(const float *weights, const float *bias, const float *inputs, float *out, const Product *z,
                          const int units, const int both) {
    wide low[4], high[4];
    for (int u = 0; u < 4; u++) low[u] = high[u] = (wide){0};
    for (int u = 0; u < units && bias; u++) low[u] += bias[u], high[u] += bias[u];
    for (long k = 0; k < z->features; k++, inputs += z->examples) {
        const wide first = LOAD(inputs);
        for (int u = 0; u < units; u++) low[u] += weights[u * z->features + k] * first;
        if (!both) continue;
        const wide second = LOAD(inputs + 8);
        for (int u = 0; u < units; u++) high[u] += weights[u * z->features + k] * second;
    }
    for (int u = 0; u < units; u++) {
        STORE(out + u * z->examples, low[u]);
        if (both) STORE(out + u * z->examples + 8, high[u]);
    }
}

/* What `units` deltas send back to every input, added to out unless they are the first ones. */
INLINE void units_backward(const float *weights, const float *deltas, float *out, const Product *z, const int units,
                           const int first, const int both) {
    wide low[4], high[4];
    for (int u = 0; u < units; u++) {
        low[u] = LOAD(deltas + u * z->examples);
        high[u] = both ? LOAD(deltas + u * z->examples + 8) : low[u];
    }
    for (long k = 0; k < z->features; k++, out += z->examples) {
        wide sum = {0}, second = {0};
        if (!first) sum = LOAD(out);
        if (!first && both) second = LOAD(out + 8);
        for (int u = 0; u < units; u++) {
            sum += weights[u * z->features + k] * low[u];
            if (both) second += weights[u * z->features + k] * high[u];
        }
        STORE(out, sum);
        if (both) STORE(out + 8, second);
    }
}

INLINE float total(wide values) {
    float sum = 0.0f;
    for (int lane = 0; lane < 8; lane++) sum += values[lane];
    return sum;
}

/* Sums over examples of `units` deltas times `count` (1 or 2) inputs; examples are a multiple of eight. */
INLINE void units_outer(const float *deltas, const float *inputs, float *out, const Product *z, const int units,
                        const int count) {
    wide sums[4][2] = {{{0}}};
    for (long e = 0; e < z->examples; e += 8)
        for (int i = 0; i < count; i++) {
            const wide input = LOAD(inputs + i * z->examples + e);
            for (int u = 0; u < units; u++) sums[u][i] += LOAD(deltas + u * z->examples + e) * input;
        }
    for (int u = 0; u < units; u++)
        for (int i = 0; i < count; i++) out[u * z->features + i] = total(sums[u][i]);
}

/* CALL(units) with a number that the compiler knows. */
#define FOR_UNITS(left, CALL)                                                                     \
    if ((left) >= 4) {                                                                            \
        CALL(4);                                                                                  \
    } else if ((left) == 3) {                                                                     \
        CALL(3);                                                                                  \
    } else if ((left) == 2) {                                                                     \
        CALL(2);                                                                                  \
    } else {                                                                                      \
        CALL(1);                                                                                  \
    }

/* out (trials, width, examples); examples are a multiple of eight, as in the others. */
EXPORT FOR_THIS_CPU int narrow_forward(const float *weights, const float *bias, const float *inputs, float *out,
                                       const Product *z) {
    for (long t = 0; t < z->trials; t++, inputs += z->features * z->examples)
        for (long u = 0; u < z->width; u += 4) {
            const long left = z->width - u < 4 ? z->width - u : 4;
            long e = 0;
#define WIDE(units) for (; e + 16 <= z->examples; e += 16) units_forward(weights, bias, inputs + e, out + e, z, units, 1)
#define HALF(units) for (; e + 8 <= z->examples; e += 8) units_forward(weights, bias, inputs + e, out + e, z, units, 0)
            FOR_UNITS(left, WIDE)
            FOR_UNITS(left, HALF)
#undef WIDE
#undef HALF
            weights += left * z->features, out += left * z->examples, bias = bias ? bias + left : bias;
        }
    return 0;
}

/* out (trials, features, examples). */
EXPORT FOR_THIS_CPU int narrow_backward(const float *weights, const float *deltas, float *out, const Product *z) {
    for (long t = 0; t < z->trials; t++, out += z->features * z->examples)
        for (long u = 0; u < z->width; u += 4) {
            const long left = z->width - u < 4 ? z->width - u : 4;
            long e = 0;
#define WIDE(units) for (; e + 16 <= z->examples; e += 16) units_backward(weights, deltas + e, out + e, z, units, !u, 1)
#define HALF(units) for (; e + 8 <= z->examples; e += 8) units_backward(weights, deltas + e, out + e, z, units, !u, 0)
            FOR_UNITS(left, WIDE)
            FOR_UNITS(left, HALF)
#undef WIDE
#undef HALF
            weights += left * z->features, deltas += left * z->examples;
        }
    return 0;
}

/* out (trials, width, features). */
EXPORT FOR_THIS_CPU int narrow_outer(const float *deltas, const float *inputs, float *out, const Product *z) {
    for (long t = 0; t < z->trials; t++, inputs += z->features * z->examples)
        for (long u = 0; u < z->width; u += 4) {
            const long left = z->width - u < 4 ? z->width - u : 4;
            long k = 0;
#define TWO(units) for (; k + 2 <= z->features; k += 2) units_outer(deltas, inputs + k * z->examples, out + k, z, units, 2)
#define ONE(units) for (; k < z->features; k++) units_outer(deltas, inputs + k * z->examples, out + k, z, units, 1)
            FOR_UNITS(left, TWO)
            FOR_UNITS(left, ONE)
#undef TWO
#undef ONE
            deltas += left * z->examples, out += left * z->features;
        }
    return 0;
}
