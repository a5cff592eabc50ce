/* Standard normal draws from a Mersenne twister in torch's state, the same as torch's to float accuracy, several times
   as fast: torch steps the twister one number at a time. The polynomials are minimax fits to the named functions. */

#include "_dense.h"

enum { WORDS = 624, MIDDLE = 397, LEFT = 1, NEXT = 2, KEY = 3, PASS = 8 * WORDS };

typedef struct {
    uint32_t words[WORDS];
    long next; /* the first word that was not drawn */
} Twister;

INLINE uint32_t twisted(uint32_t here, uint32_t after) {
    return (((here & 0x80000000u) | (after & 0x7FFFFFFFu)) >> 1) ^ (-(after & 1u) & 0x9908B0DFu);
}

INLINE void twist(uint32_t *words) {
    for (long i = 0; i < WORDS - MIDDLE; i++) words[i] = words[i + MIDDLE] ^ twisted(words[i], words[i + 1]);
    for (long i = WORDS - MIDDLE; i < WORDS - 1; i++)
        words[i] = words[i + MIDDLE - WORDS] ^ twisted(words[i], words[i + 1]);
    words[WORDS - 1] = words[MIDDLE - 1] ^ twisted(words[WORDS - 1], words[0]);
}

/* Multiples of 2^-24 in [0, 1). */
INLINE void draw_uniform(Twister *from, float *out, long count) {
    while (count > 0) {
        if (from->next == WORDS) twist(from->words), from->next = 0;
        const long some = count < WORDS - from->next ? count : WORDS - from->next;
        const uint32_t *words = from->words + from->next;
        for (long i = 0; i < some; i++) {
            uint32_t word = words[i];
            word ^= word >> 11;
            word ^= (word << 7) & 0x9D2C5680u;
            word ^= (word << 15) & 0xEFC60000u;
            word ^= word >> 18;
            out[i] = (float)(int32_t)(word & 0xFFFFFFu) * 0x1p-24f;
        }
        from->next += some, out += some, count -= some;
    }
}

/* ln(x) for 0 < x <= 1: 1 + f = x / 2^exponent lies between sqrt(1/2) and sqrt(2). */
INLINE wide logarithm(wide x) {
    const places exponent = ((places)x - 0x3F3504F3) >> 23;
    const wide f = (wide)((places)x - (exponent << 23)) - 1.0f;
    wide p = -0.0763449302f * f + 0.127615756f;
    p = p * f - 0.131601831f;
    p = p * f + 0.142017582f;
    p = p * f - 0.166233573f;
    p = p * f + 0.200012269f;
    p = p * f - 0.25000821f;
    p = p * f + 0.333333317f;
    p = p * (f * f * f) - 0.5f * (f * f) + f;
    return p + 0.693147181f * __builtin_convertvector(exponent, wide);
}

/* Sixteen uniform draws, eight pairs, to normal ones: Box and Muller's radius and angle. */
INLINE void normal_of_sixteen(float *draws) {
    wide radius = -2.0f * logarithm(1.0f - LOAD(draws));
    for (int lane = 0; lane < 8; lane++) radius[lane] = __builtin_sqrtf(radius[lane]);
    const wide turns = LOAD(draws + 8), shift = 12582912.0f - (wide){0}; /* adding 1.5 * 2^23 rounds */
    const wide shifted = turns * 4.0f + shift, r = turns - (shifted - shift) * 0.25f, z = r * r;
    const wide sine = r * (((-75.4020679f * z + 81.5925535f) * z - 41.3416626f) * z + 6.28318529f);
    const wide cosine = (((59.2204067f * z - 85.4428521f) * z + 64.9393162f) * z - 19.7392087f) * z + 1.0f;
    const places quarter = (places)shifted, odd = -(quarter & 1);
    const places negative = (quarter & 2) << 30, turned = ((quarter + 1) & 2) << 30;
    STORE(draws, radius * (wide)((places)CHOOSE(odd, sine, cosine) ^ turned));
    STORE(draws + 8, radius * (wide)((places)CHOOSE(odd, cosine, sine) ^ negative));
}

/* From and to torch's state, in 64-bit words. */
INLINE void read_state(Twister *to, const uint64_t *state) {
    for (long i = 0; i < WORDS; i++) to->words[i] = (uint32_t)state[KEY + i];
    to->next = WORDS + 1 - (long)(uint32_t)state[LEFT];
}

INLINE void write_state(const Twister *from, uint64_t *state) {
    for (long i = 0; i < WORDS; i++) state[KEY + i] = from->words[i];
    state[LEFT] = (state[LEFT] & ~(uint64_t)0xFFFFFFFFu) | (uint64_t)(WORDS + 1 - from->next);
    state[NEXT] = (uint64_t)from->next;
}

/* out (count), count at least 16; like torch, draws `count` numbers in sixteens, and the last sixteen anew if they are
   not a full one. */
EXPORT FOR_THIS_CPU int normal(float *out, long count, uint64_t *state) {
    Twister from;
    read_state(&from, state);
    for (long start = 0; start < count; start += PASS) {
        const long some = count - start < PASS ? count - start : PASS;
        draw_uniform(&from, out + start, some);
        for (long i = 0; i + 16 <= some; i += 16) normal_of_sixteen(out + start + i);
    }
    if (count % 16) draw_uniform(&from, out + count - 16, 16), normal_of_sixteen(out + count - 16);
    write_state(&from, state);
    return 0;
}

/* Which of `count` uniform draws are below the rate, to drawn; `found` of them. */
EXPORT FOR_THIS_CPU int draw_below(int64_t *drawn, int64_t *found, long count, float rate, uint64_t *state) {
    Twister from;
    float draws[WORDS];
    read_state(&from, state);
    int64_t next = 0;
    for (long start = 0; start < count; start += WORDS) {
        const long some = count - start < WORDS ? count - start : WORDS;
        draw_uniform(&from, draws, some);
        for (long i = 0; i < some; i++) drawn[next] = start + i, next += draws[i] < rate;
    }
    *found = next;
    write_state(&from, state);
    return 0;
}
