#include "program.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <cstdlib>
#include <new>
#include <stdexcept>

namespace phloem {

namespace {

constexpr size_t ALIGNMENT = 64;

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Rows Step::rows(Operand operand) const {
  if (operand.buffer < 0) return {};
  const Program::Buffer& buffer = program.buffers_[size_t(operand.buffer)];
  return {buffer.data.get() + operand.column, buffer.row_bytes};
}

Outputs Step::outputs(const Value& value) const {
  Outputs out;
  for (int form = 0; form < FORMS; form++) out.forms[form] = rows(value.forms[form]);
  return out;
}

Heads Step::heads(Operand operand) const {
  const Rows at = rows(operand);
  return {reinterpret_cast<float*>(at.data), at.stride / 4};
}

const AttentionPlan& Step::attention(int32_t plan) const { return program.attention_[size_t(plan)]; }

int32_t Program::add_buffer(int64_t row_bytes, bool of_logits) {
  buffers_.push_back({row_bytes, of_logits});
  return int32_t(buffers_.size()) - 1;
}

int32_t Program::add_attention(int64_t window, int64_t q_heads, const Pages& pages) {
  const auto same = std::find_if(attention_.begin(), attention_.end(), [&](const AttentionPlan& plan) {
    return plan.is_for(window, q_heads, pages);
  });
  if (same != attention_.end()) return int32_t(same - attention_.begin());
  attention_.emplace_back(window, q_heads, pages);
  return int32_t(attention_.size()) - 1;
}

// Buffers grow by half again, so that a few steps settle their size.
void Program::reserve(const Inputs& inputs) {
  for (Buffer& buffer : buffers_) {
    const int64_t rows = buffer.of_logits ? inputs.rows : inputs.tokens;
    if (rows <= buffer.capacity) continue;
    const int64_t capacity = std::max(rows, buffer.capacity + buffer.capacity / 2);
    const int64_t bytes = round_up(capacity * buffer.row_bytes, ALIGNMENT);
    void* data = std::aligned_alloc(ALIGNMENT, size_t(bytes));
    if (!data) throw std::bad_alloc();
    buffer.data.reset(static_cast<uint8_t*>(data));
    buffer.capacity = capacity;
  }
}

void Program::run(const Inputs& inputs) {
  reserve(inputs);
  for (AttentionPlan& plan : attention_) plan.make(inputs, pool_.threads());
  const Step step{inputs, kernels_, *this, pool_.threads()};
  step_ = &step;
  if (seconds.empty()) {
    pool_.run(*this);
  } else {
    run_profiled();
  }
  step_ = nullptr;
}

void Program::read(Operand from, int64_t rows, int64_t bytes, uint8_t* out) const {
  const Buffer& buffer = buffers_[size_t(from.buffer)];
  for (int64_t m = 0; m < rows; m++)
    std::memcpy(out + m * bytes, buffer.data.get() + m * buffer.row_bytes + from.column, size_t(bytes));
}

// Each op by itself, so that its time can be told.
void Program::run_profiled() {
  for (int64_t i = 0; i < size(); i++) {
    const double start = now();
    pool_.run(tasks(i), [&](int64_t task) { run(i, task); });
    seconds[size_t(i)] += now() - start;
  }
}

}  // namespace phloem
