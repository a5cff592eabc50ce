/* Steps of many models of one dense network, each on batches of its own records, without clipping or noise: shadow
   models; see subset_models.py.

   A model takes all its steps before the next one begins, so that its weights and moments stay in the second cache.
   Weights are turned, (inputs, width), and widths are multiples of eight: vectors are over units, and a record's zeros
   are skipped where records are listed: a weight that is not finite may be skipped, too, but it stays so, and who takes
   the model refuses it. Values of units that pad a width are zero and stay so. */

#include "_adam.h"
#include "_softmax.h"
#include "_turn.h"

enum { LANES = 8, TILE = 16 };

typedef struct {
    long models, features, batch, steps, line; /* line: records of a model; an epoch's last batch has what is left */
    long listed, adam, classes, layers;
    long shape[]; /* widths of all layers, then whether each has a bias */
} Plan;

/* Records, dense (records, features) or, of each, which of its values are not zero. */
typedef struct {
    const float *rows;
    const int32_t *start, *place;
    const float *value;
    const int64_t *labels;
} Records;

/* One model's, each of all layers in a row: turned weights (inputs, width), then bias (width). */
typedef struct {
    float *weights, *first, *second;
} Values;

/* What a step needs of a layer: outputs, deltas (examples, width); weights, inputs turned; sums like the weights. */
typedef struct {
    float *outputs, *deltas, *turned_weights, *turned_inputs, *sums;
    long inputs, width, biased, at; /* at: where its weights begin */
} Room;

typedef struct {
    long batch, examples; /* of this step; examples, padded, are a multiple of sixteen */
    float *rows, *classes;
    int32_t *start, *place;
    float *value;
    Room *layers;
} Memory;

/* PARTS vectors of columns of the sum of listed rows of right, each times its value. */
#define ADD_LISTED(NAME, VECTOR, UNALIGNED)                                                                          \
    INLINE void NAME(const float *right, const int32_t *row, const float *value, long count, float *out, long width, \
                     const int parts) {                                                                              \
        VECTOR sums[8];                                                                                              \
        for (int p = 0; p < parts; p++) sums[p] = (VECTOR){0};                                                       \
        for (long n = 0; n < count; n++) {                                                                           \
            const UNALIGNED *from = (const UNALIGNED *)(right + row[n] * width);                                     \
            for (int p = 0; p < parts; p++) sums[p] += value[n] * from[p];                                           \
        }                                                                                                            \
        for (int p = 0; p < parts; p++) ((UNALIGNED *)out)[p] = sums[p];                                             \
    }

ADD_LISTED(add_listed, wide, unaligned)
ADD_LISTED(add_listed_at_once, wider, wider_unaligned)

/* The first columns, as many as eight registers of AVX-512 hold; returns how many. */
FOR_AVX512 static long first_columns(const float *right, const int32_t *row, const float *value, long count, float *out,
                                     long width) {
    long w = 0;
    for (; w + 128 <= width; w += 128) add_listed_at_once(right + w, row, value, count, out + w, width, 8);
    for (; w + 32 <= width; w += 32) add_listed_at_once(right + w, row, value, count, out + w, width, 2);
    return w;
}

/* One row (width) of a listed matrix times right (inner, width). */
INLINE void listed_row(const float *right, const int32_t *row, const float *value, long count, float *out, long width) {
    long w = HAS_AVX512 ? first_columns(right, row, value, count, out, width) : 0;
    for (; w + 64 <= width; w += 64) add_listed(right + w, row, value, count, out + w, width, 8);
    for (; w < width; w += 8) add_listed(right + w, row, value, count, out + w, width, 1);
}

/* The largest of 0 and outputs + bias; the last layer has no 0. */
INLINE void finish_layer(float *outputs, const float *bias, long examples, long width, const int rectified) {
    const wide zero = {0};
    for (long e = 0; e < examples; e++)
        for (long w = 0; w < width; w += LANES, outputs += LANES) {
            const wide value = LOAD(outputs) + LOAD(bias + w);
            STORE(outputs, rectified ? CHOOSE(value < zero, zero, value) : value);
        }
}

/* Which of the batch's records have each feature, from the lists of which features each record has. */
INLINE void turn_lists(const Memory *m, const Records *from, const int64_t *drawn, const Plan *z) {
    memset(m->start, 0, sizeof(int32_t) * (z->features + 2));
    int32_t *restrict next = m->start + 1;
    for (long e = 0; e < m->batch; e++)
        for (long n = from->start[drawn[e]], end = from->start[drawn[e] + 1]; n < end; n++) next[from->place[n] + 1]++;
    for (long f = 0; f < z->features; f++) next[f + 1] += next[f];
    for (long e = 0; e < m->batch; e++)
        for (long n = from->start[drawn[e]], end = from->start[drawn[e] + 1]; n < end; n++) {
            const int32_t at = next[from->place[n]]++;
            m->place[at] = (int32_t)e, m->value[at] = from->value[n];
        }
}

INLINE int first_outputs(const Memory *m, const Records *from, const int64_t *drawn, const float *weights,
                         const Plan *z) {
    const Room *first = m->layers;
    if (z->listed) {
        for (long e = 0; e < m->batch; e++) {
            const long start = from->start[drawn[e]], count = from->start[drawn[e] + 1] - start;
            listed_row(weights, from->place + start, from->value + start, count,
                       first->outputs + e * first->width, first->width);
        }
        memset(first->outputs + m->batch * first->width, 0, sizeof(float) * (m->examples - m->batch) * first->width);
        return 0;
    }
    for (long e = 0; e < m->batch; e++)
        memcpy(m->rows + e * z->features, from->rows + drawn[e] * z->features, sizeof(float) * z->features);
    memset(m->rows + m->batch * z->features, 0, sizeof(float) * (m->examples - m->batch) * z->features);
    turn_lines(m->rows, z->features, first->turned_inputs, m->examples, m->examples, z->features);
    return multiply_dense(m->rows, weights, first->outputs, (long[]){m->examples, z->features, first->width});
}

/* Softmax less the class, of the mean's `batch` examples; nothing for those that pad the batch. */
INLINE void last_deltas(const Memory *m, const Records *from, const int64_t *drawn, const Plan *z) {
    const Room *last = m->layers + z->layers - 1;
    turn_lines(last->outputs, last->width, m->classes, m->examples, m->examples, last->width);
    for (long e = 0; e < m->examples; e += TILE) softmax_of_sixteen(m->classes + e, z->classes, m->examples);
    for (long e = 0; e < m->batch; e++) m->classes[from->labels[drawn[e]] * m->examples + e] -= 1.0f;
    for (long c = 0; c < last->width; c++)
        for (long e = c < z->classes ? m->batch : 0; e < m->examples; e++) m->classes[c * m->examples + e] = 0.0f;
    turn_lines(m->classes, m->examples, last->deltas, last->width, last->width, m->examples);
}

/* Deltas of the layer before, zero where its outputs are not positive. */
INLINE int pass_back(const Room *layer, const Room *before, const float *weights, long examples) {
    const wide zero = {0};
    turn_lines(weights, layer->width, layer->turned_weights, layer->inputs, layer->inputs, layer->width);
    if (multiply_dense(layer->deltas, layer->turned_weights, before->deltas,
                       (long[]){examples, layer->width, layer->inputs}))
        return 1;
    for (long i = 0; i < examples * before->width; i += LANES)
        STORE(before->deltas + i, CHOOSE(LOAD(before->outputs + i) <= zero, zero, LOAD(before->deltas + i)));
    return 0;
}

INLINE void update(const Values *at, long place, const float *sums, long count, float rate, const Correction *by,
                   long adam) {
    float *weights = at->weights + place;
    if (adam) {
        adam_values(weights, sums, at->first + place, at->second + place, count, rate, by);
        return;
    }
    for (long i = 0; i < count; i++) weights[i] -= rate * by->mean * sums[i];
}

INLINE void update_bias(const Room *layer, const Values *at, long examples, float rate, const Correction *by, long adam) {
    memset(layer->sums, 0, sizeof(float) * layer->width);
    for (long e = 0; e < examples; e++)
        for (long w = 0; w < layer->width; w++) layer->sums[w] += layer->deltas[e * layer->width + w];
    update(at, layer->at + layer->inputs * layer->width, layer->sums, layer->width, rate, by, adam);
}

/* Ask for a row of weights and moments, which wait in the second or third cache, before they are needed. */
INLINE void fetch_row(const Values *at, long place, long width) {
    for (long w = place; w < place + width; w += 16)
        __builtin_prefetch(at->weights + w, 1), __builtin_prefetch(at->first + w, 1), __builtin_prefetch(at->second + w, 1);
}

/* The first layer of listed records: a feature's sums are used while they are in the first cache. */
INLINE void update_listed(const Memory *m, const Values *at, float rate, const Correction *by, const Plan *z) {
    const Room *first = m->layers;
    for (long f = 0; f < z->features; f++) {
        const long start = m->start[f], count = m->start[f + 1] - start;
        if (z->adam) fetch_row(at, (f + 1) * first->width, first->width);
        listed_row(first->deltas, m->place + start, m->value + start, count, first->sums, first->width);
        update(at, f * first->width, first->sums, first->width, rate, by, z->adam);
    }
}

INLINE int update_layer(const Memory *m, long l, const Values *at, float rate, const Correction *by, const Plan *z) {
    const Room *layer = m->layers + l;
    if (!l && z->listed) {
        update_listed(m, at, rate, by, z);
    } else {
        if (l) turn_lines(m->layers[l - 1].outputs, layer->inputs, layer->turned_inputs, m->examples, m->examples, layer->inputs);
        if (multiply_dense(layer->turned_inputs, layer->deltas, layer->sums,
                           (long[]){layer->inputs, m->examples, layer->width}))
            return 1;
        update(at, layer->at, layer->sums, layer->inputs * layer->width, rate, by, z->adam);
    }
    if (layer->biased) update_bias(layer, at, m->examples, rate, by, z->adam);
    return 0;
}

/* One step of one model. */
INLINE int one_step(const Memory *m, const Records *from, const int64_t *drawn, const Values *at, float rate,
                    const Correction *by, const Plan *z) {
    if (z->listed) turn_lists(m, from, drawn, z);
    int failed = first_outputs(m, from, drawn, at->weights, z);
    for (long l = 0; l < z->layers; l++) {
        const Room *layer = m->layers + l;
        const float *weights = at->weights + layer->at;
        if (l) failed |= multiply_dense(m->layers[l - 1].outputs, weights, layer->outputs, (long[]){m->examples, layer->inputs, layer->width});
        finish_layer(layer->outputs, weights + layer->inputs * layer->width, m->examples, layer->width, l + 1 < z->layers);
    }
    last_deltas(m, from, drawn, z);
    for (long l = z->layers - 1; l > 0; l--)
        failed |= pass_back(m->layers + l, m->layers + l - 1, at->weights + m->layers[l].at, m->examples);
    for (long l = 0; l < z->layers; l++) failed |= update_layer(m, l, at, rate, by, z);
    return failed;
}

/* Divide `next` among the layers; returns how many values a model has. */
INLINE long plan_memory(Memory *m, float *next, long most, const Plan *z) {
    long at = 0;
    const long padded = z->shape[z->layers - 1];
    m->rows = take(&next, z->listed ? 0 : m->examples * z->features), m->classes = take(&next, padded * m->examples);
    m->start = take(&next, z->features + 2);
    m->place = take(&next, most), m->value = take(&next, most);
    for (long l = 0; l < z->layers; l++) {
        Room *one = m->layers + l;
        one->inputs = l ? z->shape[l - 1] : z->features, one->width = z->shape[l], one->biased = z->shape[z->layers + l];
        one->at = at, at += (one->inputs + 1) * one->width;
        const long own = l || !z->listed;
        one->outputs = take(&next, m->examples * one->width), one->deltas = take(&next, m->examples * one->width);
        one->turned_weights = take(&next, l ? one->inputs * one->width : 0);
        one->turned_inputs = take(&next, own ? one->inputs * m->examples : 0);
        one->sums = take(&next, own ? one->inputs * one->width : one->width);
    }
    return at;
}

/* Floats that `plan_memory` divides, at most. */
INLINE long memory_size(long examples, long most, const Plan *z) {
    long size = examples * (z->features + z->shape[z->layers - 1]) + z->features + 2 + 2 * most + 64 + 16 * 16;
    for (long l = 0; l < z->layers; l++) {
        const long inputs = l ? z->shape[l - 1] : z->features, width = z->shape[l];
        size += 2 * examples * width + 2 * inputs * width + inputs * examples + width + 16 * 8;
    }
    return size;
}

/* The next step's batch: as large as the others, or what is left of the epoch. */
INLINE void size_batch(Memory *m, long batch) { m->batch = batch, m->examples = (batch + TILE - 1) / TILE * TILE; }

/* order (models, line): places of records, a batch after the other; all values (models, size). `most`: values that are
   not zero in a batch, at most. `step`, from 1, is the first one's number. */
EXPORT FOR_THIS_CPU int train_epochs(const Records *records, const int64_t *order, const Values *all, float rate,
                                     const Plan *z, long most, long step) {
    Memory m;
    size_batch(&m, z->batch);
    const long size = memory_size(m.examples, most, z);
    float *memory = calloc(size, sizeof(float));
    m.layers = malloc(sizeof(Room) * z->layers);
    int failed = !memory || !m.layers;
    const long values = failed ? 0 : plan_memory(&m, memory, most, z);
    for (long model = 0; model < z->models && !failed; model++) {
        const Values at = {all->weights + model * values, all->first + model * values, all->second + model * values};
        for (long s = 0; s < z->steps && !failed; s++) {
            const long done = s * z->batch, left = z->line - done;
            size_batch(&m, left < z->batch ? left : z->batch);
            const Correction by = {1.0f / m.batch, (float)(1 - pow(0.9, step + s)), (float)(1 - pow(0.999, step + s))};
            failed = one_step(&m, records, order + model * z->line + done, &at, rate, &by, z);
        }
    }
    free(memory), free(m.layers);
    return failed;
}
