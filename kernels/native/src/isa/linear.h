// Linear maps: tiles of 16 outputs for up to MOST_ROWS rows at a time.
//
// A row's sums are added in the order of the blocks, however many rows are taken together, so its
// result has the same bits alone and in any batch.
#pragma once

#include "../kernels.h"
#include "blocks.h"

namespace PHLOEM_ISA {

using phloem::Form;
using phloem::LinearTask;
using phloem::Matrix;
using phloem::Rows;

constexpr int MOST_ROWS = LANES == 16 ? 12 : 4;
constexpr int PREFETCH_ROWS = 4;    // with fewer, memory is the limit and prefetching only costs
constexpr int64_t ROW_BLOCK = 48;  // rows whose activations stay in the first-level cache

// A row of int8 activations.
struct CodedRow {
  const int8_t* codes;
  const int8_t* fine;
  const float* scales;
  const float* sums;       // scale * sum of the codes
  const int32_t* offsets;  // -128 * sum of the codes
};

template <Form A>
static inline CodedRow coded_row(const Rows& x, int64_t m, int64_t inputs) {
  const int8_t* row = (const int8_t*)x.row(m);
  const float* scales = (const float*)(row + (A == phloem::FORM_I16 ? 2 * inputs : inputs));
  const int64_t blocks = inputs / BLOCK;
  return {row, row + inputs, scales, scales + blocks, (const int32_t*)(scales + 2 * blocks)};
}

// Products of weights' codes in groups [FIRST, LAST) of block b with a row's, as floats.
template <Format F, Form A, int FIRST, int LAST>
static inline PHLOEM_INLINE vf dot(const Codes& codes, const CodedRow& row, int64_t b) {
  const vf sum = to_float(dot_range<F, FIRST, LAST>(codes, row.codes + b * BLOCK));
  if constexpr (A == phloem::FORM_I8) return sum;
  return fma(to_float(dot_range<F, FIRST, LAST>(codes, row.fine + b * BLOCK)), set1(phloem::FINE), sum);
}

// The sum of half a block's activations, in units of the scale.
template <Form A>
static inline float half_sum(const CodedRow& row, int64_t b, int half) {
  int32_t codes = 0, fine = 0;
  for (int64_t k = b * BLOCK + half * BLOCK / 2; k < b * BLOCK + (half + 1) * BLOCK / 2; k++) {
    codes += row.codes[k];
    if constexpr (A == phloem::FORM_I16) fine += row.fine[k];
  }
  return float(codes) + float(fine) * phloem::FINE;
}

// What a kernel makes for M rows: LANES outputs each.
template <int M>
struct Sums {
  vf row[M];
};

template <Format F, Form A>
static inline PHLOEM_INLINE vf add_block(vf acc, const Block& block, const CodedRow& row, int64_t b) {
  const vf scale = set1(row.scales[b]);
  const Scales& s = block.scales;
  if constexpr (F == Format::W8) {  // the row's own scale comes last, see coded_sums
    if constexpr (A == phloem::FORM_I8)
      return fma(to_float(dot8_from(row.offsets[b], block.codes, row.codes + b * BLOCK)), scale, acc);
    acc = fma(dot<F, A, 0, GROUPS>(block.codes, row, b), scale, acc);
    return fma(set1(-128.0f), set1(row.sums[b]), acc);
  }
  if constexpr (F == Format::Q6K) {
    vf sum = mul(s.scale[0], dot<F, A, 0, GROUPS / 2>(block.codes, row, b));
    sum = fma(s.scale[1], dot<F, A, GROUPS / 2, GROUPS>(block.codes, row, b), sum);
    sum = fma(s.minimum[0], set1(half_sum<A>(row, b, 0)), sum);
    sum = fma(s.minimum[1], set1(half_sum<A>(row, b, 1)), sum);
    return fma(scale, sum, acc);
  }
  acc = fma(dot<F, A, 0, GROUPS>(block.codes, row, b), mul(s.scale[0], scale), acc);
  return fma(s.minimum[0], set1(row.sums[b]), acc);
}

template <Format F, Form A, int... m>
static inline PHLOEM_INLINE Sums<sizeof...(m)> coded_sums(const Matrix& w, int64_t tile, int part,
                                                          const Rows& x, int64_t m0, ints<m...>) {
  const CodedRow rows[] = {coded_row<A>(x, m0 + m, w.inputs)...};
  BlockReader<F> reader(w.tile(tile), part);
  vf acc[] = {(void(m), zero())...};
  for (int64_t b = 0; b < w.inputs / BLOCK; b++) {
    if constexpr (sizeof...(m) >= PREFETCH_ROWS) reader.prefetch();
    const Block block = reader.next(b);
    ((acc[m] = add_block<F, A>(acc[m], block, rows[m], b)), ...);
  }
  if constexpr (F == Format::W8) return {{mul(acc[m], reader.row_scale())...}};
  return {{acc[m]...}};
}

// Weights decoded to floats, activations in full precision. Here and below, two chains of sums a
// row hide the latency of the additions.
template <Format F, int... m>
static inline PHLOEM_INLINE Sums<sizeof...(m)> exact_sums(const Matrix& w, int64_t tile, int part,
                                                          const Rows& x, int64_t m0, ints<m...>) {
  const float* in[] = {(const float*)x.row(m0 + m)...};
  BlockReader<F> reader(w.tile(tile), part);
  vf even[] = {(void(m), zero())...}, odd[] = {(void(m), zero())...};
  for (int64_t b = 0; b < w.inputs / BLOCK; b++) {
    const Block block = reader.next(b);
    for (int g = 0; g < GROUPS; g++)
      for (int j = 0; j < 4; j += 2) {
        const vf first = weight(block, g, j), second = weight(block, g, j + 1);
        const int64_t k = b * BLOCK + 4 * g + j;
        ((even[m] = fma(first, set1(in[m][k]), even[m])), ...);
        ((odd[m] = fma(second, set1(in[m][k + 1]), odd[m])), ...);
      }
  }
  return {{add(even[m], odd[m])...}};
}

template <int... m>
static inline PHLOEM_INLINE Sums<sizeof...(m)> float_sums(const Matrix& w, int64_t tile, int part,
                                                          const Rows& x, int64_t m0, ints<m...>) {
  const float* weights = (const float*)w.tile(tile) + part * LANES;
  const float* in[] = {(const float*)x.row(m0 + m)...};
  vf even[] = {(void(m), zero())...}, odd[] = {(void(m), zero())...};
  int64_t k = 0;
  for (; k + 2 <= w.inputs; k += 2) {
    const vf first = load(weights + k * TILE), second = load(weights + (k + 1) * TILE);
    ((even[m] = fma(first, set1(in[m][k]), even[m])), ...);
    ((odd[m] = fma(second, set1(in[m][k + 1]), odd[m])), ...);
  }
  if (k < w.inputs) ((even[m] = fma(load(weights + k * TILE), set1(in[m][k]), even[m])), ...);
  return {{add(even[m], odd[m])...}};
}

template <int... m>
static inline PHLOEM_INLINE Sums<sizeof...(m)> pair_sums(const Matrix& w, int64_t tile, int part,
                                                         const Rows& x, int64_t m0, ints<m...>) {
  const uint8_t* weights = w.tile(tile) + part * LANES * 4;
  const uint32_t* in[] = {(const uint32_t*)x.row(m0 + m)...};
  const int64_t pairs = (w.inputs + 1) / 2;
  vf even[] = {(void(m), zero())...}, odd[] = {(void(m), zero())...};
  int64_t k = 0;
  for (; k + 2 <= pairs; k += 2) {
    const vpairs first = load_pairs(weights + k * TILE * 4);
    const vpairs second = load_pairs(weights + (k + 1) * TILE * 4);
    ((even[m] = dot_pairs(even[m], first, in[m][k])), ...);
    ((odd[m] = dot_pairs(odd[m], second, in[m][k + 1])), ...);
  }
  if (k < pairs)
    ((even[m] = dot_pairs(even[m], load_pairs(weights + k * TILE * 4), in[m][k])), ...);
  return {{add(even[m], odd[m])...}};
}

template <Format F, Form A, int M>
static inline PHLOEM_INLINE Sums<M> sums(const Matrix& w, int64_t tile, int part, const Rows& x, int64_t m0) {
  constexpr upto<M> all;
  if constexpr (F == Format::F32) return float_sums(w, tile, part, x, m0, all);
  else if constexpr (F == Format::BF16) return pair_sums(w, tile, part, x, m0, all);
  else if constexpr (A == phloem::FORM_F32) return exact_sums<F>(w, tile, part, x, m0, all);
  else return coded_sums<F, A>(w, tile, part, x, m0, all);
}

// Outputs of one tile for some rows, at `out` (column 0 of the tile, row m0).
struct TileOut {
  float* out;
  int64_t stride;
  int64_t columns;  // of the tile, 16 but for a map's last one
  const float* bias;
  bool add;
};

static inline PHLOEM_INLINE void put(vf value, const TileOut& to, int64_t m, int64_t column) {
  const int64_t left = to.columns - column;
  float* out = to.out + m * to.stride + column;
  if (to.bias) value = add(value, load_part(to.bias + column, left));
  if (to.add) value = add(load_part(out, left), value);
  store_part(out, value, left);
}

template <int... m>
static inline PHLOEM_INLINE void put_all(const Sums<sizeof...(m)>& sums, const TileOut& to, int64_t column,
                                         ints<m...>) {
  (put(sums.row[m], to, m, column), ...);
}

template <Format F, Form A, int M>
static __attribute__((noinline)) void tile_rows(const Matrix& w, int64_t tile, const Rows& x,
                                                int64_t m0, const TileOut& to) {
  for (int part = 0; part < PARTS && part * LANES < to.columns; part++)
    put_all(sums<F, A, M>(w, tile, part, x, m0), to, part * LANES, upto<M>());
}

template <Format F, Form A>
static void tile_all_rows(const Matrix& w, int64_t tile, const Rows& x, int64_t m, int64_t last,
                          TileOut to) {
  const auto take = [&](auto count) {
    constexpr int M = decltype(count)::value;
    tile_rows<F, A, M>(w, tile, x, m, to);
    m += M;
    to.out += M * to.stride;
  };
  while (last - m >= MOST_ROWS) take(Count<MOST_ROWS>());
  if constexpr (MOST_ROWS > 8)
    if (last - m >= 8) take(Count<8>());
  while (last - m >= 4) take(Count<4>());
  if (last - m >= 2) take(Count<2>());
  if (last - m >= 1) take(Count<1>());
}

using TileFunction = void (*)(const Matrix&, int64_t, const Rows&, int64_t, int64_t, TileOut);

template <Format F>
static TileFunction coded_function(Form a) {
  return a == phloem::FORM_I8    ? tile_all_rows<F, phloem::FORM_I8>
         : a == phloem::FORM_I16 ? tile_all_rows<F, phloem::FORM_I16>
                                 : tile_all_rows<F, phloem::FORM_F32>;
}

static TileFunction tile_function(Format f, Form a) {
  switch (f) {
    case Format::Q4: return coded_function<Format::Q4>(a);
    case Format::Q4M: return coded_function<Format::Q4M>(a);
    case Format::Q4K: return coded_function<Format::Q4K>(a);
    case Format::Q8: return coded_function<Format::Q8>(a);
    case Format::Q8M: return coded_function<Format::Q8M>(a);
    case Format::Q8K: return coded_function<Format::Q8K>(a);
    case Format::Q6K: return coded_function<Format::Q6K>(a);
    case Format::W8: return coded_function<Format::W8>(a);
    case Format::BF16: return tile_all_rows<Format::BF16, phloem::FORM_BF16>;
    default: return tile_all_rows<Format::F32, phloem::FORM_F32>;
  }
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

// Dot products of one block, over and over: they do not wait for each other, only their sums do.
static int64_t peak(int64_t blocks) {
  alignas(64) uint8_t codes[512];
  alignas(64) int8_t x[BLOCK];
  for (int i = 0; i < 512; i++) codes[i] = uint8_t(i % 16);
  for (int i = 0; i < BLOCK; i++) x[i] = int8_t(i);
  Codes block = load_codes4(codes, 0);
  vi sum{};
  for (int64_t i = 0; i < blocks; i++) {
    touch(block);  // so that each product is computed
    sum = add(sum, dot4_range<0, GROUPS>(block, x));
  }
  return reduce_add(sum) == -1 ? 0 : blocks * LANES * BLOCK;
}

}  // namespace PHLOEM_ISA
