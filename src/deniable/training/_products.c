/* A dense product of small matrices, for kernels that cannot call a library's. */

#include "_dense.h"
#include "_turn.h"

enum { FEW_ROWS = 64, MOST_ROWS = 8, MOST_LANES = 32 };

/* `rows` rows of PARTS vectors of out, `out_line` apart; left (rows, inner), right's rows are `line` apart. As many sums
   as registers hold beside what they are made of: 12 of 16, 16 of 32. */
#define SOME_ROWS(NAME, VECTOR, UNALIGNED, PARTS)                                                                     \
    INLINE void NAME(const float *left, const float *right, float *out, long inner, long line, long out_line,         \
                     const int rows) {                                                                                \
        VECTOR sums[MOST_ROWS][PARTS];                                                                                    \
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

SOME_ROWS(eights, wide, unaligned, 2)
SOME_ROWS(sixteens, wider, wider_unaligned, 1)
SOME_ROWS(pairs_of_sixteens, wider, wider_unaligned, 2)

/* LANES columns, ROWS rows at a time: of `right` itself, or of a panel of them if rows are many enough to pay for the
   copy. */
#define SOME_COLUMNS(NAME, SOME_ROWS, ROWS, LANES, FOR_CPU)                                                           \
    FOR_CPU static void NAME(const float *left, const float *right, float *out, float *tile, const long *sizes,       \
                             long line, long some) {                                                                  \
        const long rows = sizes[0], inner = sizes[1], columns = sizes[2];                                             \
        for (long i = 0; i < rows; i += (ROWS), left += (ROWS) * inner, out += (ROWS) * columns) {                    \
            const long now = rows - i < (ROWS) ? rows - i : (ROWS), direct = now == (ROWS) && some == (LANES);        \
            float *to = direct ? out : tile;                                                                          \
            const long to_line = direct ? columns : (LANES);                                                          \
            if (now == (ROWS)) SOME_ROWS(left, right, to, inner, line, to_line, ROWS);                                \
            if ((ROWS) > 7 && now == 7) SOME_ROWS(left, right, to, inner, line, to_line, 7);                          \
            if ((ROWS) > 6 && now == 6) SOME_ROWS(left, right, to, inner, line, to_line, 6);                          \
            if (now == 5) SOME_ROWS(left, right, to, inner, line, to_line, 5);                                        \
            if (now == 4) SOME_ROWS(left, right, to, inner, line, to_line, 4);                                        \
            if (now == 3) SOME_ROWS(left, right, to, inner, line, to_line, 3);                                        \
            if (now == 2) SOME_ROWS(left, right, to, inner, line, to_line, 2);                                        \
            if (now == 1) SOME_ROWS(left, right, to, inner, line, to_line, 1);                                        \
            for (long r = 0; r < now && !direct; r++)                                                                 \
                memcpy(out + r * columns, tile + r * (LANES), sizeof(float) * some);                                  \
        }                                                                                                             \
    }

SOME_COLUMNS(sixteen_columns, eights, 6, 16, FOR_THIS_CPU)
SOME_COLUMNS(sixteen_columns_at_once, sixteens, 8, 16, FOR_AVX512)
SOME_COLUMNS(thirty_two_columns, pairs_of_sixteens, 8, 32, FOR_AVX512)

/* out (rows, columns) = left (rows, inner) times right (inner, columns). */
EXPORT int multiply_dense(const float *left, const float *right, float *out, const long *sizes) {
    const long rows = sizes[0], inner = sizes[1], columns = sizes[2];
    float *panel = malloc(sizeof(float) * MOST_LANES * (inner + MOST_ROWS)), *tile = panel + MOST_LANES * inner;
    if (!panel) return 1;
    for (long j = 0, lanes; j < columns; j += lanes) {
        lanes = HAS_AVX512 && columns - j > 16 ? 32 : 16;
        const long some = columns - j < lanes ? columns - j : lanes, copied = some < lanes || rows > FEW_ROWS;
        if (some < lanes) memset(panel, 0, sizeof(float) * lanes * inner);
        for (long k = 0; k < inner && copied; k++)
            memcpy(panel + k * lanes, right + k * columns + j, sizeof(float) * some);
        (lanes == 32 ? thirty_two_columns : HAS_AVX512 ? sixteen_columns_at_once : sixteen_columns)(
            left, copied ? panel : right + j, out + j, tile, sizes, copied ? lanes : columns, some);
    }
    free(panel);
    return 0;
}

/* Whether `multiply_each` is faster than torch's library, whose vectors are half as wide on processors of AMD. */
EXPORT int faster_products(void) {
#ifdef CLONED
    return HAS_AVX512 && __builtin_cpu_is("amd");
#else
    return 0;
#endif
}

typedef struct {
    long trials, rows, inner, columns, left_turned, right_turned; /* turned: (inner, rows), (columns, inner) in memory */
} Products;

/* For each trial out (rows, columns) = left times right. */
EXPORT FOR_THIS_CPU int multiply_each(const float *left, const float *right, float *out, const Products *z) {
    const long left_size = z->rows * z->inner, right_size = z->inner * z->columns;
    float *turned_left = malloc(sizeof(float) * (left_size + right_size)), *turned_right = turned_left + left_size;
    int failed = !turned_left;
    for (long t = 0; t < z->trials && !failed; t++, left += left_size, right += right_size, out += z->rows * z->columns) {
        if (z->left_turned) turn_lines(left, z->rows, turned_left, z->inner, z->inner, z->rows);
        if (z->right_turned) turn_lines(right, z->inner, turned_right, z->columns, z->columns, z->inner);
        failed = multiply_dense(z->left_turned ? turned_left : left, z->right_turned ? turned_right : right, out,
                                (long[]){z->rows, z->inner, z->columns});
    }
    free(turned_left);
    return failed;
}
