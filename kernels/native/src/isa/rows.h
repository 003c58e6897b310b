// Ops on single rows: norms, gated activations, embeddings, and the forms that rows are kept in.
#pragma once

#include "../kernels.h"
#include "blocks.h"

namespace PHLOEM_ISA {

using phloem::Gate;
using phloem::Matrix;
using phloem::Outputs;

// Where a block of 32 values goes as codes; see Form. `fine`, if it is not null, takes what the
// codes leave of the values, in 254ths.
struct CodedBlock {
  int8_t *codes, *fine;
  float *scale, *sum;
  int32_t* offset;
};

constexpr float LEAST = 1e-36f;  // what is smaller has no finite inverse, and becomes zero
constexpr float MOST = 3.4e38f;

// What a row with a nan or an infinity is multiplied with becomes nan, and is found out there.
static inline void encode_nan(const CodedBlock& to) {
  std::memset(to.codes, 0, BLOCK);
  if (to.fine) std::memset(to.fine, 0, BLOCK);
  *to.scale = *to.sum = __builtin_nanf("");
  *to.offset = 0;
}

static inline void encode_block(const float* x, const CodedBlock& to) {
  vf most = zero();
  bool has_nan = false;
  for (int i = 0; i < BLOCK; i += LANES) {
    has_nan |= any_nan(load(x + i));
    most = max(most, abs(load(x + i)));
  }
  const float largest = reduce_max(most);
  if (has_nan || !(largest <= MOST)) return encode_nan(to);
  const vf inverse = set1(largest >= LEAST ? 127.0f / largest : 0.0f);
  vf total = zero(), fine_total = zero();
  for (int i = 0; i < BLOCK; i += LANES) {
    const vf exact = mul(load(x + i), inverse);
    const vi code = to_int(exact);
    store_i8(to.codes + i, code);
    total = add(total, to_float(code));
    if (!to.fine) continue;
    const vi rest = to_int(mul(sub(exact, to_float(code)), set1(1.0f / phloem::FINE)));
    store_i8(to.fine + i, rest);
    fine_total = add(fine_total, to_float(rest));
  }
  const float sum = reduce_add(total);
  *to.scale = largest * (1.0f / 127.0f);
  *to.offset = -128 * int32_t(sum);
  *to.sum = *to.scale * (to.fine ? sum + reduce_add(fine_total) * phloem::FINE : sum);
}

static inline void to_bf16(const float* x, int64_t n, uint16_t* out) {
  int64_t i = 0;
#if defined(PHLOEM_BF16)
  for (; i + LANES <= n; i += LANES)
    _mm256_storeu_si256((__m256i*)(out + i), (__m256i)_mm512_cvtneps_pbh(load(x + i)));
#endif
  for (; i < n; i++) out[i] = float_to_bf16(x[i]);
  if (n % 2) out[n] = 0;
}

// Values [first, first + count) of a row of n, in all the forms that are wanted. Rows come in
// blocks of 32; only the last one of a row that is not kept as int8 may be shorter.
static inline void write_block(const float* x, int64_t first, int64_t count, int64_t n,
                               const Outputs& out, int64_t row) {
  if (out.forms[phloem::FORM_F32].data) {
    float* to = (float*)out.forms[phloem::FORM_F32].row(row) + first;
    if (to != x) std::memcpy(to, x, size_t(count) * 4);
  }
  if (out.forms[phloem::FORM_BF16].data)
    to_bf16(x, count, (uint16_t*)out.forms[phloem::FORM_BF16].row(row) + first);
  for (const phloem::Form form : {phloem::FORM_I8, phloem::FORM_I16}) {
    if (!out.forms[form].data) continue;
    const bool fine = form == phloem::FORM_I16;
    int8_t* codes = (int8_t*)out.forms[form].row(row);
    float* scales = (float*)(codes + (fine ? 2 * n : n)) + first / BLOCK;
    const int64_t blocks = n / BLOCK;
    encode_block(x, {codes + first, fine ? codes + n + first : nullptr, scales, scales + blocks,
                     (int32_t*)(scales + 2 * blocks)});
  }
}

// Calls make(values, first, count) for each block of 32 of a row of n, and writes what it made.
template <class Make>
static inline PHLOEM_INLINE void write_row(int64_t n, const Outputs& out, int64_t row, Make make) {
  alignas(64) float values[BLOCK];
  for (int64_t first = 0; first < n; first += BLOCK) {
    const int64_t count = n - first < BLOCK ? n - first : BLOCK;
    make(values, first, count);
    write_block(values, first, count, n, out, row);
  }
}

static void convert(const float* x, int64_t n, const Outputs& out, int64_t row) {
  for (int64_t first = 0; first < n; first += BLOCK)
    write_block(x + first, first, n - first < BLOCK ? n - first : BLOCK, n, out, row);
}

static inline float sum_of_squares(const float* x, int64_t n) {
  vf sum = zero();
  for (int64_t i = 0; i < n; i += LANES) {
    const vf value = load_part(x + i, n - i);
    sum = fma(value, value, sum);
  }
  return reduce_add(sum);
}

static inline float norm_factor(const float* x, int64_t n, float eps) {
  return 1.0f / std::sqrt(sum_of_squares(x, n) / float(n) + eps);
}

static inline void normalise(const float* x, const float* weight, int64_t n, float factor, float* out) {
  for (int64_t i = 0; i < n; i += LANES) {
    const int64_t left = n - i;
    store_part(out + i, mul(mul(load_part(x + i, left), set1(factor)), load_part(weight + i, left)), left);
  }
}

static void norm(const float* x, int64_t groups, int64_t n, const float* weight, float eps,
                 const Outputs& out, int64_t row) {
  if (groups == 1) {
    const float factor = norm_factor(x, n, eps);
    write_row(n, out, row, [=](float* values, int64_t first, int64_t count) {
      normalise(x + first, weight + first, count, factor, values);
    });
    return;
  }
  float* to = (float*)out.forms[phloem::FORM_F32].row(row);  // heads are only read as floats
  for (int64_t g = 0; g < groups; g++)
    normalise(x + g * n, weight, n, norm_factor(x + g * n, n, eps), to + g * n);
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
  write_row(inner, out, row, [=](float* values, int64_t first, int64_t count) {
    const float *gates = gate_up + first, *ups = gate_up + inner + first;
    for (int64_t i = 0; i < count; i += LANES) {
      const int64_t left = count - i;
      store_part(values + i, gated(load_part(gates + i, left), load_part(ups + i, left), kind), left);
    }
  });
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
    case Format::W8: decode_row<Format::W8>(table, token, out); break;
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
