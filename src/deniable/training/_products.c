/* A dense product of small matrices, for kernels that cannot call a library's. */

#include "_dense.h"

enum { LANES = 16, ROWS = 6 };

/* `rows` rows of out (rows, 16), `out_line` apart; left (rows, inner), panel (inner, 16). */
INLINE void some_rows(const float *left, const float *panel, float *out, long inner, long out_line, const int rows) {
    wide low[ROWS], high[ROWS];
    for (int r = 0; r < rows; r++) low[r] = high[r] = (wide){0};
    for (long k = 0; k < inner; k++, panel += LANES) {
        const wide first = LOAD(panel), second = LOAD(panel + 8);
        for (int r = 0; r < rows; r++) low[r] += left[r * inner + k] * first, high[r] += left[r * inner + k] * second;
    }
    for (int r = 0; r < rows; r++) STORE(out + r * out_line, low[r]), STORE(out + r * out_line + 8, high[r]);
}

/* out (rows, columns) = left (rows, inner) times right (inner, columns). */
EXPORT FOR_THIS_CPU int multiply_dense(const float *left, const float *right, float *out, const long *sizes) {
    const long rows = sizes[0], inner = sizes[1], columns = sizes[2];
    float *panel = malloc(sizeof(float) * LANES * (inner + ROWS)), *tile = panel + LANES * inner;
    if (!panel) return 1;
    for (long j = 0; j < columns; j += LANES) {
        const long some = columns - j < LANES ? columns - j : LANES;
        if (some < LANES) memset(panel, 0, sizeof(float) * LANES * inner);
        for (long k = 0; k < inner; k++) memcpy(panel + k * LANES, right + k * columns + j, sizeof(float) * some);
        for (long i = 0; i < rows; i += ROWS) {
            const long now = rows - i < ROWS ? rows - i : ROWS, direct = now == ROWS && some == LANES;
            float *to = direct ? out + i * columns + j : tile;
            const long line = direct ? columns : LANES;
            const float *from = left + i * inner;
            if (now == 6) some_rows(from, panel, to, inner, line, 6);
            if (now == 5) some_rows(from, panel, to, inner, line, 5);
            if (now == 4) some_rows(from, panel, to, inner, line, 4);
            if (now == 3) some_rows(from, panel, to, inner, line, 3);
            if (now == 2) some_rows(from, panel, to, inner, line, 2);
            if (now == 1) some_rows(from, panel, to, inner, line, 1);
            for (long r = 0; r < now && !direct; r++)
                memcpy(out + (i + r) * columns + j, tile + r * LANES, sizeof(float) * some);
        }
    }
    free(panel);
    return 0;
}
