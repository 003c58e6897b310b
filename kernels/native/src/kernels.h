// The table of inner loops that each instruction set fills. Plain pointers and sizes: nothing here
// may instantiate code that the linker could share between instruction sets.
#pragma once

#include <cstdint>

#include "matrix.h"

namespace phloem {

// Forms in which a row of activations is kept; an op writes those that its readers want.
enum Form : int32_t {
  FORM_F32 = 0,
  FORM_BF16 = 1,  // pairs, an odd tail padded with zero
  FORM_I8 = 2,    // int8 codes, then for each 32 of them a float scale, then scale * sum of codes,
                  // then -128 * sum of codes as int32
  FORM_I16 = 3,   // the same, with fine codes after the codes: values are scale * (code + fine / 254)
};
constexpr int FORMS = 4;
constexpr float FINE = 1.0f / 254.0f;  // what the fine codes count: half a code is 127 of it

// Rows of one form; `stride` in bytes.
struct Rows {
  uint8_t* data = nullptr;
  int64_t stride = 0;
  uint8_t* row(int64_t m) const { return data + m * stride; }
};

constexpr int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Bytes of a row of n values in a form.
constexpr int64_t row_bytes(Form form, int64_t n) {
  switch (form) {
    case FORM_BF16: return round_up(n * 2, 64);
    case FORM_I8: return round_up(n, BLOCK) + round_up(n, BLOCK) / BLOCK * 12;
    case FORM_I16: return 2 * round_up(n, BLOCK) + round_up(n, BLOCK) / BLOCK * 12;
    default: return round_up(n * 4, 64);
  }
}

// Where an op leaves a row: any of the forms.
struct Outputs {
  Rows forms[FORMS];
};

enum class Epilogue : int32_t { STORE, ADD };
enum class Gate : int32_t { SILU, GELU };

struct LinearTask {
  const Matrix* matrix;
  const float* bias;  // or null
  Form form;          // of the inputs
  Rows inputs;
  int64_t rows;
  int64_t first_tile, last_tile;
  float* out;  // column 0 of the map's first row
  int64_t out_stride;  // in floats
  Epilogue epilogue;
};

struct GateTask {
  const Matrix* matrix;  // gate rows, then up rows
  const float* bias;
  Form form;
  Rows inputs;
  int64_t rows;
  int64_t inner;          // outputs: half of the matrix's rows
  int64_t first, last;    // blocks of 32 outputs
  Gate gate;
  Outputs out;            // forms F32 and I8 and BF16 are written block by block
};

enum class KV : int32_t { BF16, F32, I8 };

// A layer's pages. Each page holds for each KV head, with sizes rounded up to a multiple of 16 by
// zeros:
//   BF16      K [size / 2][page][2]   V [page / 2][size][2], [size] if a page is one token
//   F32, I8   K [size][page]          V [page][size]
// and then, for I8, the scales of K [page] and of V [page] as floats. So one load of K covers 16
// keys, and pairs of bf16 are what a dot product instruction takes.
struct Pages {
  uint8_t* data;
  KV kind;
  int64_t page;  // tokens
  int64_t heads;
  int64_t size, padded;

  int64_t element() const { return kind == KV::F32 ? 4 : kind == KV::BF16 ? 2 : 1; }
  int64_t side_bytes() const { return page * padded * element(); }
  int64_t head_bytes() const {
    return round_up(2 * side_bytes() + (kind == KV::I8 ? 8 * page : 0), 64);
  }
  int64_t page_bytes() const { return heads * head_bytes(); }
  uint8_t* head(int64_t id, int64_t h) const { return data + id * page_bytes() + h * head_bytes(); }
};

// A view of heads inside rows of floats: head h of row m is at data + m * stride + h * size.
struct Heads {
  float* data = nullptr;
  int64_t stride = 0;
};

struct RopeTask {
  Heads q, k, v;
  Heads out;             // rotated q
  const float* table;    // [positions][2][half]
  int64_t half;
  int64_t q_heads;
  Pages pages;
  const int64_t* positions;
  const int64_t* slots;
  int64_t first, last;  // rows
};

constexpr int64_t MOST_HEAD = 256;    // the largest head
constexpr int64_t MOST_QUERIES = 64;  // query heads that share a KV head
constexpr int64_t CHUNK = 128;  // keys that are summed together, from a fixed place on
constexpr int64_t STATE = 2;    // floats beside a head's output: maximum and sum

struct AttentionRow {
  int64_t row;   // of the step
  int64_t seen;  // keys: its position + 1
  int64_t slot;  // in the partial results, -1 if the row's item sees all of its chunks
};

struct AttentionTask {
  Heads q;
  Pages pages;
  const int32_t* page_table;  // of all rows, as far as the chunks go
  int64_t q_heads;
  int64_t head;               // KV head
  const AttentionRow* rows;
  int64_t count;
  int64_t first_chunk, last_chunk;
  int64_t window;             // 0 for none
  float scale, softcap;       // softcap 0 for none
  Heads out;                  // of rows without a slot
  float* partial;             // [chunk][slot][q_heads][size + STATE], of those with one
  int64_t slots;
};

struct MergeTask {
  const float* partial;  // [chunk][slot][q_heads][size + STATE]
  int64_t slots;
  int64_t slot;
  int64_t first_chunk, last_chunk;
  int64_t q_heads, size;
  float* out;
};

// Sampling of one row: see Ops.sample.
struct SampleTask {
  float* logits;
  int64_t vocabulary;
  float* scratch;  // [vocabulary]
  float temperature, top_p, min_p;
  int64_t top_k;
  int64_t seed, position;
};

struct Kernels {
  const char* name;
  void (*linear)(const LinearTask&);
  void (*gated)(const GateTask&);
  // A row of floats to the forms that are wanted.
  void (*convert)(const float* x, int64_t n, const Outputs& out, int64_t row);
  // Normalise `groups` stretches of n values each.
  void (*norm)(const float* x, int64_t groups, int64_t n, const float* weight, float eps,
               const Outputs& out, int64_t row);
  void (*add)(const float* a, const float* b, float* out, int64_t n);
  void (*gate)(const float* gate_up, int64_t inner, Gate gate, const Outputs& out, int64_t row);
  void (*embed)(const Matrix& table, int64_t token, float scale, float* out);
  void (*softcap)(float* x, int64_t n, float cap);
  void (*rope)(const RopeTask&);
  void (*attention)(const AttentionTask&);
  void (*merge)(const MergeTask&);
  // -inf where bit i % 32 of word i / 32 is 0, and where there is no such word.
  void (*mask)(float* logits, int64_t n, const uint32_t* words, int64_t count);
  // The chosen token, or -1 if no logit is finite (or one is nan).
  int64_t (*sample)(const SampleTask&);
  // Multiply-adds of `blocks` rounds of dot products on registers, whose number is returned.
  int64_t (*peak)(int64_t blocks);
};

// In the order of preference; `supported` asks the processor.
const Kernels* kernels_avx512_bf16();
const Kernels* kernels_avx512();
const Kernels* kernels_avx2();
const Kernels* kernels_portable();

}  // namespace phloem
