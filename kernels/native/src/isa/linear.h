// Linear maps: tiles of 16 outputs for up to MT rows at a time.
//
// A row's sums are added in the order of the blocks whatever MT is and whatever other rows there
// are, so its result has the same bits alone and in any batch.
#pragma once

#include "../kernels.h"
#include "blocks.h"

namespace PHLOEM_ISA {

using phloem::Form;
using phloem::LinearTask;
using phloem::Matrix;
using phloem::Rows;

constexpr int MOST_ROWS = LANES == 16 ? 12 : 4;
constexpr int64_t ROW_BLOCK = 48;  // rows whose activations stay in the first-level cache

// A row of int8 activations.
struct CodedRow {
  const int8_t* codes;
  const float* scales;
  const float* sums;  // scale * sum of the codes
};

static inline CodedRow coded_row(const Rows& x, int64_t m, int64_t inputs) {
  const uint8_t* row = x.row(m);
  const float* scales = (const float*)(row + inputs);
  return {(const int8_t*)row, scales, scales + inputs / BLOCK};
}

template <int MT>
struct Sums {
  vf row[MT];
};

template <Format F, int MT>
static inline __attribute__((always_inline)) Sums<MT> coded_sums(const Matrix& w, int64_t tile,
                                                                 int part, const Rows& x,
                                                                 int64_t m0) {
  CodedRow rows[MT];
  Sums<MT> acc;
  for (int m = 0; m < MT; m++) rows[m] = coded_row(x, m0 + m, w.inputs), acc.row[m] = zero();
  each_block<F>(w.tile(tile), w.inputs / BLOCK, part, [&](int64_t b, const Block& block) {
#pragma GCC unroll 16
    for (int m = 0; m < MT; m++) {
      const int8_t* codes = rows[m].codes + b * BLOCK;
      const vf scale = set1(rows[m].scales[b]);
      if constexpr (F == Format::Q6K) {
        const vi low = dot8_range<0, 4>(block.codes, codes);
        const vi high = dot8_range<4, 8>(block.codes, codes);
        int32_t total[2] = {0, 0};
        for (int k = 0; k < BLOCK; k++) total[k / 16] += codes[k];
        vf sum = mul(block.scales.scale[0], to_float(low));
        sum = fma(block.scales.scale[1], to_float(high), sum);
        sum = fma(block.scales.minimum[0], set1(float(total[0])), sum);
        sum = fma(block.scales.minimum[1], set1(float(total[1])), sum);
        acc.row[m] = fma(scale, sum, acc.row[m]);
      } else {
        const vf sum = to_float(dot<F>(block.codes, codes));
        acc.row[m] = fma(sum, mul(block.scales.scale[0], scale), acc.row[m]);
        acc.row[m] = fma(block.scales.minimum[0], set1(rows[m].sums[b]), acc.row[m]);
      }
    }
  });
  return acc;
}

// Weights decoded to floats, activations in full precision; two chains of sums hide latencies.
template <Format F, int MT>
static inline __attribute__((always_inline)) Sums<MT> exact_sums(const Matrix& w, int64_t tile,
                                                                 int part, const Rows& x,
                                                                 int64_t m0) {
  vf even[MT], odd[MT];
  for (int m = 0; m < MT; m++) even[m] = odd[m] = zero();
  each_block<F>(w.tile(tile), w.inputs / BLOCK, part, [&](int64_t b, const Block& block) {
    for (int g = 0; g < GROUPS; g++)
      for (int j = 0; j < 4; j += 2) {
        const vf first = weight(block, g, j), second = weight(block, g, j + 1);
        for (int m = 0; m < MT; m++) {
          const float* row = (const float*)x.row(m0 + m) + b * BLOCK + 4 * g + j;
          even[m] = fma(first, set1(row[0]), even[m]);
          odd[m] = fma(second, set1(row[1]), odd[m]);
        }
      }
  });
  Sums<MT> acc;
  for (int m = 0; m < MT; m++) acc.row[m] = add(even[m], odd[m]);
  return acc;
}

template <int MT>
static inline __attribute__((always_inline)) Sums<MT> float_sums(const Matrix& w, int64_t tile,
                                                                 int part, const Rows& x,
                                                                 int64_t m0) {
  const float* weights = (const float*)w.tile(tile) + part * LANES;
  vf even[MT], odd[MT];
  for (int m = 0; m < MT; m++) even[m] = odd[m] = zero();
  int64_t k = 0;
  for (; k + 2 <= w.inputs; k += 2) {
    const vf first = load(weights + k * TILE), second = load(weights + (k + 1) * TILE);
#pragma GCC unroll 16
    for (int m = 0; m < MT; m++) {
      const float* row = (const float*)x.row(m0 + m) + k;
      even[m] = fma(first, set1(row[0]), even[m]);
      odd[m] = fma(second, set1(row[1]), odd[m]);
    }
  }
  Sums<MT> acc;
  for (int m = 0; m < MT; m++) {
    if (k < w.inputs)
      even[m] = fma(load(weights + k * TILE), set1(((const float*)x.row(m0 + m))[k]), even[m]);
    acc.row[m] = add(even[m], odd[m]);
  }
  return acc;
}

template <int MT>
static inline __attribute__((always_inline)) Sums<MT> pair_sums(const Matrix& w, int64_t tile,
                                                                int part, const Rows& x,
                                                                int64_t m0) {
  const uint8_t* weights = w.tile(tile) + part * LANES * 4;
  vf even[MT], odd[MT];
  for (int m = 0; m < MT; m++) even[m] = odd[m] = zero();
  const int64_t pairs = (w.inputs + 1) / 2;
  int64_t k = 0;
  for (; k + 2 <= pairs; k += 2) {
    const vpairs first = load_pairs(weights + k * TILE * 4);
    const vpairs second = load_pairs(weights + (k + 1) * TILE * 4);
#pragma GCC unroll 16
    for (int m = 0; m < MT; m++) {
      const uint32_t* row = (const uint32_t*)x.row(m0 + m) + k;
      even[m] = dot_pairs(even[m], first, row[0]);
      odd[m] = dot_pairs(odd[m], second, row[1]);
    }
  }
  Sums<MT> acc;
  for (int m = 0; m < MT; m++) {
    if (k < pairs)
      even[m] = dot_pairs(even[m], load_pairs(weights + k * TILE * 4),
                          ((const uint32_t*)x.row(m0 + m))[k]);
    acc.row[m] = add(even[m], odd[m]);
  }
  return acc;
}

template <Format F, Form A, int MT>
static inline __attribute__((always_inline)) Sums<MT> sums(const Matrix& w, int64_t tile, int part,
                                                           const Rows& x, int64_t m0) {
  if constexpr (F == Format::F32) return float_sums<MT>(w, tile, part, x, m0);
  else if constexpr (F == Format::BF16) return pair_sums<MT>(w, tile, part, x, m0);
  else if constexpr (A == phloem::FORM_I8) return coded_sums<F, MT>(w, tile, part, x, m0);
  else return exact_sums<F, MT>(w, tile, part, x, m0);
}

// Outputs of one tile for MT rows, at `out` (column 0 of the tile, row m0).
struct TileOut {
  float* out;
  int64_t stride;
  int64_t columns;  // of the tile, 16 but for a map's last one
  const float* bias;
  bool add;
};

template <Format F, Form A, int MT>
static __attribute__((noinline)) void tile_rows(const Matrix& w, int64_t tile, const Rows& x,
                                                int64_t m0, const TileOut& to) {
  for (int part = 0; part < PARTS; part++) {
    const int64_t left = to.columns - part * LANES;
    if (left <= 0) return;
    Sums<MT> acc = sums<F, A, MT>(w, tile, part, x, m0);
    for (int m = 0; m < MT; m++) {
      float* out = to.out + m * to.stride + part * LANES;
      vf value = acc.row[m];
      if (to.bias) value = add(value, load_part(to.bias + part * LANES, left));
      if (to.add) value = add(load_part(out, left), value);
      store_part(out, value, left);
    }
  }
}

template <Format F, Form A>
static void tile_all_rows(const Matrix& w, int64_t tile, const Rows& x, int64_t m, int64_t last,
                          TileOut to) {
  const auto take = [&](auto count) {
    constexpr int MT = decltype(count)::value;
    tile_rows<F, A, MT>(w, tile, x, m, to);
    m += MT;
    to.out += MT * to.stride;
  };
  while (last - m >= MOST_ROWS) take(Count<MOST_ROWS>());
  if constexpr (MOST_ROWS > 8)
    if (last - m >= 8) take(Count<8>());
  while (last - m >= 4) take(Count<4>());
  if (last - m >= 2) take(Count<2>());
  if (last - m >= 1) take(Count<1>());
}

using TileFunction = void (*)(const Matrix&, int64_t, const Rows&, int64_t, int64_t, TileOut);

static TileFunction tile_function(Format f, Form a) {
  const bool coded = a == phloem::FORM_I8;
#define PHLOEM_CASE(F)                                                                    \
  case Format::F:                                                                         \
    return coded ? tile_all_rows<Format::F, phloem::FORM_I8> : tile_all_rows<Format::F, phloem::FORM_F32>
  switch (f) {
    PHLOEM_CASE(Q4);
    PHLOEM_CASE(Q4M);
    PHLOEM_CASE(Q4K);
    PHLOEM_CASE(Q8);
    PHLOEM_CASE(Q8M);
    PHLOEM_CASE(Q8K);
    PHLOEM_CASE(Q6K);
    case Format::BF16: return tile_all_rows<Format::BF16, phloem::FORM_BF16>;
    default: return tile_all_rows<Format::F32, phloem::FORM_F32>;
  }
#undef PHLOEM_CASE
}

static void linear(const LinearTask& task) {
  const Matrix& w = *task.matrix;
  const TileFunction run = tile_function(w.format, task.form);
  for (int64_t m = 0; m < task.rows; m += ROW_BLOCK) {
    const int64_t last = m + ROW_BLOCK < task.rows ? m + ROW_BLOCK : task.rows;
    for (int64_t tile = task.first_tile; tile < task.last_tile; tile++) {
      const int64_t column = tile * TILE, left = w.rows - column;
      run(w, tile, task.inputs, m, last,
          {task.out + m * task.out_stride + column, task.out_stride, left < TILE ? left : TILE,
           task.bias ? task.bias + column : nullptr, task.epilogue == phloem::Epilogue::ADD});
    }
  }
}

}  // namespace PHLOEM_ISA
