/* One step of many private trainings of a small dense network, on one batch for all of them: draw it, sum clipped
   gradients, add noise, update; see together.py. From torch the same calls take as long as their work. */

#include <math.h>

#include "_dense.h"
#include "_turn.h"

enum { TILE = 16, WAVE_VALUES = 1 << 17 }; /* of the first layer's outputs: half of a second cache */

typedef struct {
    long trials, records, features, most; /* most: values of 256 that are not zero in inputs that are listed */
    long adam, layers;
    long shape[]; /* widths of all layers, then whether each has a bias */
} Plan;

typedef struct {
    float rate, mean; /* of a record to be drawn; 1 / the expected number of records */
} Numbers;

/* Each (tensor, trials, ...), tensors in the order of the network's parameters; without Adam there are no moments. */
typedef struct {
    float *weights, *sums, *noise, *first, *second;
} Values;

typedef struct {
    int32_t *start, *place;
    float *value;
} List;

typedef struct {
    long examples; /* a multiple of sixteen; those behind the drawn ones are zero and have no weight */
    float *rows, *columns, *squares, *include;
    int64_t *labels;
    int listed;
    List by_example, by_feature;
} Batch;

INLINE List take_list(float **memory, long ends, long most) {
    return (List){take(memory, ends + 1), take(memory, most), take(memory, most)};
}

INLINE long smaller(long a, long b) { return a < b ? a : b; }

/* The batch's records, their turned matrix and squares, and the lists of what is not zero. */
INLINE void gather(Batch *to, const float *records, const int64_t *labels, const int64_t *drawn, long found, long most,
                   const Plan *z) {
    const long features = z->features;
    memset(to->rows + found * features, 0, sizeof(float) * (to->examples - found) * features);
    memset(to->labels, 0, sizeof(int64_t) * to->examples);
    for (long e = 0; e < found; e++) {
        memcpy(to->rows + e * features, records + drawn[e] * features, sizeof(float) * features);
        to->labels[e] = labels[drawn[e]];
    }
    turn_lines(to->rows, features, to->columns, to->examples, to->examples, features);
    column_squares(to->columns, to->squares, &(Columns){1, features, to->examples});
    for (long e = 0; e < to->examples && z->shape[z->layers]; e++) to->squares[e] += 1.0f;
    int64_t count = 0;
    const List *one = &to->by_example, *other = &to->by_feature;
    list_values(to->columns, one->start, one->place, one->value, other->start, other->place, other->value, &count, most,
                (long[]){features, to->examples});
    to->listed = count <= most;
}

/* left (rows, inner) times the batch's matrix, turned or as it is. */
INLINE int multiply(const float *left, const Batch *batch, const int turned, float *out, long rows, long features) {
    const List *list = turned ? &batch->by_example : &batch->by_feature;
    const long sizes[] = {rows, turned ? features : batch->examples, turned ? batch->examples : features};
    if (batch->listed) return multiply_listed(left, list->start, list->place, list->value, out, sizes);
    return multiply_dense(left, turned ? batch->columns : batch->rows, out, sizes);
}

/* Where the tensors of each layer begin for the trials from `trial` on. */
INLINE void find_layers(Layer *layers, const Values *at, long trial, const Plan *z) {
    float *weights = at->weights, *sums = at->sums;
    for (long l = 0; l < z->layers; l++) {
        const long width = z->shape[l], size = width * (l ? z->shape[l - 1] : z->features), biased = z->shape[z->layers + l];
        layers[l] = (Layer){weights + trial * size, NULL, sums + trial * size, NULL};
        weights += z->trials * size, sums += z->trials * size;
        if (!biased) continue;
        layers[l].bias = weights + trial * width, layers[l].bias_sums = sums + trial * width;
        weights += z->trials * width, sums += z->trials * width;
    }
}

/* Sums of the clipped gradients of all trials, some trials at a time; `outputs` (wave, width, examples). */
INLINE int sum_gradients(const Values *at, const Batch *batch, const float *clips, float *outputs, float *norms,
                         Layer *layers, Network *network, long wave, const Plan *z) {
    for (long trial = 0; trial < z->trials; trial += wave) {
        const long some = smaller(wave, z->trials - trial), rows = some * z->shape[0];
        find_layers(layers, at, trial, z);
        network->trials = some;
        if (multiply(layers[0].weights, batch, 1, outputs, rows, z->features) ||
            narrow_pass(outputs, layers, batch->labels, batch->squares, batch->include, clips + trial, norms,
                        norms + wave * batch->examples, network) ||
            multiply(outputs, batch, 0, layers[0].weight_sums, rows, z->features))
            return 1;
    }
    return 0;
}

/* One tensor (trials, size): noise of each trial's sigma is added to the sums, then Adam's or plain gradient's step. */
INLINE void move(const Values *at, const float *sigmas, const float *rates, long size, const Correction *by,
                 uint64_t *noise_state, const Plan *z) {
    normal(at->noise, z->trials * size, noise_state);
    for (long t = 0; t < z->trials; t++)
        for (long i = t * size; i < (t + 1) * size; i++) at->sums[i] += sigmas[t] * at->noise[i];
    if (z->adam) {
        adam(at->weights, at->sums, at->first, at->second, rates, (long[]){z->trials, size}, by);
        return;
    }
    for (long t = 0; t < z->trials; t++) {
        const float share = rates[t] * by->mean;
        for (long i = t * size; i < (t + 1) * size; i++) at->weights[i] -= share * at->sums[i];
    }
}

INLINE void move_all(Values at, const float *sigmas, const float *rates, const Correction *by, uint64_t *noise_state,
                     const Plan *z) {
    for (long part = 0; part < 2 * z->layers; part++) {
        const long l = part / 2, width = z->shape[l], is_bias = part % 2;
        if (is_bias && !z->shape[z->layers + l]) continue;
        const long size = is_bias ? width : width * (l ? z->shape[l - 1] : z->features), all = size * z->trials;
        move(&at, sigmas, rates, size, by, noise_state, z);
        at.weights += all, at.sums += all, at.noise += all;
        if (z->adam) at.first += all, at.second += all;
    }
}

/* records (records, features), labels; clips, sigmas, rates (trials). Every tensor has at least 16 values. States are
   those of torch's generators. `step` counts from 1. */
EXPORT FOR_THIS_CPU int step_together(const float *records, const int64_t *labels, uint64_t *batch_state,
                                      uint64_t *noise_state, const Values *at, const float *clips, const float *sigmas,
                                      const float *rates, const Numbers *numbers, const Plan *z, long step) {
    int64_t *drawn = malloc(sizeof(int64_t) * (z->records + 1)), found = 0;
    if (!drawn) return 1;
    draw_below(drawn, &found, z->records, numbers->rate, batch_state);
    const long examples = found ? (found + TILE - 1) / TILE * TILE : TILE, values = examples * z->features;
    const long most = values * z->most / 256, room = most + examples + 1, first = z->shape[0];
    const long wave = smaller(z->trials, first * examples < WAVE_VALUES ? WAVE_VALUES / (first * examples) : 1);
    const long size = 2 * values + 3 * examples + 5 * room + z->features + wave * examples * (first + 3) + 16 * 14;
    float *memory = malloc(sizeof(float) * size), *next = memory;
    Layer *layers = malloc(sizeof(Layer) * z->layers);
    Network *network = malloc(sizeof(Network) + sizeof(long) * z->layers);
    int failed = !memory || !layers || !network;
    if (!failed) {
        *network = (Network){0, z->layers, examples, 0, 0};
        memcpy(network->widths, z->shape, sizeof(long) * z->layers);
        Batch batch = {examples, take(&next, values), take(&next, values), take(&next, examples)};
        batch.include = take(&next, wave * examples), batch.labels = take(&next, 2 * examples);
        batch.by_example = take_list(&next, examples, room), batch.by_feature = take_list(&next, z->features, room);
        float *norms = take(&next, 2 * wave * examples), *outputs = take(&next, wave * first * examples);
        for (long i = 0; i < wave * examples; i++) batch.include[i] = i % examples < found ? 1.0f : 0.0f;
        gather(&batch, records, labels, drawn, found, most, z);
        failed = sum_gradients(at, &batch, clips, outputs, norms, layers, network, wave, z);
    }
    if (!failed) {
        const Correction by = {numbers->mean, (float)(1 - pow(0.9, step)), (float)(1 - pow(0.999, step))};
        move_all(*at, sigmas, rates, &by, noise_state, z);
    }
    free(drawn), free(memory), free(layers), free(network);
    return failed;
}
