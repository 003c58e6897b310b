// From stored weights to tiles.
#pragma once

#include <cstdint>

#include "matrix.h"
#include "pool.h"

namespace phloem {

// How weights are stored: GGUF's types by its numbers, rows of floats, and W8: rows of a float
// scale, then bytes that it multiplies.
enum class Stored : int32_t { F32 = 0, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8,
                              Q4_K = 12, Q5_K = 13, Q6_K = 14, BF16 = 30, W8 = 1000 };

// The format that keeps a stored type's values exactly.
Format format_of(Stored stored);

// Packs `rows` rows to rows [first_row, first_row + rows) of the matrix, whose
// tiles are zero before. `stride` is the stored rows' distance in bytes.
void pack(Pool& pool, Stored stored, const uint8_t* data, int64_t stride, int64_t rows,
          const Matrix& matrix, uint8_t* tiles, int64_t first_row);

}  // namespace phloem
