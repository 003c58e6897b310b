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

template <int... g>
static inline Codes nibbles(const uint8_t* p, ints<g...>) {
  const __m512i low = _mm512_set1_epi8(15), both[] = {_mm512_loadu_si512(p + 64 * g)...};
  return {{_mm512_and_si512(both[g], low)..., _mm512_and_si512(_mm512_srli_epi16(both[g], 4), low)...}};
}
static inline Codes load_codes4(const uint8_t* p, int) { return nibbles(p, upto<4>()); }

template <int... g>
static inline Codes bytes(const uint8_t* p, ints<g...>) {
  return {{_mm512_loadu_si512(p + 64 * g)...}};
}
static inline Codes load_codes8(const uint8_t* p, int) { return bytes(p, upto<GROUPS>()); }

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
template <int FIRST, int... i>
static inline vi dot_pairs_of_groups(vi even, const Codes& c, const int8_t* x, ints<i...>) {
  vi odd = _mm512_setzero_si512();
  ((even = _mm512_dpbusd_epi32(even, c.group[FIRST + 2 * i], four(x, FIRST + 2 * i)),
    odd = _mm512_dpbusd_epi32(odd, c.group[FIRST + 2 * i + 1], four(x, FIRST + 2 * i + 1))),
   ...);
  return _mm512_add_epi32(even, odd);
}
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  return dot_pairs_of_groups<FIRST>(_mm512_setzero_si512(), c, x, upto<(LAST - FIRST) / 2>());
}
// The block's dot product with `start` added.
static inline vi dot8_from(int32_t start, const Codes& c, const int8_t* x) {
  return dot_pairs_of_groups<0>(_mm512_set1_epi32(start), c, x, upto<GROUPS / 2>());
}
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) { return dot8_range<FIRST, LAST>(c, x); }

#else

// Codes below 16: eight sums of two products each stay below 2^15.
template <int FIRST, int... i>
static inline __m512i nibble_sums(const Codes& c, const int8_t* x, ints<i...>) {
  __m512i sum = _mm512_setzero_si512();
  ((sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(c.group[FIRST + i], four(x, FIRST + i)))), ...);
  return sum;
}
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) {
  return _mm512_madd_epi16(nibble_sums<FIRST>(c, x, upto<LAST - FIRST>()), _mm512_set1_epi16(1));
}
// Codes of 8 bits as two of 4 bits, for the same reason.
template <int... g>
static inline Codes low_halves(const Codes& c, ints<g...>) {
  return {{_mm512_and_si512(c.group[g], _mm512_set1_epi8(15))...}};
}
template <int... g>
static inline Codes high_halves(const Codes& c, ints<g...>) {
  return {{_mm512_and_si512(_mm512_srli_epi16(c.group[g], 4), _mm512_set1_epi8(15))...}};
}
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  const __m512i low = nibble_sums<FIRST>(low_halves(c, upto<GROUPS>()), x, upto<LAST - FIRST>());
  const __m512i high = nibble_sums<FIRST>(high_halves(c, upto<GROUPS>()), x, upto<LAST - FIRST>());
  return _mm512_add_epi32(_mm512_madd_epi16(low, _mm512_set1_epi16(1)), _mm512_madd_epi16(high, _mm512_set1_epi16(16)));
}

#endif

#elif defined(PHLOEM_AVX2)

constexpr int PARTS = 2;

struct Codes {
  __m256i group[GROUPS];
};

static inline __m256i half_tile(const uint8_t* p, int g, int part) {
  return _mm256_loadu_si256((const __m256i*)(p + 64 * g + 32 * part));
}
template <int... g>
static inline Codes nibbles(const uint8_t* p, int part, ints<g...>) {
  const __m256i low = _mm256_set1_epi8(15), both[] = {half_tile(p, g, part)...};
  return {{_mm256_and_si256(both[g], low)..., _mm256_and_si256(_mm256_srli_epi16(both[g], 4), low)...}};
}
static inline Codes load_codes4(const uint8_t* p, int part) { return nibbles(p, part, upto<4>()); }

template <int... g>
static inline Codes bytes(const uint8_t* p, int part, ints<g...>) {
  return {{half_tile(p, g, part)...}};
}
static inline Codes load_codes8(const uint8_t* p, int part) { return bytes(p, part, upto<GROUPS>()); }

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
template <int FIRST, int... i>
static inline __m256i nibble_sums(const Codes& c, const int8_t* x, ints<i...>) {
  __m256i sum = _mm256_setzero_si256();
  ((sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(c.group[FIRST + i], four(x, FIRST + i)))), ...);
  return sum;
}
template <int FIRST, int LAST>
static inline vi dot4_range(const Codes& c, const int8_t* x) {
  return _mm256_madd_epi16(nibble_sums<FIRST>(c, x, upto<LAST - FIRST>()), _mm256_set1_epi16(1));
}
// Codes of 8 bits as two of 4 bits, for the same reason.
template <int... g>
static inline Codes low_halves(const Codes& c, ints<g...>) {
  return {{_mm256_and_si256(c.group[g], _mm256_set1_epi8(15))...}};
}
template <int... g>
static inline Codes high_halves(const Codes& c, ints<g...>) {
  return {{_mm256_and_si256(_mm256_srli_epi16(c.group[g], 4), _mm256_set1_epi8(15))...}};
}
template <int FIRST, int LAST>
static inline vi dot8_range(const Codes& c, const int8_t* x) {
  const __m256i low = nibble_sums<FIRST>(low_halves(c, upto<GROUPS>()), x, upto<LAST - FIRST>());
  const __m256i high = nibble_sums<FIRST>(high_halves(c, upto<GROUPS>()), x, upto<LAST - FIRST>());
  return _mm256_add_epi32(_mm256_madd_epi16(low, _mm256_set1_epi16(1)), _mm256_madd_epi16(high, _mm256_set1_epi16(16)));
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

#if !defined(PHLOEM_VNNI)
// The block's dot product with `start` added.
static inline vi dot8_from(int32_t start, const Codes& c, const int8_t* x) {
  return add(set1_int(start), dot8_range<0, GROUPS>(c, x));
}
#endif

// Codes that the compiler must take for changed.
static inline void touch(Codes& c) {
#if defined(PHLOEM_AVX512)
  asm volatile("" : "+v"(c.group[0]), "+v"(c.group[1]));
#elif defined(PHLOEM_AVX2)
  asm volatile("" : "+x"(c.group[0]), "+x"(c.group[1]));
#else
  asm volatile("" : : "r"(&c) : "memory");
#endif
}

}  // namespace PHLOEM_ISA
