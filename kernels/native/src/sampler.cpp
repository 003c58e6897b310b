#include "sampler.h"

#include <vector>

namespace phloem {

namespace {

struct SampleJob : Job {
  SampleJob(const Kernels& kernels, const SampleBatch& batch) : kernels(kernels), b(batch) {}
  int64_t stages() const override { return 1; }
  int64_t tasks(int64_t) const override { return b.rows; }
  void run(int64_t, int64_t row) override {
    static thread_local std::vector<float> scratch;
    if (int64_t(scratch.size()) < b.vocabulary) scratch.resize(size_t(b.vocabulary));
    b.chosen[row] = kernels.sample({b.logits + row * b.vocabulary, b.vocabulary, scratch.data(),
                                    b.temperature[row], b.top_p[row], b.min_p[row], b.top_k[row],
                                    b.seed[row], b.position[row]});
  }
  const Kernels& kernels;
  const SampleBatch& b;
};

struct MaskJob : Job {
  MaskJob(const Kernels& kernels, const MaskBatch& batch) : kernels(kernels), b(batch) {}
  int64_t stages() const override { return 1; }
  int64_t tasks(int64_t) const override { return b.count; }
  void run(int64_t, int64_t i) override {
    kernels.mask(b.logits + b.rows[i] * b.vocabulary, b.vocabulary, b.bits + i * b.words, b.words);
  }
  const Kernels& kernels;
  const MaskBatch& b;
};

}  // namespace

void sample(Pool& pool, const Kernels& kernels, const SampleBatch& batch) {
  SampleJob job(kernels, batch);
  pool.run(job);
}

void apply_mask(Pool& pool, const Kernels& kernels, const MaskBatch& batch) {
  MaskJob job(kernels, batch);
  pool.run(job);
}

}  // namespace phloem
