/* What the kernels of dense networks hand to each other, and those that one kernel calls of another file. */

#pragma once

#include "_vectors.h"

typedef struct {
    long trials, width, examples;
} Columns;

typedef struct {
    const float *weights, *bias;     /* (trials, width, inputs), (trials, width); bias may be NULL */
    float *weight_sums, *bias_sums;  /* of the clipped gradients, the same shapes; weights of the first layer are not touched */
} Layer;

typedef struct {
    long trials, layers, examples, own_labels, own_squares; /* own: an array a trial, not one for all */
    long widths[];
} Network;

typedef struct {
    float mean;          /* of the batch: 1 / its (expected) number of records */
    float first, second; /* what bias correction divides the moments by */
} Correction;

/* The next part of `memory`, in floats; a multiple of sixteen, so that whatever follows is aligned. */
INLINE void *take(float **memory, long count) {
    void *taken = *memory;
    *memory += (count + 15) / 16 * 16;
    return taken;
}

int adam(float *restrict weights, const float *restrict sums, float *restrict first, float *restrict second,
         const float *rates, const long *shape, const Correction *by);
int column_squares(const float *values, float *restrict squares, const Columns *z);
int draw_below(int64_t *drawn, int64_t *found, long count, float rate, uint64_t *state);
int list_values(const float *matrix, int32_t *start, int32_t *row, float *value, int32_t *row_start, int32_t *column,
                float *row_value, int64_t *count, long most, const long *sizes);
int multiply_listed(const float *left, const int32_t *start, const int32_t *row, const float *value, float *out,
                    const long *sizes);
int multiply_dense(const float *left, const float *right, float *out, const long *sizes);
int narrow_pass(float *first, const Layer *layers, const int64_t *labels, const float *squares, const float *include,
                const float *clips, float *norms, float *factors, const Network *z);
int normal(float *out, long count, uint64_t *state);
