/* Products with matrices of which most values are zero, such as records of one-hot columns; see networks/listed.py.

   A sparse matrix is a list for every column: which rows are not zero, and their values. Vectors are over the rows of
   the dense matrix, which is turned for that, sixty-four at a time: no lane is wasted, and nothing is multiplied by
   zero. */

#include "_dense.h"
#include "_turn.h"

enum { COLUMNS = 16 };

typedef struct {
    const int32_t *start, *row; /* of column j: from start[j] to start[j + 1] */
    const float *value;
} Lists;

/* `rows` (at most 8 x blocks) rows of out; panel (inner + 1, 8 x blocks), tile (16, 8 x blocks). */
INLINE void some_lanes(const float *left, const Lists *lists, float *out, float *panel, float *tile, long rows,
                       long inner, long columns, const int blocks) {
    const long lanes = 8 * blocks;
    if (rows < lanes) memset(panel, 0, sizeof(float) * inner * lanes);
    turn_lines(left, inner, panel, lanes, rows, inner);
    wide nothing[8]; /* 0, or NaN where a product with all zeros would be: it is never hidden */
    for (int b = 0; b < blocks; b++) nothing[b] = (wide){0};
    for (long i = 0; i < inner; i++)
        for (int b = 0; b < blocks; b++) nothing[b] += 0.0f * LOAD(panel + i * lanes + 8 * b);
    for (long j = 0; j < columns; j += COLUMNS) {
        const long some = columns - j < COLUMNS ? columns - j : COLUMNS;
        for (long c = 0; c < some; c++) {
            wide sums[8];
            for (int b = 0; b < blocks; b++) sums[b] = nothing[b];
            for (long n = lists->start[j + c]; n < lists->start[j + c + 1]; n++) {
                const float *from = panel + lists->row[n] * lanes, value = lists->value[n];
                for (int b = 0; b < blocks; b++) sums[b] += value * LOAD(from + 8 * b);
            }
            for (int b = 0; b < blocks; b++) STORE(tile + c * lanes + 8 * b, sums[b]);
        }
        turn_lines(tile, lanes, out + j, columns, some, rows);
    }
}

/* out (rows, columns) = left (rows, inner) times the sparse matrix (inner, columns). */
EXPORT FOR_THIS_CPU int multiply_listed(const float *left, const int32_t *start, const int32_t *row, const float *value,
                                        float *out, const long *sizes) {
    const long rows = sizes[0], inner = sizes[1], columns = sizes[2];
    const Lists lists = {start, row, value};
    float *panel = malloc(sizeof(float) * 64 * (inner + COLUMNS)), *tile = panel + 64 * inner;
    if (!panel) return 1;
    long r = 0;
    for (; r + 64 <= rows; r += 64) some_lanes(left + r * inner, &lists, out + r * columns, panel, tile, 64, inner, columns, 8);
    for (; r < rows; r += 16)
        some_lanes(left + r * inner, &lists, out + r * columns, panel, tile, rows - r < 16 ? rows - r : 16, inner, columns,
                   2);
    free(panel);
    return 0;
}

/* Lists of what is not zero in matrix (rows, columns), by columns and, `row` now a column, by rows; they have room for
   `most` + columns values. `count` is how many there are; more than `most` are not listed. */
EXPORT int list_values(const float *matrix, int32_t *start, int32_t *row, float *value, int32_t *row_start,
                       int32_t *column, float *row_value, int64_t *count, long most, const long *sizes) {
    const long rows = sizes[0], columns = sizes[1];
    long found = 0;
    memset(start, 0, sizeof(int32_t) * (columns + 1));
    for (long i = 0; i < rows && found <= most; i++, matrix += columns) {
        row_start[i] = (int32_t)found;
        for (long j = 0; j < columns; j++) {
            column[found] = (int32_t)j, row_value[found] = matrix[j];
            found += matrix[j] != 0.0f; /* NaN, too */
        }
    }
    row_start[rows] = (int32_t)found, *count = found;
    if (found > most) return 0;
    for (long n = 0; n < found; n++) start[column[n] + 1]++;
    for (long j = 0; j < columns; j++) start[j + 1] += start[j];
    for (long i = 0; i < rows; i++)
        for (long n = row_start[i]; n < row_start[i + 1]; n++) {
            const int32_t next = start[column[n]]++;
            row[next] = (int32_t)i, value[next] = row_value[n];
        }
    memmove(start + 1, start, sizeof(int32_t) * columns);
    start[0] = 0;
    return 0;
}
