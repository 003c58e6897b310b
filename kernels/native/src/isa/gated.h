// gate(x W_gate) * (x W_up), block by block of 32 outputs, so that neither product leaves the cache.
#pragma once

#include "linear.h"
#include "rows.h"

namespace PHLOEM_ISA {

using phloem::GateTask;

static void gated_linear(const GateTask& task) {
  constexpr int64_t WIDTH = 2 * BLOCK;
  alignas(64) float products[ROW_BLOCK * WIDTH];
  alignas(64) float values[BLOCK];
  const Matrix& w = *task.matrix;
  const TileFunction run = tile_function(w.format, task.form);
  for (int64_t m = 0; m < task.rows; m += ROW_BLOCK) {
    const int64_t last = m + ROW_BLOCK < task.rows ? m + ROW_BLOCK : task.rows;
    for (int64_t block = task.first; block < task.last; block++) {
      for (int64_t i = 0; i < WIDTH / TILE; i++) {
        const int64_t column = (i < 2 ? 0 : task.inner) + block * BLOCK + i % 2 * TILE;
        run(w, column / TILE, task.inputs, m, last,
            {products + i * TILE, WIDTH, TILE, task.bias ? task.bias + column : nullptr, false});
      }
      for (int64_t row = m; row < last; row++) {
        const float* product = products + (row - m) * WIDTH;
        for (int64_t i = 0; i < BLOCK; i += LANES)
          store(values + i, gated(load(product + i), load(product + BLOCK + i), task.gate));
        write_block(values, block * BLOCK, BLOCK, task.inner, task.out, row);
      }
    }
  }
}

}  // namespace PHLOEM_ISA
