/* What stands between the matrix products of dense layers; see columns.py, which says what each of these does.

   Values are (trials, width, examples). A column's values are summed down the rows, many examples at a time: torch
   needs a pass over memory for each of square, sum, product and difference. */

#include "_dense.h"
#include "_softmax.h"

EXPORT FOR_THIS_CPU int column_squares(const float *values, float *restrict squares, const Columns *z) {
    memset(squares, 0, sizeof(float) * z->trials * z->examples);
    for (long t = 0; t < z->trials; t++, squares += z->examples)
        for (long k = 0; k < z->width; k++, values += z->examples)
            for (long e = 0; e < z->examples; e++) squares[e] += values[e] * values[e];
    return 0;
}

EXPORT FOR_THIS_CPU int rectify(float *values, const float *bias, const Columns *z) {
    const wide zero = {0};
    for (long row = 0; row < z->trials * z->width; row++, values += z->examples) {
        const float shift = bias ? bias[row] : 0.0f;
        long e = 0;
        for (; e + 8 <= z->examples; e += 8) {
            const wide value = LOAD(values + e) + shift;
            STORE(values + e, CHOOSE(value < zero, zero, value)); /* NaN stays NaN */
        }
        for (; e < z->examples; e++) values[e] = values[e] + shift < 0.0f ? 0.0f : values[e] + shift;
    }
    return 0;
}

EXPORT FOR_THIS_CPU int stop(float *delta, const float *outputs, float *squares, const Columns *z) {
    const wide zero = {0};
    memset(squares, 0, sizeof(float) * z->trials * z->examples);
    for (long t = 0; t < z->trials; t++, squares += z->examples)
        for (long k = 0; k < z->width; k++, delta += z->examples, outputs += z->examples) {
            long e = 0;
            for (; e + 8 <= z->examples; e += 8) {
                const wide passed = CHOOSE(LOAD(outputs + e) <= zero, zero, LOAD(delta + e));
                STORE(delta + e, passed);
                STORE(squares + e, LOAD(squares + e) + passed * passed);
            }
            for (; e < z->examples; e++) {
                delta[e] = outputs[e] <= 0.0f ? 0.0f : delta[e];
                squares[e] += delta[e] * delta[e];
            }
        }
    return 0;
}

EXPORT FOR_THIS_CPU int weigh(float *restrict delta, const float *restrict factors, float *sums, const Columns *z) {
    for (long t = 0; t < z->trials; t++, factors += z->examples)
        for (long k = 0; k < z->width; k++, delta += z->examples) {
            wide parts = {0};
            long e = 0;
            for (; e + 8 <= z->examples; e += 8) {
                const wide weighed = LOAD(delta + e) * LOAD(factors + e);
                STORE(delta + e, weighed);
                parts += weighed;
            }
            float sum = 0.0f;
            for (int lane = 0; lane < 8; lane++) sum += parts[lane];
            for (; e < z->examples; e++) sum += delta[e] *= factors[e];
            if (sums) *sums++ = sum;
        }
    return 0;
}

INLINE void copy_columns(const float *from, long from_line, float *to, long to_line, long width, long count) {
    for (long k = 0; k < width; k++) memcpy(to + k * to_line, from + k * from_line, sizeof(float) * count);
}

EXPORT FOR_THIS_CPU int softmax_minus_class(float *values, const int64_t *labels, long batches, const Columns *z) {
    const long line = z->examples, vectors = line / 16 * 16;
    float *rest = calloc(16 * z->width, sizeof(float));
    if (!rest) return 1;
    for (long t = 0; t < z->trials; t++, values += z->width * line, labels += batches > 1 ? line : 0) {
        for (long e = 0; e < vectors; e += 16) softmax_of_sixteen(values + e, z->width, line);
        copy_columns(values + vectors, line, rest, 16, z->width, line - vectors);
        softmax_of_sixteen(rest, z->width, 16);
        copy_columns(rest, 16, values + vectors, line, z->width, line - vectors);
        for (long e = 0; e < line; e++) values[labels[e] * line + e] -= 1.0f;
    }
    free(rest);
    return 0;
}

INLINE float dot(const float *a, const float *b, long count) {
    wide first = {0}, second = {0};
    long i = 0;
    for (; i + 16 <= count; i += 16) first += LOAD(a + i) * LOAD(b + i), second += LOAD(a + i + 8) * LOAD(b + i + 8);
    first += second;
    float sum = 0.0f;
    for (int lane = 0; lane < 8; lane++) sum += first[lane];
    for (; i < count; i++) sum += a[i] * b[i];
    return sum;
}

/* matrices (trials, width, examples) by vectors (batches, count, examples): products (trials, width, count). */
EXPORT FOR_THIS_CPU int multiply_few(const float *matrices, const float *vectors, long batches, long count,
                                     float *products, const Columns *z) {
    for (long t = 0; t < z->trials; t++, vectors += batches > 1 ? count * z->examples : 0)
        for (long k = 0; k < z->width; k++, matrices += z->examples)
            for (long i = 0; i < count; i++) *products++ = dot(matrices, vectors + i * z->examples, z->examples);
    return 0;
}
