// The few vector operations that the kernels are written on, once for each instruction set.
//
// vf holds LANES floats, vi as many int32. Everything here and in the other headers of this folder
// has internal linkage or lies in namespace PHLOEM_ISA: the folder is compiled once per instruction
// set into one library, and the linker must never take another set's copy of a function.
// Rounding is the same in every loop: multiply-adds are fused where `fma` is written and nowhere
// else (-ffp-contract=off), so that a row's result does not depend on how a loop was cut.
#pragma once

#include <immintrin.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

namespace PHLOEM_ISA {

static inline float bf16_to_float(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

// Rounds to nearest, ties to even; a nan stays one.
static inline uint16_t float_to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float half_to_float(uint16_t half) {
  const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = half & 0x7fff;
  uint32_t bits;
  if (magnitude >= 0x7c00) {
    bits = sign | 0x7f800000u | (magnitude & 0x3ff) << 13;
  } else if (magnitude >= 0x400) {
    bits = sign | ((magnitude << 13) + (112u << 23));
  } else {  // a subnormal: its value is magnitude * 2^-24, exact in a float
    const float value = float(magnitude) * 5.9604644775390625e-8f;
    std::memcpy(&bits, &value, 4);
    bits |= sign;
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

#if defined(PHLOEM_AVX512)

constexpr int LANES = 16;
using vf = __m512;
using vi = __m512i;

static inline vf zero() { return _mm512_setzero_ps(); }
static inline vf set1(float x) { return _mm512_set1_ps(x); }
static inline vi set1_int(int32_t x) { return _mm512_set1_epi32(x); }
static inline vf load(const float* p) { return _mm512_loadu_ps(p); }
static inline void store(float* p, vf v) { _mm512_storeu_ps(p, v); }
static inline __mmask16 first(int64_t n) { return __mmask16((1u << n) - 1); }
static inline vf load_first(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
static inline void store_first(float* p, vf v, int64_t n) { _mm512_mask_storeu_ps(p, first(n), v); }
static inline vf add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline bool any_equal(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ) != 0; }
static inline bool any_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0; }
static inline vf abs(vf a) { return _mm512_abs_ps(a); }
static inline float reduce_add(vf a) { return _mm512_reduce_add_ps(a); }
static inline float reduce_max(vf a) { return _mm512_reduce_max_ps(a); }
static inline vf round(vf a) { return _mm512_roundscale_ps(a, 8); }
static inline vi to_int(vf a) { return _mm512_cvtps_epi32(a); }
static inline vf to_float(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline int32_t reduce_add(vi a) { return _mm512_reduce_add_epi32(a); }
static inline void store_i8(int8_t* p, vi v) {
  _mm_storeu_si128((__m128i*)p, _mm512_cvtepi32_epi8(v));
}
static inline vf load_i8(const int8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
static inline vf load_u8(const uint8_t* p) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)p)));
}
static inline vf load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
}
// a * 2^n for the whole number n.
static inline vf scale_by_power(vf a, vf n) { return _mm512_scalef_ps(a, n); }
static inline vf zero_where_less(vf a, vf x, vf bound) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, bound, _CMP_NLT_UQ), a);
}

#elif defined(PHLOEM_AVX2)

constexpr int LANES = 8;
using vf = __m256;
using vi = __m256i;

static inline vf zero() { return _mm256_setzero_ps(); }
static inline vf set1(float x) { return _mm256_set1_ps(x); }
static inline vi set1_int(int32_t x) { return _mm256_set1_epi32(x); }
static inline vf load(const float* p) { return _mm256_loadu_ps(p); }
static inline void store(float* p, vf v) { _mm256_storeu_ps(p, v); }
static inline __m256i first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf load_first(const float* p, int64_t n) { return _mm256_maskload_ps(p, first(n)); }
static inline void store_first(float* p, vf v, int64_t n) { _mm256_maskstore_ps(p, first(n), v); }
static inline vf add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline vf sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
static inline vf mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
static inline vf div(vf a, vf b) { return _mm256_div_ps(a, b); }
static inline vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline bool any_equal(vf a, vf b) {
  return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)) != 0;
}
static inline bool any_nan(vf a) { return _mm256_movemask_ps(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)) != 0; }
static inline vf abs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
static inline float reduce_add(vf a) {
  __m128 v = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  v = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps(v, v, 1)));
}
static inline float reduce_max(vf a) {
  __m128 v = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  v = _mm_max_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps(v, v, 1)));
}
static inline vf round(vf a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vi to_int(vf a) { return _mm256_cvtps_epi32(a); }
static inline vf to_float(vi a) { return _mm256_cvtepi32_ps(a); }
static inline vi add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline int32_t reduce_add(vi a) {
  alignas(32) int32_t lanes[8];
  _mm256_store_si256((__m256i*)lanes, a);
  int32_t sum = 0;
  for (int32_t lane : lanes) sum += lane;
  return sum;
}
static inline void store_i8(int8_t* p, vi v) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  _mm_storel_epi64((__m128i*)p, _mm_packs_epi16(words, words));
}
static inline vf load_i8(const int8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i*)p)));
}
static inline vf load_u8(const uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)p)));
}
static inline vf load_half(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
}
static inline vf scale_by_power(vf a, vf n) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_add_epi32(to_int(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(a, _mm256_castsi256_ps(exponent));
}
static inline vf zero_where_less(vf a, vf x, vf bound) {
  return _mm256_and_ps(a, _mm256_cmp_ps(x, bound, _CMP_NLT_UQ));
}

#else  // portable: loops that a compiler vectorises for whatever the target has

constexpr int LANES = 8;
struct vf {
  float v[LANES];
};
struct vi {
  int32_t v[LANES];
};

template <class F>
static inline vf lanes(F f) {
  vf r;
  for (int i = 0; i < LANES; i++) r.v[i] = f(i);
  return r;
}
static inline vf zero() { return lanes([](int) { return 0.0f; }); }
static inline vf set1(float x) { return lanes([=](int) { return x; }); }
static inline vi set1_int(int32_t x) {
  vi r;
  for (int i = 0; i < LANES; i++) r.v[i] = x;
  return r;
}
static inline vf load(const float* p) { return lanes([=](int i) { return p[i]; }); }
static inline void store(float* p, vf v) { std::memcpy(p, v.v, sizeof v.v); }
static inline vf load_first(const float* p, int64_t n) {
  return lanes([=](int i) { return i < n ? p[i] : 0.0f; });
}
static inline void store_first(float* p, vf v, int64_t n) { std::memcpy(p, v.v, size_t(n) * 4); }
static inline vf add(vf a, vf b) { return lanes([=](int i) { return a.v[i] + b.v[i]; }); }
static inline vf sub(vf a, vf b) { return lanes([=](int i) { return a.v[i] - b.v[i]; }); }
static inline vf mul(vf a, vf b) { return lanes([=](int i) { return a.v[i] * b.v[i]; }); }
static inline vf div(vf a, vf b) { return lanes([=](int i) { return a.v[i] / b.v[i]; }); }
// Not fused: without the instruction a fused multiply-add is a call into the C library.
static inline vf fma(vf a, vf b, vf c) {
  return lanes([=](int i) { return a.v[i] * b.v[i] + c.v[i]; });
}
static inline vf max(vf a, vf b) { return lanes([=](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; }); }
static inline bool any_equal(vf a, vf b) {
  int equal = 0;
  for (int i = 0; i < LANES; i++) equal |= a.v[i] == b.v[i];
  return equal;
}
static inline bool any_nan(vf a) {
  int nans = 0;
  for (int i = 0; i < LANES; i++) nans |= a.v[i] != a.v[i];
  return nans;
}
static inline vf min(vf a, vf b) { return lanes([=](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; }); }
static inline vf abs(vf a) { return lanes([=](int i) { return std::fabs(a.v[i]); }); }
static inline float reduce_add(vf a) {
  float sum = 0;
  for (float lane : a.v) sum += lane;
  return sum;
}
static inline float reduce_max(vf a) {
  float most = a.v[0];
  for (float lane : a.v) most = lane > most ? lane : most;
  return most;
}
// Nearest, ties to even, for |a| < 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
static inline vf round(vf a) {
  constexpr float SHIFT = 12582912.0f;
  return lanes([=](int i) {
    volatile float shifted = a.v[i] + SHIFT;
    return shifted - SHIFT;
  });
}
static inline vi to_int(vf a) {
  vi r;
  const vf whole = round(a);
  for (int i = 0; i < LANES; i++) r.v[i] = int32_t(whole.v[i]);
  return r;
}
static inline vf to_float(vi a) { return lanes([=](int i) { return float(a.v[i]); }); }
static inline vi add(vi a, vi b) {
  for (int i = 0; i < LANES; i++) a.v[i] += b.v[i];
  return a;
}
static inline int32_t reduce_add(vi a) {
  int32_t sum = 0;
  for (int32_t lane : a.v) sum += lane;
  return sum;
}
static inline void store_i8(int8_t* p, vi v) {
  for (int i = 0; i < LANES; i++) p[i] = int8_t(v.v[i]);
}
static inline vf load_i8(const int8_t* p) { return lanes([=](int i) { return float(p[i]); }); }
static inline vf load_u8(const uint8_t* p) { return lanes([=](int i) { return float(p[i]); }); }
static inline vf load_half(const uint16_t* p) {
  return lanes([=](int i) { return half_to_float(p[i]); });
}
static inline vf scale_by_power(vf a, vf n) {
  return lanes([=](int i) {
    const uint32_t bits = uint32_t(int32_t(n.v[i]) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, 4);
    return a.v[i] * power;
  });
}
static inline vf zero_where_less(vf a, vf x, vf bound) {
  return lanes([=](int i) { return x.v[i] < bound.v[i] ? 0.0f : a.v[i]; });
}

#endif

// e^x by a polynomial of degree 6 on [-ln 2 / 2, ln 2 / 2]; relative error below 2e-7.
// Exactly 0 below -87, so that what a mask hides adds nothing; e^88 above 88.
static inline vf exp(vf x) {
  const vf lowest = set1(-87.0f), within = min(max(x, lowest), set1(88.0f));
  const vf n = round(mul(within, set1(1.44269504088896341f)));
  vf r = fma(n, set1(-0.693359375f), within);
  r = fma(n, set1(2.12194440e-4f), r);
  vf p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(p, mul(r, r), add(r, set1(1.0f)));
  return zero_where_less(scale_by_power(p, n), x, lowest);
}

static inline vf tanh(vf x) {  // 1 - 2 / (e^2x + 1), which is right at both ends too
  const vf clamped = min(max(x, set1(-15.0f)), set1(15.0f));
  const vf e = exp(add(clamped, clamped));
  return sub(set1(1.0f), div(set1(2.0f), add(e, set1(1.0f))));
}

// Pairs of bf16, two for each lane, and acc + their products with one pair.
#if defined(PHLOEM_BF16)
using vpairs = __m512bh;
static inline vpairs load_pairs(const uint8_t* p) { return (__m512bh)_mm512_loadu_si512(p); }
static inline vf dot_pairs(vf acc, vpairs a, uint32_t b) {
  return _mm512_dpbf16_ps(acc, a, (__m512bh)_mm512_set1_epi32(int(b)));
}
#else
struct vpairs {
  vf first, second;
};
#if defined(PHLOEM_AVX512)
static inline vpairs load_pairs(const uint8_t* p) {
  const __m512i both = _mm512_loadu_si512(p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(both, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(int(0xffff0000u))))};
}
#elif defined(PHLOEM_AVX2)
static inline vpairs load_pairs(const uint8_t* p) {
  const __m256i both = _mm256_loadu_si256((const __m256i*)p);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
          _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(int(0xffff0000u))))};
}
#else
static inline vpairs load_pairs(const uint8_t* p) {
  const uint16_t* words = (const uint16_t*)p;
  return {lanes([=](int i) { return bf16_to_float(words[2 * i]); }),
          lanes([=](int i) { return bf16_to_float(words[2 * i + 1]); })};
}
#endif
static inline vf dot_pairs(vf acc, vpairs a, uint32_t b) {
  acc = fma(a.first, set1(bf16_to_float(uint16_t(b))), acc);
  return fma(a.second, set1(bf16_to_float(uint16_t(b >> 16))), acc);
}
#endif

// The object itself, hidden from the optimiser, which would else look up a thread's variable anew
// in every turn of a loop.
template <class T>
static inline T& opaque(T& object) {
  T* pointer = &object;
  asm("" : "+r"(pointer));
  return *pointer;
}

template <int N>
struct Count {
  static constexpr int value = N;
};

#define PHLOEM_INLINE __attribute__((always_inline))

// Loops over vectors that must stay in registers are written as folds over a pack of constants,
// `((sum[n] = fma(a, b[n], sum[n])), ...)`: what an index known from the start selects is a
// register, what a loop selects that is unrolled later on, or by a closure, lives in memory.
template <int... I>
using ints = std::integer_sequence<int, I...>;
template <int N>
using upto = std::make_integer_sequence<int, N>;

// Load and store with the tail of a row handled: n counts what is left.
static inline vf load_part(const float* p, int64_t n) { return n >= LANES ? load(p) : load_first(p, n); }
static inline void store_part(float* p, vf v, int64_t n) {
  if (n >= LANES) {
    store(p, v);
  } else {
    store_first(p, v, n);
  }
}

}  // namespace PHLOEM_ISA
