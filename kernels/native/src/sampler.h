// Masks and draws over the rows of a batch of logits.
#pragma once

#include <cstdint>

#include "kernels.h"
#include "pool.h"

namespace phloem {

// Arrays of `rows` each; see SamplingBatch.
struct SampleBatch {
  int64_t rows, vocabulary;
  float* logits;
  const float *temperature, *top_p, *min_p;
  const int64_t *top_k, *seed, *position;
  int64_t* chosen;  // -1 where a row has nothing to choose from
};

struct MaskBatch {
  int64_t count, words;
  const uint32_t* bits;  // [count, words]
  const int64_t* rows;
  float* logits;
  int64_t vocabulary;
};

void sample(Pool& pool, const Kernels& kernels, const SampleBatch& batch);
void apply_mask(Pool& pool, const Kernels& kernels, const MaskBatch& batch);

}  // namespace phloem
