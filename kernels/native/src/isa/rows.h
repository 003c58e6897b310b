// Ops on single rows: norms, gated activations, embeddings, and the forms that rows are kept in.
#pragma once

#include "../kernels.h"
#include "blocks.h"

namespace PHLOEM_ISA {

using phloem::Gate;
using phloem::Matrix;
using phloem::Outputs;

constexpr int64_t WHOLE = 16;  // partial sums of a row: the same number on every instruction set

// 32 values as int8 codes with their scale, and scale * sum of the codes.
static inline void encode_block(const float* x, int8_t* codes, float* scale, float* sum) {
  vf most = abs(load(x));
  for (int i = LANES; i < BLOCK; i += LANES) most = max(most, abs(load(x + i)));
  const float largest = reduce_max(most);
  const vf inverse = set1(largest > 0 ? 127.0f / largest : 0.0f);
  vi total{};
  for (int i = 0; i < BLOCK; i += LANES) {
    const vi rounded = to_int(mul(load(x + i), inverse));
    store_i8(codes + i, rounded);
    total = i == 0 ? rounded : add(total, rounded);
  }
  *scale = largest * (1.0f / 127.0f);
  *sum = *scale * float(reduce_add(total));
}

static inline void to_i8(const float* x, int64_t n, uint8_t* row) {
  const int64_t blocks = n / BLOCK;
  float* scales = (float*)(row + n);
  for (int64_t b = 0; b < blocks; b++)
    encode_block(x + b * BLOCK, (int8_t*)row + b * BLOCK, scales + b, scales + blocks + b);
}

static inline void to_bf16(const float* x, int64_t n, uint8_t* row) {
  uint16_t* out = (uint16_t*)row;
  int64_t i = 0;
#if defined(PHLOEM_BF16)
  for (; i + LANES <= n; i += LANES)
    _mm256_storeu_si256((__m256i*)(out + i), (__m256i)_mm512_cvtneps_pbh(load(x + i)));
#endif
  for (; i < n; i++) out[i] = float_to_bf16(x[i]);
  if (n % 2) out[n] = 0;
}

static void convert(const float* x, int64_t n, const Outputs& out, int64_t row) {
  if (out.forms[phloem::FORM_F32].data) {
    float* to = (float*)out.forms[phloem::FORM_F32].row(row);
    if (to != x) std::memcpy(to, x, size_t(n) * 4);
  }
  if (out.forms[phloem::FORM_BF16].data) to_bf16(x, n, out.forms[phloem::FORM_BF16].row(row));
  if (out.forms[phloem::FORM_I8].data) to_i8(x, n, out.forms[phloem::FORM_I8].row(row));
}

static inline float sum_of_squares(const float* x, int64_t n) {
  vf sum = zero();
  for (int64_t i = 0; i < n; i += LANES) {
    const vf value = load_part(x + i, n - i);
    sum = fma(value, value, sum);
  }
  return reduce_add(sum);
}

// Rows are normalised stretch by stretch into a small buffer, and encoded from there.
static void norm(const float* x, int64_t groups, int64_t n, const float* weight, float eps,
                 const Outputs& out, int64_t row) {
  float* to = (float*)out.forms[phloem::FORM_F32].row(row);
  for (int64_t g = 0; g < groups; g++, x += n, to += n) {
    const vf scale = set1(1.0f / std::sqrt(sum_of_squares(x, n) / float(n) + eps));
    for (int64_t i = 0; i < n; i += LANES) {
      const vf value = mul(mul(load_part(x + i, n - i), scale), load_part(weight + i, n - i));
      store_part(to + i, value, n - i);
    }
  }
  Outputs rest = out;
  rest.forms[phloem::FORM_F32].data = nullptr;
  convert(to - groups * n, groups * n, rest, row);
}

static void add_rows(const float* a, const float* b, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i += LANES)
    store_part(out + i, add(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

static inline vf silu(vf x) { return div(x, add(set1(1.0f), exp(sub(zero(), x)))); }

static inline vf gelu(vf x) {  // in its tanh form
  const vf inner = mul(mul(x, set1(0.7978845608028654f)), fma(mul(x, x), set1(0.044715f), set1(1.0f)));
  return mul(mul(x, set1(0.5f)), add(set1(1.0f), tanh(inner)));
}

static inline vf gated(vf gate, vf up, Gate kind) {
  return mul(kind == Gate::SILU ? silu(gate) : gelu(gate), up);
}

static void gate(const float* gate_up, int64_t inner, Gate kind, const Outputs& out, int64_t row) {
  float* to = (float*)out.forms[phloem::FORM_F32].row(row);
  for (int64_t i = 0; i < inner; i += LANES) {
    const int64_t left = inner - i;
    const vf value = gated(load_part(gate_up + i, left), load_part(gate_up + inner + i, left), kind);
    store_part(to + i, value, left);
  }
  Outputs rest = out;
  rest.forms[phloem::FORM_F32].data = nullptr;
  convert(to, inner, rest, row);
}

template <Format F>
static void decode_row(const Matrix& w, int64_t row, float* out) {
  const int64_t in_tile = row % TILE;
  const int part = int(in_tile / LANES), lane = int(in_tile % LANES);
  BlockReader<F> reader(w.tile(row / TILE), part);
  for (int64_t b = 0; b < w.inputs / BLOCK; b++) {
    const Block block = reader.next(b);
    alignas(64) float values[LANES];
    for (int g = 0; g < GROUPS; g++)
      for (int j = 0; j < 4; j++) {
        store(values, weight(block, g, j));
        out[b * BLOCK + 4 * g + j] = values[lane];
      }
  }
}

static inline void plain_row(const Matrix& w, int64_t row, float* out) {
  const uint8_t* tile = w.tile(row / TILE);
  for (int64_t k = 0; k < w.inputs; k++)
    out[k] = w.format == Format::F32
                 ? ((const float*)tile)[k * TILE + row % TILE]
                 : bf16_to_float(((const uint16_t*)tile)[(k / 2 * TILE + row % TILE) * 2 + k % 2]);
}

static void embed(const Matrix& table, int64_t token, float scale, float* out) {
  switch (table.format) {
    case Format::Q4: decode_row<Format::Q4>(table, token, out); break;
    case Format::Q4M: decode_row<Format::Q4M>(table, token, out); break;
    case Format::Q4K: decode_row<Format::Q4K>(table, token, out); break;
    case Format::Q8: decode_row<Format::Q8>(table, token, out); break;
    case Format::Q8M: decode_row<Format::Q8M>(table, token, out); break;
    case Format::Q8K: decode_row<Format::Q8K>(table, token, out); break;
    case Format::Q6K: decode_row<Format::Q6K>(table, token, out); break;
    default: plain_row(table, token, out);
  }
  if (scale != 1.0f)
    for (int64_t k = 0; k < table.inputs; k++) out[k] *= scale;
}

static void softcap(float* x, int64_t n, float cap) {
  for (int64_t i = 0; i < n; i += LANES) {
    const vf value = load_part(x + i, n - i);
    store_part(x + i, mul(tanh(div(value, set1(cap))), set1(cap)), n - i);
  }
}

}  // namespace PHLOEM_ISA
