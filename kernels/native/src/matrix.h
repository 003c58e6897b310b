// Weights as the kernels read them: tiles of 16 output rows, cut along the inputs into blocks of 32.
//
// A block of codes holds, for 8 groups of 4 inputs, the 16 rows' codes of those inputs: byte
// 64 g + 4 r + j is input 4 g + j of row r. One vector load then feeds a dot product of four bytes
// for each row. Codes of 4 bits put group g + 4 into the high half of group g's byte.
// After the codes follow what turns a code c into a weight, for the 16 rows each:
//
//   Q4      scale f16                    scale * (c - 8)         GGUF Q4_0
//   Q4M     scale f16, minimum f16       scale * c + minimum     GGUF Q4_1
//   Q4K     scale u8, minimum u8         (S * scale) * c - (M * minimum), S and M f16 [16] at the
//                                        head of each 8 blocks   GGUF Q4_K
//   Q8      scale f16                    scale * (c - 128)       GGUF Q8_0
//   Q8M     scale f16, minimum f16       scale * c + minimum     GGUF Q5_0, Q5_1
//   Q8K     as Q4K, codes of 8 bits                              GGUF Q5_K
//   Q6K     scale f32 [2][16]            scale[half] * (c - 32), codes of 8 bits, halves of 16
//                                        inputs                  GGUF Q6_K
//   W8      scale f32 [16] at the head   scale * (c - 128)       one scale for a whole row
//           of the tile
//   BF16    pairs of inputs, [16 rows][2]
//   F32     [16 rows] for each input
//
// Weights have exactly the file's values. Rows and inputs that pad a tile are zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace phloem {

enum class Format : int32_t { F32, BF16, Q4, Q4M, Q4K, Q8, Q8M, Q8K, Q6K, W8 };

constexpr int64_t TILE = 16;   // rows of a tile
constexpr int64_t BLOCK = 32;  // inputs of a block
constexpr int64_t SUPER = 8;   // blocks of a superblock

constexpr bool is_quantized(Format f) { return f != Format::F32 && f != Format::BF16; }

// Bytes of one block of codes with its scales; heads not counted.
constexpr size_t block_bytes(Format f) {
  switch (f) {
    case Format::Q4: return 256 + 32;
    case Format::Q4M: return 256 + 64;
    case Format::Q4K: return 256 + 32;
    case Format::Q8: return 512 + 32;
    case Format::Q8M: return 512 + 64;
    case Format::Q8K: return 512 + 32;
    case Format::Q6K: return 512 + 128;
    case Format::W8: return 512;
    default: return 0;
  }
}

constexpr size_t HEAD = 64;  // bytes: S and M of the K formats, or scales of whole rows
constexpr bool has_super(Format f) { return f == Format::Q4K || f == Format::Q8K; }
// Whether a head lies before block b.
constexpr bool has_head(Format f, int64_t b) {
  return has_super(f) ? b % SUPER == 0 : f == Format::W8 && b == 0;
}

struct Matrix {
  Format format;
  int64_t rows;    // outputs
  int64_t inputs;  // a multiple of BLOCK if quantised
  size_t tile_bytes;
  const uint8_t* tiles;

  int64_t tile_count() const { return (rows + TILE - 1) / TILE; }
  const uint8_t* tile(int64_t t) const { return tiles + size_t(t) * tile_bytes; }
};

constexpr size_t tile_bytes(Format f, int64_t inputs) {
  if (f == Format::F32) return size_t(inputs) * TILE * 4;
  if (f == Format::BF16) return size_t((inputs + 1) / 2) * TILE * 4;
  const int64_t blocks = inputs / BLOCK;
  const int64_t heads = has_super(f) ? blocks / SUPER : f == Format::W8;
  return size_t(blocks) * block_bytes(f) + size_t(heads) * HEAD;
}

}  // namespace phloem
