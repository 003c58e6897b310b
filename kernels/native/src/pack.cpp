#include "pack.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace phloem {

namespace {

// 32 weights of one row: codes, and what the formats keep beside them (see matrix.h).
struct Codes {
  uint8_t code[BLOCK];
  uint16_t scale = 0, minimum = 0;              // f16
  uint16_t super_scale = 0, super_minimum = 0;  // f16, of the K formats
  uint8_t small_scale = 0, small_minimum = 0;
  float half_scale[2] = {0, 0};  // of Q6K
  float row_scale = 0;           // of W8
};

uint16_t half_at(const uint8_t* p) {
  uint16_t value;
  std::memcpy(&value, p, 2);
  return value;
}

uint32_t word_at(const uint8_t* p) {
  uint32_t value;
  std::memcpy(&value, p, 4);
  return value;
}

// f16 arithmetic without instructions for it. A half's value is its fraction times a power of two.
float from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float magnitude = exponent ? float(1024 + fraction) * float(1u << exponent) * 0x1p-25f
                                   : float(fraction) * 0x1p-24f;
  return half & 0x8000 ? -magnitude : magnitude;
}

// -16 * x: four powers of two up, exact for every x that does not overflow.
uint16_t minus_16_times(uint16_t half) {
  const int exponent = half >> 10 & 31, sign = ~half & 0x8000;
  if (exponent + 4 > 30 && exponent) return uint16_t(sign | 0x7c00);
  if (exponent) return uint16_t(sign | ((half & 0x7fff) + (4 << 10)));
  int fraction = (half & 1023) * 16, up = 0;  // a subnormal, which may become normal
  for (; fraction >= 2048; up++) fraction /= 2;  // its low bits are zero
  return uint16_t(sign | (fraction >= 1024 ? (up + 1) << 10 | (fraction & 1023) : fraction));
}

void low_and_high_nibbles(const uint8_t* bytes, uint8_t* code) {
  for (int i = 0; i < 16; i++) {
    code[i] = bytes[i] & 15;
    code[i + 16] = bytes[i] >> 4;
  }
}

void add_fifth_bits(uint32_t bits, uint8_t* code) {
  for (int i = 0; i < BLOCK; i++) code[i] = uint8_t(code[i] | (bits >> i & 1) << 4);
}

// Scale and minimum of sub-block b, 6 bits each, as Q4_K and Q5_K store them.
void small_scales(const uint8_t* packed, int b, Codes& out) {
  if (b < 4) {
    out.small_scale = packed[b] & 63;
    out.small_minimum = packed[b + 4] & 63;
  } else {
    out.small_scale = uint8_t((packed[b + 4] & 15) | (packed[b - 4] >> 6) << 4);
    out.small_minimum = uint8_t((packed[b + 4] >> 4) | (packed[b] >> 6) << 4);
  }
}

void unpack_q6(const uint8_t* super, int b, Codes& out) {
  const int half = b / 4, quarter = b % 4;  // 128 weights, of which 32
  const uint8_t* low = super + half * 64 + quarter % 2 * 32;
  const uint8_t* high = super + 128 + half * 32;
  for (int i = 0; i < BLOCK; i++) {
    const int nibble = quarter < 2 ? low[i] & 15 : low[i] >> 4;
    out.code[i] = uint8_t(nibble | (high[i] >> 2 * quarter & 3) << 4);
  }
  const auto* scales = reinterpret_cast<const int8_t*>(super + 192);
  for (int i = 0; i < 2; i++)
    out.half_scale[i] = from_half(half_at(super + 208)) * float(scales[half * 8 + quarter * 2 + i]);
}

// Block b of a stored row.
Codes unpack(Stored stored, const uint8_t* row, int64_t b) {
  Codes out;
  const int in_super = int(b % SUPER);
  switch (stored) {
    case Stored::Q4_0: {
      const uint8_t* p = row + b * 18;
      out.scale = half_at(p);
      low_and_high_nibbles(p + 2, out.code);
      break;
    }
    case Stored::Q4_1: {
      const uint8_t* p = row + b * 20;
      out.scale = half_at(p);
      out.minimum = half_at(p + 2);
      low_and_high_nibbles(p + 4, out.code);
      break;
    }
    case Stored::Q5_0: {
      const uint8_t* p = row + b * 22;
      out.scale = half_at(p);
      out.minimum = minus_16_times(out.scale);
      low_and_high_nibbles(p + 6, out.code);
      add_fifth_bits(word_at(p + 2), out.code);
      break;
    }
    case Stored::Q5_1: {
      const uint8_t* p = row + b * 24;
      out.scale = half_at(p);
      out.minimum = half_at(p + 2);
      low_and_high_nibbles(p + 8, out.code);
      add_fifth_bits(word_at(p + 4), out.code);
      break;
    }
    case Stored::Q8_0: {
      const uint8_t* p = row + b * 34;
      out.scale = half_at(p);
      for (int i = 0; i < BLOCK; i++) out.code[i] = uint8_t(p[2 + i] + 128);
      break;
    }
    case Stored::Q4_K:
    case Stored::Q5_K: {
      const bool five = stored == Stored::Q5_K;
      const uint8_t* super = row + b / SUPER * (five ? 176 : 144);
      out.super_scale = half_at(super);
      out.super_minimum = half_at(super + 2);
      small_scales(super + 4, in_super, out);
      const uint8_t* codes = super + (five ? 48 : 16) + in_super / 2 * 32;
      for (int i = 0; i < BLOCK; i++) {
        out.code[i] = in_super % 2 ? codes[i] >> 4 : codes[i] & 15;
        if (five) out.code[i] = uint8_t(out.code[i] | (super[16 + i] >> in_super & 1) << 4);
      }
      break;
    }
    case Stored::Q6_K: unpack_q6(row + b / SUPER * 210, in_super, out); break;
    case Stored::W8: {
      std::memcpy(&out.row_scale, row, 4);
      for (int i = 0; i < BLOCK; i++) out.code[i] = uint8_t(row[4 + b * BLOCK + i] + 128);
      break;
    }
    default: throw std::invalid_argument("not a type of blocks");
  }
  return out;
}

void put_codes(const Codes& in, bool nibbles, int64_t r, uint8_t* block) {
  for (int g = 0; g < 8; g++)
    for (int j = 0; j < 4; j++) {
      uint8_t& byte = block[64 * (nibbles ? g % 4 : g) + 4 * r + j];
      byte = nibbles && g >= 4 ? uint8_t(byte | in.code[4 * g + j] << 4) : in.code[4 * g + j];
    }
}

void put_scales(Format format, const Codes& in, int64_t r, uint8_t* scales, uint8_t* head) {
  const auto put = [r](uint8_t* at, auto value) { std::memcpy(at + r * sizeof value, &value, sizeof value); };
  switch (format) {
    case Format::Q4:
    case Format::Q8: put(scales, in.scale); break;
    case Format::Q4M:
    case Format::Q8M:
      put(scales, in.scale);
      put(scales + 32, in.minimum);
      break;
    case Format::Q6K:
      put(scales, in.half_scale[0]);
      put(scales + 64, in.half_scale[1]);
      break;
    case Format::W8: put(head, in.row_scale); break;
    default:
      put(head, in.super_scale);
      put(head + 32, in.super_minimum);
      put(scales, in.small_scale);
      put(scales + 16, in.small_minimum);
  }
}

void pack_blocks(Stored stored, const uint8_t* row, const Matrix& m, uint8_t* tile, int64_t r) {
  const bool nibbles = m.format == Format::Q4 || m.format == Format::Q4M || m.format == Format::Q4K;
  uint8_t* head = nullptr;
  for (int64_t b = 0; b < m.inputs / BLOCK; b++) {
    if (has_head(m.format, b)) {
      head = tile;
      tile += HEAD;
    }
    const Codes codes = unpack(stored, row, b);
    put_codes(codes, nibbles, r, tile);
    put_scales(m.format, codes, r, tile + (nibbles ? 256 : 512), head);
    tile += block_bytes(m.format);
  }
}

void pack_floats(const uint8_t* row, const Matrix& m, uint8_t* tile, int64_t r) {
  for (int64_t k = 0; k < m.inputs; k++) {
    if (m.format == Format::F32) {
      std::memcpy(tile + (k * TILE + r) * 4, row + k * 4, 4);
    } else {
      std::memcpy(tile + (k / 2 * TILE + r) * 4 + k % 2 * 2, row + k * 2, 2);
    }
  }
}

constexpr int64_t ROWS = 64;  // of a task

}  // namespace

Format format_of(Stored stored) {
  switch (stored) {
    case Stored::F32: return Format::F32;
    case Stored::BF16: return Format::BF16;
    case Stored::Q4_0: return Format::Q4;
    case Stored::Q4_1: return Format::Q4M;
    case Stored::Q5_0:
    case Stored::Q5_1: return Format::Q8M;
    case Stored::Q8_0: return Format::Q8;
    case Stored::Q4_K: return Format::Q4K;
    case Stored::Q5_K: return Format::Q8K;
    case Stored::Q6_K: return Format::Q6K;
    case Stored::W8: return Format::W8;
  }
  throw std::invalid_argument("not a stored type that can be packed");
}

void pack(Pool& pool, Stored stored, const uint8_t* data, int64_t stride, int64_t rows,
          const Matrix& matrix, uint8_t* tiles, int64_t first_row) {
  pool.run((rows + ROWS - 1) / ROWS, [&](int64_t task) {
    for (int64_t i = task * ROWS; i < std::min((task + 1) * ROWS, rows); i++) {
      const int64_t row = first_row + i;
      uint8_t* tile = tiles + row / TILE * int64_t(matrix.tile_bytes);
      if (is_quantized(matrix.format)) {
        pack_blocks(stored, data + i * stride, matrix, tile, row % TILE);
      } else {
        pack_floats(data + i * stride, matrix, tile, row % TILE);
      }
    }
  });
}

}  // namespace phloem
