#include "sampler.h"

#include <vector>

namespace phloem {

void sample(Pool& pool, const Kernels& kernels, const SampleBatch& b) {
  pool.run(b.rows, [&](int64_t row) {
    static thread_local std::vector<float> scratch;
    if (int64_t(scratch.size()) < b.vocabulary) scratch.resize(size_t(b.vocabulary));
    b.chosen[row] = kernels.sample({b.logits + row * b.vocabulary, b.vocabulary, scratch.data(),
                                    b.temperature[row], b.top_p[row], b.min_p[row], b.top_k[row],
                                    b.seed[row], b.position[row]});
  });
}

void apply_mask(Pool& pool, const Kernels& kernels, const MaskBatch& b) {
  pool.run(b.count, [&](int64_t i) {
    kernels.mask(b.logits + b.rows[i] * b.vocabulary, b.vocabulary, b.bits + i * b.words, b.words);
  });
}

}  // namespace phloem
