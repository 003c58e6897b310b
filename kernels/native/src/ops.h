// The ops of a step program: each knows its operands and how its work is cut into tasks.
#pragma once

#include <algorithm>
#include <cstring>

#include "program.h"

namespace phloem {

constexpr int64_t TASKS_PER_THREAD = 4;  // enough for threads to share work evenly
constexpr int64_t FEWEST_ROWS = 48;      // of a task of a linear map that is cut along its rows

struct Range {
  int64_t first, last;
};

// Part `index` of `count` equal parts of n.
inline Range part_of(int64_t n, int64_t count, int64_t index) {
  return {n * index / count, n * (index + 1) / count};
}

// Rows are shared out evenly; each is a unit of work.
class RowOp : public Op {
 public:
  explicit RowOp(bool of_logits = false) : of_logits_(of_logits) {}

  int64_t tasks(const Step& step) const final {
    return std::min(count(step), step.threads * TASKS_PER_THREAD);
  }
  void run(const Step& step, int64_t task) const final {
    const Range rows = part_of(count(step), tasks(step), task);
    run_rows(step, rows);
  }

 protected:
  virtual void run_rows(const Step& step, Range rows) const = 0;
  int64_t count(const Step& step) const { return of_logits_ ? step.inputs.rows : step.inputs.tokens; }

 private:
  bool of_logits_;
};

class Embed final : public RowOp {
 public:
  Embed(const Matrix& table, float scale, Operand out) : table_(table), scale_(scale), out_(out) {}
  const char* name() const override { return "embedding"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows out = step.rows(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      step.kernels.embed(table_, step.inputs.token_ids[m], scale_, reinterpret_cast<float*>(out.row(m)));
  }
  const Matrix& table_;
  float scale_;
  Operand out_;
};

class Norm final : public RowOp {
 public:
  Norm(Operand in, int64_t groups, int64_t size, const float* weight, float eps, const Value& out)
      : in_(in), groups_(groups), size_(size), weight_(weight), eps_(eps), out_(out) {}
  const char* name() const override { return "norm"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows in = step.rows(in_);
    const Outputs out = step.outputs(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      step.kernels.norm(reinterpret_cast<const float*>(in.row(m)), groups_, size_, weight_, eps_, out, m);
  }
  Operand in_;
  int64_t groups_, size_;
  const float* weight_;
  float eps_;
  Value out_;
};

class Add final : public RowOp {
 public:
  Add(Operand a, Operand b, int64_t size, Operand out) : a_(a), b_(b), size_(size), out_(out) {}
  const char* name() const override { return "add"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows a = step.rows(a_), b = step.rows(b_), out = step.rows(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      step.kernels.add(reinterpret_cast<const float*>(a.row(m)), reinterpret_cast<const float*>(b.row(m)),
                       reinterpret_cast<float*>(out.row(m)), size_);
  }
  Operand a_, b_;
  int64_t size_;
  Operand out_;
};

// Brings floats to other forms.
class Convert final : public RowOp {
 public:
  Convert(Operand in, int64_t size, const Value& out) : in_(in), size_(size), out_(out) {}
  const char* name() const override { return "convert"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows in = step.rows(in_);
    const Outputs out = step.outputs(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      step.kernels.convert(reinterpret_cast<const float*>(in.row(m)), size_, out, m);
  }
  Operand in_;
  int64_t size_;
  Value out_;
};

class GateMul final : public RowOp {
 public:
  GateMul(Operand in, int64_t inner, Gate gate, const Value& out)
      : in_(in), inner_(inner), gate_(gate), out_(out) {}
  const char* name() const override { return "gate"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows in = step.rows(in_);
    const Outputs out = step.outputs(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      step.kernels.gate(reinterpret_cast<const float*>(in.row(m)), inner_, gate_, out, m);
  }
  Operand in_;
  int64_t inner_;
  Gate gate_;
  Value out_;
};

// Tiles of outputs are shared out, and stretches of rows too where tiles are few.
class TiledOp : public Op {
 public:
  TiledOp(int64_t units, bool of_logits) : units_(units), of_logits_(of_logits) {}

  int64_t tasks(const Step& step) const final { return unit_parts(step) * row_parts(step); }
  void run(const Step& step, int64_t task) const final {
    const int64_t parts = unit_parts(step);
    run_tile(step, part_of(units_, parts, task % parts),
             part_of(count(step), row_parts(step), task / parts));
  }

 protected:
  virtual void run_tile(const Step& step, Range units, Range rows) const = 0;

 private:
  int64_t count(const Step& step) const { return of_logits_ ? step.inputs.rows : step.inputs.tokens; }
  int64_t unit_parts(const Step& step) const {
    return count(step) ? std::min(units_, step.threads * TASKS_PER_THREAD) : 0;
  }
  int64_t row_parts(const Step& step) const {
    const int64_t wanted = step.threads * TASKS_PER_THREAD / std::max<int64_t>(unit_parts(step), 1);
    return std::clamp<int64_t>(count(step) / FEWEST_ROWS, 1, std::max<int64_t>(wanted, 1));
  }
  int64_t units_;
  bool of_logits_;
};

class Linear final : public TiledOp {
 public:
  Linear(const Matrix& matrix, const float* bias, Form form, Operand in, Operand out, Epilogue epilogue)
      : TiledOp(matrix.tile_count(), false),
        matrix_(matrix), bias_(bias), form_(form), in_(in), out_(out), epilogue_(epilogue) {}
  const char* name() const override { return "linear"; }

 private:
  void run_tile(const Step& step, Range tiles, Range rows) const override {
    Rows in = step.rows(in_);
    const Rows out = step.rows(out_);
    step.kernels.linear({&matrix_, bias_, form_, {in.row(rows.first), in.stride}, rows.last - rows.first,
                         tiles.first, tiles.last, reinterpret_cast<float*>(out.row(rows.first)),
                         out.stride / 4, epilogue_});
  }
  const Matrix& matrix_;
  const float* bias_;
  Form form_;
  Operand in_, out_;
  Epilogue epilogue_;
};

class GatedLinear final : public TiledOp {
 public:
  GatedLinear(const Matrix& matrix, const float* bias, Form form, Operand in, Gate gate, const Value& out)
      : TiledOp(matrix.rows / 2 / BLOCK, false),
        matrix_(matrix), bias_(bias), form_(form), in_(in), gate_(gate), out_(out) {}
  const char* name() const override { return "gated linear"; }

 private:
  void run_tile(const Step& step, Range blocks, Range rows) const override {
    const Rows in = step.rows(in_);
    Outputs out = step.outputs(out_);
    for (Rows& form : out.forms)
      if (form.data) form.data = form.row(rows.first);
    step.kernels.gated({&matrix_, bias_, form_, {in.row(rows.first), in.stride}, rows.last - rows.first,
                        matrix_.rows / 2, blocks.first, blocks.last, gate_, out});
  }
  const Matrix& matrix_;
  const float* bias_;
  Form form_;
  Operand in_;
  Gate gate_;
  Value out_;
};


class RopeAndCache final : public RowOp {
 public:
  RopeAndCache(Operand q, Operand k, Operand v, Operand out, const float* table, int64_t half,
               int64_t q_heads, const Pages& pages)
      : q_(q), k_(k), v_(v), out_(out), table_(table), half_(half), q_heads_(q_heads), pages_(pages) {}
  const char* name() const override { return "rope and cache"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    step.kernels.rope({step.heads(q_), step.heads(k_), step.heads(v_), step.heads(out_), table_, half_,
                       q_heads_, pages_, step.inputs.positions, step.inputs.slots, rows.first, rows.last});
  }
  Operand q_, k_, v_, out_;
  const float* table_;
  int64_t half_, q_heads_;
  Pages pages_;
};

class Attention final : public Op {
 public:
  Attention(Operand q, const Pages& pages, int32_t plan, float scale, float softcap, Operand out)
      : q_(q), pages_(pages), plan_(plan), scale_(scale), softcap_(softcap), out_(out) {}
  const char* name() const override { return "attention"; }
  int64_t tasks(const Step& step) const override { return int64_t(step.attention(plan_).items.size()); }

  void run(const Step& step, int64_t task) const override {
    const AttentionPlan& plan = step.attention(plan_);
    const AttentionItem& item = plan.items[size_t(task)];
    const Inputs& in = step.inputs;
    step.kernels.attention({step.heads(q_), pages_, in.page_table + item.request * in.page_table_width,
                            plan.q_heads, item.head, plan.rows.data() + item.first_row,
                            item.last_row - item.first_row, item.first_chunk, item.last_chunk,
                            plan.window, scale_, softcap_, step.heads(out_),
                            const_cast<float*>(plan.partial.data()), plan.slots});
  }

 private:
  Operand q_;
  Pages pages_;
  int32_t plan_;
  float scale_, softcap_;
  Operand out_;
};

// Merges the rows whose keys were shared out, and brings all rows to the forms that are wanted.
class FinishAttention final : public RowOp {
 public:
  FinishAttention(int32_t plan, const Value& out) : plan_(plan), out_(out) {}
  const char* name() const override { return "finish attention"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const AttentionPlan& plan = step.attention(plan_);
    const Outputs out = step.outputs(out_);
    for (int64_t m = rows.first; m < rows.last; m++) {
      float* row = reinterpret_cast<float*>(out.forms[FORM_F32].row(m));
      const SplitRow& split = plan.splits[size_t(m)];
      if (split.slot >= 0)
        step.kernels.merge({plan.partial.data(), plan.slots, split.slot, split.first_chunk,
                            split.last_chunk, plan.q_heads, plan.size, row});
      step.kernels.convert(row, plan.q_heads * plan.size, out, m);
    }
  }
  int32_t plan_;
  Value out_;
};

// The rows of which logits are wanted, side by side.
class GatherRows final : public RowOp {
 public:
  GatherRows(Operand in, Operand out, int64_t bytes) : RowOp(true), in_(in), out_(out), bytes_(bytes) {}
  const char* name() const override { return "gather rows"; }

 private:
  void run_rows(const Step& step, Range rows) const override {
    const Rows in = step.rows(in_), out = step.rows(out_);
    for (int64_t m = rows.first; m < rows.last; m++)
      std::memcpy(out.row(m), in.row(step.inputs.logit_rows[m]), size_t(bytes_));
  }
  Operand in_, out_;
  int64_t bytes_;
};

class Logits final : public TiledOp {
 public:
  Logits(const Matrix& matrix, const float* bias, Form form, Operand in, float softcap)
      : TiledOp(matrix.tile_count(), true),
        matrix_(matrix), bias_(bias), form_(form), in_(in), softcap_(softcap) {}
  const char* name() const override { return "logits"; }

 private:
  void run_tile(const Step& step, Range tiles, Range rows) const override {
    const Rows in = step.rows(in_);
    const int64_t width = step.inputs.vocabulary;
    float* out = step.inputs.logits + rows.first * width;
    step.kernels.linear({&matrix_, bias_, form_, {in.row(rows.first), in.stride}, rows.last - rows.first,
                         tiles.first, tiles.last, out, width, Epilogue::STORE});
    if (softcap_ <= 0) return;
    const int64_t first = tiles.first * TILE, last = std::min(tiles.last * TILE, matrix_.rows);
    for (int64_t m = 0; m < rows.last - rows.first; m++)
      step.kernels.softcap(out + m * width + first, last - first, softcap_);
  }
  const Matrix& matrix_;
  const float* bias_;
  Form form_;
  Operand in_;
  float softcap_;
};

}  // namespace phloem
