// gate(x W_gate) * (x W_up), block by block of 32 outputs, so that neither product leaves the cache.
#pragma once

#include "linear.h"
#include "rows.h"

namespace PHLOEM_ISA {

using phloem::GateTask;

static void write_block(const float* x, int64_t block, int64_t inner, const Outputs& out, int64_t row) {
  if (out.forms[phloem::FORM_F32].data)
    std::memcpy((float*)out.forms[phloem::FORM_F32].row(row) + block * BLOCK, x, BLOCK * 4);
  if (out.forms[phloem::FORM_BF16].data)
    to_bf16(x, BLOCK, out.forms[phloem::FORM_BF16].row(row) + block * BLOCK * 2);
  if (out.forms[phloem::FORM_I8].data) {
    uint8_t* to = out.forms[phloem::FORM_I8].row(row);
    float* scales = (float*)(to + inner);
    encode_block(x, (int8_t*)to + block * BLOCK, scales + block, scales + inner / BLOCK + block);
  }
}

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
        write_block(values, block, task.inner, task.out, row);
      }
    }
  }
}

}  // namespace PHLOEM_ISA
