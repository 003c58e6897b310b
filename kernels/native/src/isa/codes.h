// Dot products of codes (unsigned bytes) with activations (signed bytes), exact in int32.
#pragma once

#include "simd.h"

namespace PHLOEM_ISA {

constexpr int GROUPS = 8;  // of 4 inputs in a block

#if defined(PHLOEM_AVX512)

constexpr int PARTS = 1;  // of a tile, LANES rows each

struct Codes {
  __m512i group[GROUPS];
};

static inline Codes load_codes4(const uint8_t* p, int) {
  const __m512i low = _mm512_set1_epi8(15);
  Codes c;
  for (int g = 0; g < 4; g++) {
    const __m512i both = _mm512_loadu_si512(p + 64 * g);
    c.group[g] = _mm512_and_si512(both, low);
    c.group[g + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
  }
  return c;
}

static inline Codes load_codes8(const uint8_t* p, int) {
  Codes c;
  for (int g = 0; g < GROUPS; g++) c.group[g] = _mm512_loadu_si512(p + 64 * g);
  return c;
}

// Byte j of the rows' codes of group g, as floats.
static inline vf code(const Codes& c, int g, int j) {
  return to_float(_mm512_and_si512(_mm512_srli_epi32(c.group[g], unsigned(8 * j)), _mm512_set1_epi32(255)));
}

static inline __m512i four(const int8_t* x, int g) {
  int32_t bytes;
  std::memcpy(&bytes, x + 4 * g, 4);
  return _mm512_set1_epi32(bytes);
}

#if defined(PHLOEM_VNNI)

// Two chains hide the instruction's latency; integers add up alike in any order.
template <int FIRST, int LAST>
static inline vi dot_range(const Codes& c, const int8_t* x) {
  vi even = _mm512_setzero_si512(), odd = even;
  for (int g = FIRST; g < LAST; g += 2) {
    even = _mm512_dpbusd_epi32(even, c.group[g], four(x, g));
    odd = _mm512_dpbusd_epi32(odd, c.group[g + 1], four(x, g + 1));
  }
  return _mm512_add_epi32(even, odd);
}
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) { return dot_range<FIRST, LAST>(c, x); }
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) { return dot_range<FIRST, LAST>(c, x); }

#else

// Codes below 16: eight sums of two products each stay below 2^15.
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) {
  __m512i sum = _mm512_setzero_si512();
  for (int g = FIRST; g < LAST; g++)
    sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(c.group[g], four(x, g)));
  return _mm512_madd_epi16(sum, _mm512_set1_epi16(1));
}
// Codes of 8 bits as two of 4 bits, for the same reason.
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  const __m512i low = _mm512_set1_epi8(15);
  __m512i lows = _mm512_setzero_si512(), highs = lows;
  for (int g = FIRST; g < LAST; g++) {
    const __m512i high = _mm512_and_si512(_mm512_srli_epi16(c.group[g], 4), low);
    lows = _mm512_add_epi16(lows, _mm512_maddubs_epi16(_mm512_and_si512(c.group[g], low), four(x, g)));
    highs = _mm512_add_epi16(highs, _mm512_maddubs_epi16(high, four(x, g)));
  }
  return _mm512_add_epi32(_mm512_madd_epi16(lows, _mm512_set1_epi16(1)),
                          _mm512_madd_epi16(highs, _mm512_set1_epi16(16)));
}

#endif

#elif defined(PHLOEM_AVX2)

constexpr int PARTS = 2;

struct Codes {
  __m256i group[GROUPS];
};

static inline Codes load_codes4(const uint8_t* p, int part) {
  const __m256i low = _mm256_set1_epi8(15);
  Codes c;
  for (int g = 0; g < 4; g++) {
    const __m256i both = _mm256_loadu_si256((const __m256i*)(p + 64 * g + 32 * part));
    c.group[g] = _mm256_and_si256(both, low);
    c.group[g + 4] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
  }
  return c;
}

static inline Codes load_codes8(const uint8_t* p, int part) {
  Codes c;
  for (int g = 0; g < GROUPS; g++)
    c.group[g] = _mm256_loadu_si256((const __m256i*)(p + 64 * g + 32 * part));
  return c;
}

// Byte j of the rows' codes of group g, as floats.
static inline vf code(const Codes& c, int g, int j) {
  return to_float(_mm256_and_si256(_mm256_srli_epi32(c.group[g], 8 * j), _mm256_set1_epi32(255)));
}

static inline __m256i four(const int8_t* x, int g) {
  int32_t bytes;
  std::memcpy(&bytes, x + 4 * g, 4);
  return _mm256_set1_epi32(bytes);
}

// Codes below 16: eight sums of two products each stay below 2^15.
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) {
  __m256i sum = _mm256_setzero_si256();
  for (int g = FIRST; g < LAST; g++)
    sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(c.group[g], four(x, g)));
  return _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
}
// Codes of 8 bits as two of 4 bits, for the same reason.
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  const __m256i low = _mm256_set1_epi8(15);
  __m256i lows = _mm256_setzero_si256(), highs = lows;
  for (int g = FIRST; g < LAST; g++) {
    const __m256i high = _mm256_and_si256(_mm256_srli_epi16(c.group[g], 4), low);
    lows = _mm256_add_epi16(lows, _mm256_maddubs_epi16(_mm256_and_si256(c.group[g], low), four(x, g)));
    highs = _mm256_add_epi16(highs, _mm256_maddubs_epi16(high, four(x, g)));
  }
  return _mm256_add_epi32(_mm256_madd_epi16(lows, _mm256_set1_epi16(1)),
                          _mm256_madd_epi16(highs, _mm256_set1_epi16(16)));
}

#else

constexpr int PARTS = 2;

struct Codes {
  uint8_t byte[GROUPS][LANES][4];
};

static inline Codes load_codes4(const uint8_t* p, int part) {
  Codes c;
  for (int g = 0; g < 4; g++)
    for (int i = 0; i < LANES * 4; i++) {
      const uint8_t both = p[64 * g + 4 * LANES * part + i];
      c.byte[g][i / 4][i % 4] = both & 15;
      c.byte[g + 4][i / 4][i % 4] = both >> 4;
    }
  return c;
}

static inline Codes load_codes8(const uint8_t* p, int part) {
  Codes c;
  for (int g = 0; g < GROUPS; g++) std::memcpy(c.byte[g], p + 64 * g + 4 * LANES * part, LANES * 4);
  return c;
}

// Byte j of the rows' codes of group g, as floats.
static inline vf code(const Codes& c, int g, int j) {
  return lanes([&](int r) { return float(c.byte[g][r][j]); });
}

template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  vi sum{};
  for (int g = FIRST; g < LAST; g++)
    for (int r = 0; r < LANES; r++)
      for (int j = 0; j < 4; j++) sum.v[r] += int32_t(c.byte[g][r][j]) * x[4 * g + j];
  return sum;
}
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) { return dot8_range<FIRST, LAST>(c, x); }

#endif

static inline vi dot4(const Codes& c, const int8_t* x) { return dot4_range<0, GROUPS>(c, x); }
static inline vi dot8(const Codes& c, const int8_t* x) { return dot8_range<0, GROUPS>(c, x); }

}  // namespace PHLOEM_ISA
