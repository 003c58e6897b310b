// A step program: a flat list of ops over buffers, recorded once and replayed for every step.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "attention_plan.h"
#include "kernels.h"
#include "pool.h"

namespace phloem {

// One step's rows; see kernels/batch.py. Pointers stay valid while the program runs.
struct Inputs {
  int64_t tokens, requests, rows;  // rows: of logits
  const int64_t* token_ids;
  const int64_t* positions;
  const int64_t* slots;
  const int32_t* query_start;
  const int32_t* kv_len;
  const int32_t* page_table;
  int64_t page_table_width;
  const int64_t* logit_rows;
  float* logits;  // [rows, vocabulary]
  int64_t vocabulary;
};

// A part of a buffer's rows, from a column on (in bytes).
struct Operand {
  int32_t buffer;
  int32_t column;
};

// A value's rows in each of the forms; buffer -1 where it is not kept.
struct Value {
  Operand forms[FORMS];
};

class Program;

struct Step {
  const Inputs& inputs;
  const Kernels& kernels;
  const Program& program;
  int threads;

  Rows rows(Operand operand) const;
  Outputs outputs(const Value& value) const;
  float* floats(Operand operand) const { return reinterpret_cast<float*>(rows(operand).data); }
  Heads heads(Operand operand) const;
  const AttentionPlan& attention(int32_t plan) const;
};

class Op {
 public:
  virtual ~Op() = default;
  virtual const char* name() const = 0;
  virtual int64_t tasks(const Step& step) const = 0;
  virtual void run(const Step& step, int64_t task) const = 0;
};

class Program : private Job {
 public:
  Program(Pool& pool, const Kernels& kernels) : pool_(pool), kernels_(kernels) {}

  // A buffer with a row for each token, or for each row of logits.
  int32_t add_buffer(int64_t row_bytes, bool of_logits);
  int32_t add_attention(int64_t window, int64_t q_heads, const Pages& pages);
  void add(std::unique_ptr<Op> op) { ops_.push_back(std::move(op)); }

  void run(const Inputs& inputs);
  void read(Operand from, int64_t rows, int64_t bytes, uint8_t* out) const;

  int64_t size() const { return int64_t(ops_.size()); }
  const Op& op(int64_t index) const { return *ops_[size_t(index)]; }
  // Seconds that each op has taken since profiling was switched on; empty while it is off.
  std::vector<double> seconds;

 private:
  friend struct Step;
  struct Buffer {
    int64_t row_bytes;
    bool of_logits;
    int64_t capacity = 0;
    std::unique_ptr<uint8_t, void (*)(void*)> data{nullptr, std::free};
  };

  int64_t stages() const override { return size(); }
  int64_t tasks(int64_t stage) const override { return op(stage).tasks(*step_); }
  void run(int64_t stage, int64_t task) override { op(stage).run(*step_, task); }
  void reserve(const Inputs& inputs);
  void run_profiled();

  Pool& pool_;
  const Kernels& kernels_;
  std::vector<Buffer> buffers_;
  std::vector<AttentionPlan> attention_;
  std::vector<std::unique_ptr<Op>> ops_;
  const Step* step_ = nullptr;
};

}  // namespace phloem
