// Choosing a token of one row: see Ops.sample, whose reference this follows step by step.
#pragma once

#include "../kernels.h"
#include "simd.h"

namespace PHLOEM_ISA {

using phloem::SampleTask;

static void mask(float* logits, int64_t n, const uint32_t* words, int64_t count) {
  for (int64_t i = 0; i < n; i += 32) {
    const uint32_t allowed = i / 32 < count ? words[i / 32] : 0;
    if (allowed == 0xffffffffu) continue;
    const int64_t end = n - i < 32 ? n - i : 32;
    for (int64_t j = 0; j < end; j++) logits[i + j] = allowed >> j & 1 ? logits[i + j] : -INFINITY;
  }
}

// The place of the largest value, the first among equals; -1 if it is not finite or one is nan.
static int64_t argmax(const float* x, int64_t n) {
  vf most = set1(-INFINITY);
  bool nan = false;
  const int64_t whole = n / LANES * LANES;
  for (int64_t i = 0; i < whole; i += LANES) {
    const vf value = load(x + i);
    most = max(most, value);
    nan |= any_nan(value);
  }
  float largest = reduce_max(most);
  for (int64_t i = whole; i < n; i++) {
    largest = x[i] > largest ? x[i] : largest;
    nan |= x[i] != x[i];
  }
  if (nan || !std::isfinite(largest)) return -1;
  int64_t found = 0;
  while (found < whole && !any_equal(load(x + found), set1(largest))) found += LANES;
  while (x[found] != largest) found++;
  return found;
}

// SplitMix64 (Steele, Lea and Flood, 2014): number `position` of the stream that `seed` selects.
static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}
static double uniform(int64_t seed, int64_t position) {
  constexpr uint64_t GAMMA = 0x9E3779B97F4A7C15ull;
  const uint64_t start = mix(uint64_t(seed) + GAMMA);
  return double(mix(start + (uint64_t(position) + 1) * GAMMA) >> 11) * 0x1p-53;
}

// weights = e^((logit - largest) / temperature), the largest being 1.
static void weigh_tokens(const float* logits, int64_t n, float largest, float temperature, float* weights) {
  const vf shift = set1(largest), divisor = set1(temperature);
  for (int64_t i = 0; i < n; i += LANES) {
    const int64_t left = n - i;
    store_part(weights + i, exp(div(sub(load_part(logits + i, left), shift), divisor)), left);
  }
}

// Where the largest weights end.
struct Cut {
  uint32_t bits;  // weights above are kept, those below not
  int64_t equal;  // of the weights with these bits, the first so many are kept
};

static uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

struct Histogram {
  int64_t count[2048];
  double sum[2048];
};

// The cut below the largest weights: `most` of them, or the fewest that sum to `target` if those
// are fewer. Weights lie in [0, 1], where floats are ordered as their bits are; so the cut is found
// from the top bits down, by three histograms over what agrees with the bits found so far.
static Cut find_cut(const float* weights, int64_t n, int64_t most, double target, Histogram& h) {
  constexpr int SHIFTS[3] = {21, 10, 0}, WIDTHS[3] = {11, 11, 10};
  uint32_t prefix = 0, mask = 0;
  int64_t count = 0;
  double sum = 0;
  for (int level = 0; level < 3; level++) {
    const int64_t bins = int64_t(1) << WIDTHS[level];
    std::memset(h.count, 0, sizeof h.count);
    std::memset(h.sum, 0, sizeof h.sum);
    for (int64_t i = 0; i < n; i++) {
      const uint32_t bits = bits_of(weights[i]);
      if ((bits & mask) != prefix) continue;
      const uint32_t bin = bits >> SHIFTS[level] & uint32_t(bins - 1);
      h.count[bin]++;
      h.sum[bin] += weights[i];
    }
    int64_t bin = bins - 1;
    while (bin > 0 && count + h.count[bin] < most && sum + h.sum[bin] < target) {
      count += h.count[bin];
      sum += h.sum[bin];
      bin--;
    }
    prefix |= uint32_t(bin) << SHIFTS[level];
    mask |= uint32_t(bins - 1) << SHIFTS[level];
  }
  float least;
  std::memcpy(&least, &prefix, 4);
  int64_t equal = 0;
  do {
    equal++;
    sum += least;
  } while (count + equal < most && sum < target && least > 0);
  return {prefix, equal};
}

static void apply_cut(float* weights, int64_t n, const Cut& cut) {
  int64_t equal = cut.equal;
  for (int64_t i = 0; i < n; i++) {
    const uint32_t bits = bits_of(weights[i]);
    if (bits < cut.bits || (bits == cut.bits && equal-- <= 0)) weights[i] = 0;
  }
}

static double sum_of(const float* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

static int64_t invert(const float* weights, int64_t n, double point) {
  const double whole = sum_of(weights, n);
  const double target = std::fmin(point * whole, std::nextafter(whole, 0.0));
  double sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += weights[i];
    if (sum > target) return i;
    if (weights[i] > 0) last = i;
  }
  return last;
}

static int64_t sample(const SampleTask& task) {
  const int64_t n = task.vocabulary;
  const int64_t best = argmax(task.logits, n);
  if (best < 0 || task.temperature <= 0) return best;
  float* weights = task.scratch;
  static thread_local Histogram thread_histogram;
  Histogram& histogram = opaque(thread_histogram);
  weigh_tokens(task.logits, n, task.logits[best], task.temperature, weights);
  if (task.top_k < n) apply_cut(weights, n, find_cut(weights, n, task.top_k, INFINITY, histogram));
  if (task.top_p < 1) {
    // Above zero, for a top_p that underflows: the largest weight, 1, is kept in any case.
    const double target = std::fmax(double(task.top_p) * sum_of(weights, n), 1e-300);
    apply_cut(weights, n, find_cut(weights, n, n, target, histogram));
  }
  if (task.min_p > 0)  // the largest weight is 1
    for (int64_t i = 0; i < n; i++) weights[i] = weights[i] < task.min_p ? 0 : weights[i];
  return invert(weights, n, uniform(task.seed, task.position));
}

}  // namespace PHLOEM_ISA
