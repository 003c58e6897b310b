// A block of each format in registers: codes, and what makes weights of them.
#pragma once

#include "../matrix.h"
#include "codes.h"

namespace PHLOEM_ISA {

using phloem::BLOCK;
using phloem::Format;
using phloem::TILE;

constexpr bool has_4bit_codes(Format f) {
  return f == Format::Q4 || f == Format::Q4M || f == Format::Q4K;
}

// weight = scale[half] * code + minimum[half]; all formats but Q6K have equal halves.
struct Scales {
  vf scale[2], minimum[2];
};

struct Block {
  Codes codes;
  Scales scales;
};

static inline Scales both_halves(vf scale, vf minimum) { return {{scale, scale}, {minimum, minimum}}; }

// `head` is what the format has before a block, or before some.
template <Format F>
static inline Scales load_scales(const uint8_t* p, const uint8_t* head, int part) {
  const int row = part * LANES;
  const auto half = [&](const uint8_t* at) { return load_half((const uint16_t*)at + row); };
  if constexpr (F == Format::Q4 || F == Format::Q8) {
    const vf scale = half(p);
    return both_halves(scale, mul(scale, set1(F == Format::Q4 ? -8.0f : -128.0f)));
  } else if constexpr (F == Format::Q4M || F == Format::Q8M) {
    return both_halves(half(p), half(p + 32));
  } else if constexpr (F == Format::W8) {
    const vf scale = load((const float*)head + row);
    return both_halves(scale, mul(scale, set1(-128.0f)));
  } else if constexpr (F == Format::Q6K) {
    const vf first = load((const float*)p + row), second = load((const float*)p + TILE + row);
    return {{first, second}, {mul(first, set1(-32.0f)), mul(second, set1(-32.0f))}};
  } else {
    const vf scale = mul(half(head), load_u8(p + row));
    const vf minimum = mul(half(head + 32), load_u8(p + TILE + row));
    return both_halves(scale, sub(zero(), minimum));
  }
}

template <Format F>
static inline Block load_block(const uint8_t* p, const uint8_t* head, int part) {
  if constexpr (has_4bit_codes(F)) return {load_codes4(p, part), load_scales<F>(p + 256, head, part)};
  return {load_codes8(p, part), load_scales<F>(p + 512, head, part)};
}

template <Format F, int FIRST, int LAST>
static inline vi dot_range(const Codes& c, const int8_t* x) {
  if constexpr (has_4bit_codes(F)) return dot4_range<FIRST, LAST>(c, x);
  return dot8_range<FIRST, LAST>(c, x);
}

constexpr size_t AHEAD = 2048;  // bytes

// The blocks of a tile one after the other.
template <Format F>
class BlockReader {
 public:
  BlockReader(const uint8_t* tile, int part) : at_(tile), part_(part) {}

  PHLOEM_INLINE Block next(int64_t b) {  // b counts the blocks from 0
    if (phloem::has_head(F, b)) {
      head_ = at_;
      at_ += phloem::HEAD;
    }
    const uint8_t* at = at_;
    at_ += phloem::block_bytes(F);
    return load_block<F>(at, head_, part_);
  }

  // Fetches what lies ahead: the processor's own guesses fall behind where a block is much work.
  PHLOEM_INLINE void prefetch() const {
    for (size_t i = 0; i < phloem::block_bytes(F); i += 64) __builtin_prefetch(at_ + AHEAD + i);
  }

  // Of formats with one scale for a row, once a block was read.
  vf row_scale() const { return load((const float*)head_ + part_ * LANES); }

 private:
  const uint8_t* at_;
  const uint8_t* head_ = nullptr;
  int part_;
};

// Weight of input 4 g + j for the part's rows.
static inline vf weight(const Block& block, int g, int j) {
  const int half = g / (GROUPS / 2);
  return fma(block.scales.scale[half], code(block.codes, g, j), block.scales.minimum[half]);
}

}  // namespace PHLOEM_ISA
