// The C interface that library.py declares. Functions that can fail return null or -1 and leave
// their message in phloem_error().
#include <exception>
#include <string>

#include "arena.h"
#include "isa.h"
#include "measure.h"
#include "ops.h"
#include "pack.h"
#include "sampler.h"

using namespace phloem;

namespace {

thread_local std::string last_error;

struct Engine {
  Engine(const Kernels& kernels, int threads) : kernels(kernels), pool(threads) {}
  const Kernels& kernels;
  Pool pool;
  Arena arena;
};

struct OwnedMatrix {
  OwnedMatrix(Arena& arena, Format format, int64_t rows, int64_t inputs)
      : matrix{format, rows, inputs, tile_bytes(format, inputs), nullptr} {
    tiles = arena.take(bytes());
    matrix.tiles = tiles.get();
  }
  size_t bytes() const { return size_t(matrix.tile_count()) * matrix.tile_bytes; }
  Matrix matrix;
  std::shared_ptr<uint8_t> tiles;
};

template <class Body>
auto guarded(Body body, decltype(body()) failure) {
  try {
    return body();
  } catch (const std::exception& error) {
    last_error = error.what();
    return failure;
  }
}

}  // namespace

#define PHLOEM_API extern "C" __attribute__((visibility("default")))

PHLOEM_API const char* phloem_error() { return last_error.c_str(); }

PHLOEM_API const char* phloem_kernels(const char* name) {
  const Kernels* kernels = find_kernels(name);
  return kernels ? kernels->name : nullptr;
}

PHLOEM_API Engine* phloem_engine_new(const char* kernels, int threads) {
  return guarded([&] { return new Engine(*find_kernels(kernels), threads); }, nullptr);
}
PHLOEM_API void phloem_engine_free(Engine* engine) { delete engine; }

PHLOEM_API double phloem_read_bandwidth(Engine* engine) { return read_bandwidth(engine->pool); }
PHLOEM_API double phloem_int8_peak(Engine* engine) { return int8_peak(engine->pool, engine->kernels); }

PHLOEM_API OwnedMatrix* phloem_matrix_new(Engine* engine, int32_t stored, int64_t rows,
                                           int64_t inputs) {
  return guarded(
      [&] { return new OwnedMatrix(engine->arena, format_of(Stored(stored)), rows, inputs); }, nullptr);
}
PHLOEM_API void phloem_matrix_free(OwnedMatrix* m) { delete m; }
PHLOEM_API int64_t phloem_matrix_bytes(const OwnedMatrix* m) { return int64_t(m->bytes()); }
PHLOEM_API void phloem_matrix_pack(Engine* engine, OwnedMatrix* m, int32_t stored, const uint8_t* data,
                                   int64_t stride, int64_t rows, int64_t first_row) {
  pack(engine->pool, Stored(stored), data, stride, rows, m->matrix, m->tiles.get(), first_row);
}

PHLOEM_API Program* phloem_program_new(Engine* engine) {
  return guarded([&] { return new Program(engine->pool, engine->kernels); }, nullptr);
}
PHLOEM_API void phloem_program_free(Program* program) { delete program; }
PHLOEM_API int32_t phloem_program_buffer(Program* p, int64_t row_bytes, int32_t of_logits) {
  return p->add_buffer(row_bytes, of_logits != 0);
}
PHLOEM_API int64_t phloem_row_bytes(int32_t form, int64_t size) { return row_bytes(Form(form), size); }
PHLOEM_API int64_t phloem_page_bytes(int32_t kind, int64_t page, int64_t heads, int64_t size) {
  return Pages{nullptr, KV(kind), page, heads, size, round_up(size, TILE)}.page_bytes();
}

PHLOEM_API void phloem_add_embedding(Program* p, const OwnedMatrix* table, float scale,
                                     const Operand* out) {
  p->add(std::make_unique<Embed>(table->matrix, scale, *out));
}
PHLOEM_API void phloem_add_norm(Program* p, const Operand* in, int64_t groups, int64_t size,
                                const float* weight, float eps, const Value* out) {
  p->add(std::make_unique<Norm>(*in, groups, size, weight, eps, *out));
}
PHLOEM_API void phloem_add_add(Program* p, const Operand* a, const Operand* b, int64_t size,
                               const Operand* out) {
  p->add(std::make_unique<Add>(*a, *b, size, *out));
}
PHLOEM_API void phloem_add_convert(Program* p, const Operand* in, int64_t size, const Value* out) {
  p->add(std::make_unique<Convert>(*in, size, *out));
}
PHLOEM_API void phloem_add_linear(Program* p, const OwnedMatrix* m, const float* bias, int32_t form,
                                  const Operand* in, const Operand* out, int32_t add) {
  p->add(std::make_unique<Linear>(m->matrix, bias, Form(form), *in, *out,
                                  add ? Epilogue::ADD : Epilogue::STORE));
}
PHLOEM_API void phloem_add_gate(Program* p, const Operand* in, int64_t inner, int32_t gate,
                                const Value* out) {
  p->add(std::make_unique<GateMul>(*in, inner, Gate(gate), *out));
}
PHLOEM_API void phloem_add_gated_linear(Program* p, const OwnedMatrix* m, const float* bias,
                                        int32_t form, const Operand* in, int32_t gate,
                                        const Value* out) {
  p->add(std::make_unique<GatedLinear>(m->matrix, bias, Form(form), *in, Gate(gate), *out));
}
PHLOEM_API void phloem_add_rope(Program* p, const Operand* q, const Operand* k, const Operand* v,
                                const float* table, int64_t half, int64_t q_heads,
                                const Pages* pages, const Operand* out) {
  p->add(std::make_unique<RopeAndCache>(*q, *k, *v, *out, table, half, q_heads, *pages));
}
PHLOEM_API void phloem_add_attention(Program* p, const Operand* q, int64_t q_heads, const Pages* pages,
                                     float scale, int64_t window, float softcap, const Value* out) {
  const int32_t plan = p->add_attention(window, q_heads, *pages);
  p->add(std::make_unique<Attention>(*q, *pages, plan, scale, softcap, out->forms[FORM_F32]));
  p->add(std::make_unique<FinishAttention>(plan, *out));
}
PHLOEM_API void phloem_add_logits(Program* p, const Operand* in, int64_t in_bytes, const OwnedMatrix* m,
                                  const float* bias, int32_t form, const Operand* gathered,
                                  float softcap) {
  p->add(std::make_unique<GatherRows>(*in, *gathered, in_bytes));
  p->add(std::make_unique<Logits>(m->matrix, bias, Form(form), *gathered, softcap));
}

PHLOEM_API int32_t phloem_program_run(Program* p, const Inputs* inputs) {
  return guarded([&] { return p->run(*inputs), 0; }, -1);
}
// Copies the values of a buffer's first rows; for tests.
PHLOEM_API void phloem_program_read(Program* p, const Operand* from, int64_t rows, int64_t bytes,
                                    uint8_t* out) {
  p->read(*from, rows, bytes, out);
}
PHLOEM_API int64_t phloem_program_ops(const Program* p) { return p->size(); }
PHLOEM_API const char* phloem_program_op(const Program* p, int64_t index) { return p->op(index).name(); }
PHLOEM_API void phloem_program_profile(Program* p, int32_t on) {
  p->seconds.assign(on ? size_t(p->size()) : 0, 0.0);
}
PHLOEM_API void phloem_program_seconds(const Program* p, double* out) {
  std::copy(p->seconds.begin(), p->seconds.end(), out);
}

PHLOEM_API void phloem_sample(Engine* engine, const SampleBatch* batch) {
  sample(engine->pool, engine->kernels, *batch);
}
PHLOEM_API void phloem_mask(Engine* engine, const MaskBatch* batch) {
  apply_mask(engine->pool, engine->kernels, *batch);
}
