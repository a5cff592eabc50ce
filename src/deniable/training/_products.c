/* A dense product of small matrices, for kernels that cannot call a library's. */

#include "_dense.h"

enum { LANES = 16, ROWS = 6, FEW_ROWS = 64 };

/* `rows` rows of out (rows, 16), `out_line` apart; left (rows, inner), right (inner, 16), `line` apart. */
#define SOME_ROWS(NAME, VECTOR, UNALIGNED, PARTS)                                                                     \
    INLINE void NAME(const float *left, const float *right, float *out, long inner, long line, long out_line,         \
                     const int rows) {                                                                                \
        VECTOR sums[ROWS][PARTS];                                                                                     \
        for (int r = 0; r < rows; r++)                                                                                \
            for (int p = 0; p < (PARTS); p++) sums[r][p] = (VECTOR){0};                                               \
        for (long k = 0; k < inner; k++, right += line) {                                                             \
            VECTOR part[PARTS];                                                                                       \
            for (int p = 0; p < (PARTS); p++) part[p] = ((const UNALIGNED *)right)[p];                                \
            for (int r = 0; r < rows; r++)                                                                            \
                for (int p = 0; p < (PARTS); p++) sums[r][p] += left[r * inner + k] * part[p];                        \
        }                                                                                                             \
        for (int r = 0; r < rows; r++)                                                                                \
            for (int p = 0; p < (PARTS); p++) ((UNALIGNED *)(out + r * out_line))[p] = sums[r][p];                    \
    }

SOME_ROWS(eight_by_eight, wide, unaligned, 2)
SOME_ROWS(sixteen_at_once, wider, wider_unaligned, 1)

/* Sixteen columns: of `right` itself, or of a panel of them if rows are many enough to pay for the copy. */
#define SOME_COLUMNS(NAME, SOME_ROWS, FOR_CPU)                                                                        \
    FOR_CPU static void NAME(const float *left, const float *right, float *out, float *tile, const long *sizes,       \
                             long line, long some) {                                                                  \
        const long rows = sizes[0], inner = sizes[1], columns = sizes[2];                                             \
        for (long i = 0; i < rows; i += ROWS, left += ROWS * inner, out += ROWS * columns) {                          \
            const long now = rows - i < ROWS ? rows - i : ROWS, direct = now == ROWS && some == LANES;                \
            float *to = direct ? out : tile;                                                                          \
            const long to_line = direct ? columns : LANES;                                                            \
            if (now == 6) SOME_ROWS(left, right, to, inner, line, to_line, 6);                                        \
            if (now == 5) SOME_ROWS(left, right, to, inner, line, to_line, 5);                                        \
            if (now == 4) SOME_ROWS(left, right, to, inner, line, to_line, 4);                                        \
            if (now == 3) SOME_ROWS(left, right, to, inner, line, to_line, 3);                                        \
            if (now == 2) SOME_ROWS(left, right, to, inner, line, to_line, 2);                                        \
            if (now == 1) SOME_ROWS(left, right, to, inner, line, to_line, 1);                                        \
            for (long r = 0; r < now && !direct; r++)                                                                 \
                memcpy(out + r * columns, tile + r * LANES, sizeof(float) * some);                                    \
        }                                                                                                             \
    }

SOME_COLUMNS(some_columns, eight_by_eight, FOR_THIS_CPU)
SOME_COLUMNS(some_columns_of_sixteen, sixteen_at_once, FOR_AVX512)

/* out (rows, columns) = left (rows, inner) times right (inner, columns). */
EXPORT int multiply_dense(const float *left, const float *right, float *out, const long *sizes) {
    const long rows = sizes[0], inner = sizes[1], columns = sizes[2];
    float *panel = malloc(sizeof(float) * LANES * (inner + ROWS)), *tile = panel + LANES * inner;
    if (!panel) return 1;
    for (long j = 0; j < columns; j += LANES) {
        const long some = columns - j < LANES ? columns - j : LANES, copied = some < LANES || rows > FEW_ROWS;
        if (some < LANES) memset(panel, 0, sizeof(float) * LANES * inner);
        for (long k = 0; k < inner && copied; k++)
            memcpy(panel + k * LANES, right + k * columns + j, sizeof(float) * some);
        (HAS_AVX512 ? some_columns_of_sixteen : some_columns)(left, copied ? panel : right + j, out + j, tile, sizes,
                                                              copied ? LANES : columns, some);
    }
    free(panel);
    return 0;
}
