/* All but the first and the last product of a dense network with few weights behind its first layer: from W a of the
   first layer to the deltas that its gradient is made of; see networks/narrow.py.

   Sixteen examples at a time pass through the layers forward and backward; their activations, deltas and norms stay in
   the first cache. Vectors are over examples, so narrow layers waste no lane. */

#include "_dense.h"
#include "_softmax.h"

enum { TILE = 16, HALF = 8 };

/* What a tile needs: activations and deltas (width, 16) and sums (width, inputs, 8), (width, 8) of every layer. */
typedef struct {
    float *values, *deltas, *weight_sums, *bias_sums;
} Room;

/* `units` (at most 4) rows of W a + b. */
INLINE void units_forward(const float *weights, const float *bias, const float *inputs, float *out, long features,
                          const int units) {
    wide low[4], high[4];
    for (int u = 0; u < 4; u++) low[u] = high[u] = (wide){0};
    for (int u = 0; u < units && bias; u++) low[u] += bias[u], high[u] += bias[u];
    for (long k = 0; k < features; k++, inputs += TILE) {
        const wide first = LOAD(inputs), second = LOAD(inputs + HALF);
        for (int u = 0; u < units; u++) {
            const float weight = weights[u * features + k];
            low[u] += weight * first, high[u] += weight * second;
        }
    }
    for (int u = 0; u < units; u++) STORE(out + u * TILE, low[u]), STORE(out + u * TILE + HALF, high[u]);
}

/* `units` (at most 4) rows of W^T delta. */
INLINE void units_backward(const float *weights, const float *deltas, float *out, long width, long features,
                           const int units) {
    wide low[4], high[4];
    for (int u = 0; u < 4; u++) low[u] = high[u] = (wide){0};
    for (long k = 0; k < width; k++, deltas += TILE, weights += features) {
        const wide first = LOAD(deltas), second = LOAD(deltas + HALF);
        for (int u = 0; u < units; u++) low[u] += weights[u] * first, high[u] += weights[u] * second;
    }
    for (int u = 0; u < units; u++) STORE(out + u * TILE, low[u]), STORE(out + u * TILE + HALF, high[u]);
}

/* CALL(first, units) for all of `width` units, four at a time, with a number that the compiler knows. */
#define FOR_UNITS(width, CALL)                              \
    {                                                       \
        long u = 0;                                         \
        for (; u + 4 <= (width); u += 4) CALL(u, 4);        \
        if ((width)-u == 3) CALL(u, 3);                     \
        if ((width)-u == 2) CALL(u, 2);                     \
        if ((width)-u == 1) CALL(u, 1);                     \
    }

INLINE void layer_forward(const float *weights, const float *bias, const float *inputs, float *out, long width,
                          long features) {
#define CALL(u, units) units_forward(weights + (u)*features, bias ? bias + (u) : bias, inputs, out + (u)*TILE, features, units)
    FOR_UNITS(width, CALL)
#undef CALL
}

INLINE void layer_backward(const float *weights, const float *deltas, float *out, long width, long features) {
#define CALL(u, units) units_backward(weights + (u), deltas, out + (u)*TILE, width, features, units)
    FOR_UNITS(features, CALL)
#undef CALL
}

/* The larger of 0 and value + bias, from rows `line` apart; NaN stays NaN. */
INLINE void rectify_tile(const float *from, long line, const float *bias, float *to, long width) {
    const wide zero = {0};
    for (long u = 0; u < width; u++, from += line)
        for (long h = 0; h < TILE; h += HALF, to += HALF) {
            const wide value = LOAD(from + h) + (bias ? bias[u] : 0.0f);
            STORE(to, CHOOSE(value < zero, zero, value));
        }
}

/* Zero where the outputs are not positive. */
INLINE void stop_tile(float *deltas, const float *outputs, long width) {
    const wide zero = {0};
    for (long i = 0; i < width * TILE; i += HALF) STORE(deltas + i, CHOOSE(LOAD(outputs + i) <= zero, zero, LOAD(deltas + i)));
}

/* sums (width, features, 8) and (width, 8) of factor times delta times input; deltas are multiplied, too. */
INLINE void add_gradients(float *deltas, const float *inputs, wide low, wide high, float *sums, float *bias_sums, long width,
                          long features) {
    for (long u = 0; u < width; u++, deltas += TILE, bias_sums += HALF) {
        const wide first = LOAD(deltas) * low, second = LOAD(deltas + HALF) * high;
        STORE(deltas, first);
        STORE(deltas + HALF, second);
        STORE(bias_sums, LOAD(bias_sums) + first + second);
        for (long k = 0; k < features; k++, sums += HALF)
            STORE(sums, LOAD(sums) + first * LOAD(inputs + k * TILE) + second * LOAD(inputs + k * TILE + HALF));
    }
}

/* The squares of every example's values, added up. */
INLINE void square_tile(const float *values, long width, wide *low, wide *high) {
    wide first = {0}, second = {0};
    for (long u = 0; u < width; u++, values += TILE)
        first += LOAD(values) * LOAD(values), second += LOAD(values + HALF) * LOAD(values + HALF);
    *low = first, *high = second;
}

INLINE wide root(wide values) {
    for (int lane = 0; lane < HALF; lane++) values[lane] = __builtin_sqrtf(values[lane]);
    return values;
}

/* The smaller of 1 and clip / norm, times the example's weight; NaN stays NaN. */
INLINE wide factor(wide norm, float clip, wide include) {
    const wide one = 1.0f - (wide){0}, share = clip / norm;
    return CHOOSE(share > one, one, share) * include;
}

/* From a tile of `first` (rows `z->examples` apart), whose place is taken by the deltas, to the sums in `room`. Without
   `clip` nothing is clipped and no norm is taken. */
INLINE void pass_tile(float *first, const Layer *layers, const int64_t *labels, const float *squares, const float *clip,
                      const float *include, float *norms, float *factors, const Room *room, long t, const Network *z) {
    const long last = z->layers - 1, *widths = z->widths;
    rectify_tile(first, z->examples, layers[0].bias ? layers[0].bias + t * widths[0] : NULL, room[0].values, widths[0]);
    for (long l = 1; l <= last; l++) {
        const float *bias = layers[l].bias ? layers[l].bias + t * widths[l] : NULL;
        float *out = l < last ? room[l].values : room[l].deltas;
        layer_forward(layers[l].weights + t * widths[l] * widths[l - 1], bias, room[l - 1].values, out, widths[l],
                      widths[l - 1]);
        if (l < last) rectify_tile(out, TILE, NULL, out, widths[l]);
    }
    float *deltas = room[last].deltas;
    softmax_of_sixteen(deltas, widths[last], TILE);
    for (long e = 0; e < TILE; e++) deltas[labels[e] * TILE + e] -= 1.0f;
    for (long l = last; l > 0; l--) {
        layer_backward(layers[l].weights + t * widths[l] * widths[l - 1], room[l].deltas, room[l - 1].deltas, widths[l],
                       widths[l - 1]);
        stop_tile(room[l - 1].deltas, room[l - 1].values, widths[l - 1]);
    }
    wide low = LOAD(include), high = LOAD(include + HALF);
    if (clip) {
        wide total0 = {0}, total1 = {0}, input0 = LOAD(squares), input1 = LOAD(squares + HALF), delta0, delta1;
        for (long l = 0; l <= last; l++) {
            if (l) square_tile(room[l - 1].values, widths[l - 1], &input0, &input1);
            if (l && layers[l].bias) input0 += 1.0f, input1 += 1.0f;
            square_tile(room[l].deltas, widths[l], &delta0, &delta1);
            total0 += delta0 * input0, total1 += delta1 * input1;
        }
        total0 = root(total0), total1 = root(total1);
        STORE(norms, total0);
        STORE(norms + HALF, total1);
        const wide one = 1.0f - (wide){0};
        STORE(factors, factor(total0, *clip, one));
        STORE(factors + HALF, factor(total1, *clip, one));
        low *= LOAD(factors), high *= LOAD(factors + HALF);
    }
    for (long l = 0; l <= last; l++)
        add_gradients(room[l].deltas, l ? room[l - 1].values : NULL, low, high, room[l].weight_sums, room[l].bias_sums,
                      widths[l], l ? widths[l - 1] : 0);
    for (long u = 0; u < widths[0]; u++) memcpy(first + u * z->examples, room[0].deltas + u * TILE, sizeof(float) * TILE);
}

INLINE void add_lanes(const float *sums, float *out, long count) {
    for (long i = 0; i < count; i++, sums += HALF) {
        out[i] = 0.0f;
        for (int lane = 0; lane < HALF; lane++) out[i] += sums[lane];
    }
}

/* first (trials, width, examples): W a of the first layer, replaced by its deltas times the examples' factors. labels
   and squares, |a|^2 (+ 1 with a bias), (1 or trials, examples); clips (trials), or NULL where nothing is clipped, which
   leaves norms and factors alone. Examples are a multiple of sixteen. */
EXPORT FOR_THIS_CPU int narrow_pass(float *first, const Layer *layers, const int64_t *labels, const float *squares,
                                    const float *include, const float *clips, float *norms, float *factors,
                                    const Network *z) {
    const long *widths = z->widths, line = z->examples;
    Room *room = malloc(sizeof(Room) * z->layers);
    long size = 0;
    for (long l = 0; l < z->layers; l++) size += widths[l] * (2 * TILE + HALF + (l ? widths[l - 1] * HALF : 0));
    float *memory = malloc(sizeof(float) * size), *next = memory;
    if (!room || !memory) {
        free(room), free(memory);
        return 1;
    }
    for (long l = 0; l < z->layers; l++) {
        room[l].values = next, room[l].deltas = next + widths[l] * TILE;
        room[l].bias_sums = room[l].deltas + widths[l] * TILE, room[l].weight_sums = room[l].bias_sums + widths[l] * HALF;
        next = room[l].weight_sums + (l ? widths[l] * widths[l - 1] * HALF : 0);
    }
    for (long t = 0; t < z->trials; t++, first += widths[0] * line) {
        memset(memory, 0, sizeof(float) * size);
        for (long e = 0; e < line; e += TILE)
            pass_tile(first + e, layers, labels + (z->own_labels ? t * line : 0) + e,
                      squares + (z->own_squares ? t * line : 0) + e, clips ? clips + t : NULL, include + t * line + e,
                      norms + t * line + e, factors + t * line + e, room, t, z);
        for (long l = 0; l < z->layers; l++) {
            const long weights = l ? widths[l] * widths[l - 1] : 0;
            if (layers[l].bias_sums) add_lanes(room[l].bias_sums, layers[l].bias_sums + t * widths[l], widths[l]);
            add_lanes(room[l].weight_sums, layers[l].weight_sums + t * weights, weights);
        }
    }
    free(room), free(memory);
    return 0;
}
