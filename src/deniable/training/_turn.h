/* Matrices turned: eight rows and columns at a time. */

#pragma once

#include "_vectors.h"

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SHUFFLED 1
#endif
#endif

/* Eight rows and columns of `from` to eight of `to`. */
INLINE void turn_eight(const float *from, long from_line, float *to, long to_line) {
#ifdef SHUFFLED
    wide a[8], b[8];
    for (int i = 0; i < 8; i++) a[i] = LOAD(from + i * from_line);
    for (int i = 0; i < 8; i += 2) {
        b[i] = __builtin_shufflevector(a[i], a[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4)
        for (int k = 0; k < 2; k++) {
            a[i + 2 * k] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 0, 1, 8, 9, 4, 5, 12, 13);
            a[i + 2 * k + 1] = __builtin_shufflevector(b[i + k], b[i + 2 + k], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < 4; i++) {
        STORE(to + i * to_line, __builtin_shufflevector(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11));
        STORE(to + (i + 4) * to_line, __builtin_shufflevector(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15));
    }
#else
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) to[k * to_line + i] = from[i * from_line + k];
#endif
}

/* from (rows, columns) to (columns, rows). */
INLINE void turn_lines(const float *from, long from_line, float *to, long to_line, long rows, long columns) {
    for (long i = 0; i < rows; i += 8)
        for (long k = 0; k < columns; k += 8) {
            if (i + 8 <= rows && k + 8 <= columns) {
                turn_eight(from + i * from_line + k, from_line, to + k * to_line + i, to_line);
                continue;
            }
            for (long r = i; r < rows && r < i + 8; r++)
                for (long c = k; c < columns && c < k + 8; c++) to[c * to_line + r] = from[r * from_line + c];
        }
}
