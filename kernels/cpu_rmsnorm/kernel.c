/* Fused RMSNorm and SiLU gate, row by row, fp32:
 *
 *     y = x * rsqrt(mean(x^2) + eps) * weight * silu(gate),   silu(g) = g / (1 + e^-g)
 *
 * x, gate and y are rows x dim, row after row without gaps; weight has dim values. Only y may be written.
 * The config's knobs arrive as -D macros; the defaults below are what a compile by hand gets.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXP_EXPF 1
#define EXP_EXP2F 2
#define EXP_POLY 3
#define EXP_RATIONAL 4

#ifndef TILE /* columns whose SiLU is kept in a small buffer before it meets x and weight */
#define TILE 64
#endif
#ifndef UNROLL /* loop bodies written out side by side, and independent partial sums of x^2 */
#define UNROLL 1
#endif
#ifndef THREADS
#define THREADS 1
#endif
#ifndef ROWS_PER_CHUNK /* rows that a thread takes at a time */
#define ROWS_PER_CHUNK 1
#endif
#ifndef EXP_FORM
#define EXP_FORM EXP_EXPF
#endif

#define PRAGMA(text) _Pragma(#text)
#ifdef __clang__
#define UNROLLED(count) PRAGMA(clang loop unroll_count(count))
#else
#define UNROLLED(count) PRAGMA(GCC unroll count)
#endif

#define LOG2_E 1.44269504f
/* e^80 is finite in fp32: with it in the denominator a very negative gate gives 0, never inf * 0. */
#define LARGEST_EXPONENT 80.0f

static inline float below(float value, float limit) { return value < limit ? value : limit; }
static inline float above(float value, float limit) { return value > limit ? value : limit; }

#if EXP_FORM == EXP_POLY
/* 2^t for |t| <= 126: whole part into the exponent bits, the rest (|f| <= 0.5) by a polynomial of degree 5.
 * Minimax in relative error by iteratively reweighted least squares on 4001 Chebyshev points: 7.5e-8. */
static inline float exp2_poly(float t) {
    const int whole = (int)(t + 127.5f) - 127;
    const float f = t - (float)whole;
    float p = 0.00132764725f;
    p = p * f + 0.00967554189f;
    p = p * f + 0.0555071309f;
    p = p * f + 0.240221202f;
    p = p * f + 0.693146944f;
    p = p * f + 1.00000012f;
    const uint32_t bits = (uint32_t)(whole + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}
#endif

static inline float silu(float g) {
#if EXP_FORM == EXP_RATIONAL
    /* silu(g) = g * (0.5 + g * P(g^2) / Q(g^2)), degree 2 over 2, for |g| <= 8; beyond that g or 0.
     * Least squares on g in (0, 8], reweighted towards the largest SiLU error: 2.2e-5. Too much for fp32. */
    const float c = above(below(g, 8.0f), -8.0f);
    const float t = c * c;
    const float p = 0.249956613f + t * (0.00649145684f + t * 1.13642977e-05f);
    const float q = 1.0f + t * (0.109201569f + t * 0.000832522319f);
    const float inside = c * (0.5f + c * p / q);
    return g > 8.0f ? g : (g < -8.0f ? 0.0f : inside);
#else
    const float exponent = above(below(-g, LARGEST_EXPONENT), -LARGEST_EXPONENT);
#if EXP_FORM == EXP_EXPF
    return g / (1.0f + expf(exponent));
#elif EXP_FORM == EXP_EXP2F
    return g / (1.0f + exp2f(exponent * LOG2_E));
#else
    return g / (1.0f + exp2_poly(exponent * LOG2_E));
#endif
#endif
}

static inline float sum_of_squares(const float *row, long dim) {
    float partial[UNROLL] = {0.0f};
    long c = 0;
    for (; c + UNROLL <= dim; c += UNROLL) {
        UNROLLED(UNROLL)
        for (int u = 0; u < UNROLL; u++) partial[u] += row[c + u] * row[c + u];
    }
    for (; c < dim; c++) partial[0] += row[c] * row[c];
    float sum = 0.0f;
    for (int u = 0; u < UNROLL; u++) sum += partial[u];
    return sum;
}

static inline void gate_row(long dim, float scale, const float *restrict x, const float *restrict gate,
                            const float *restrict weight, float *restrict y) {
    float gated[TILE];
    for (long start = 0; start < dim; start += TILE) {
        const long columns = dim - start < TILE ? dim - start : TILE;
        UNROLLED(UNROLL)
        for (long c = 0; c < columns; c++) gated[c] = silu(gate[start + c]);
        UNROLLED(UNROLL)
        for (long c = 0; c < columns; c++) y[start + c] = x[start + c] * scale * weight[start + c] * gated[c];
    }
}

void rmsnorm_silu(long rows, long dim, float eps, const float *restrict x, const float *restrict gate,
                  const float *restrict weight, float *restrict y) {
#if THREADS > 1
    PRAGMA(omp parallel for num_threads(THREADS) schedule(dynamic, ROWS_PER_CHUNK))
#endif
    for (long r = 0; r < rows; r++) {
        const float scale = 1.0f / sqrtf(sum_of_squares(x + r * dim, dim) / (float)dim + eps);
        gate_row(dim, scale, x + r * dim, gate + r * dim, weight, y + r * dim);
    }
}
