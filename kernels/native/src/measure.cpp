#include "measure.h"

#include <algorithm>
#include <chrono>
#include <vector>

namespace phloem {

namespace {

constexpr int ROUNDS = 5;  // the best counts: others may use the machine too

template <class Run>
double best_seconds(Pool& pool, int64_t tasks, Run body) {
  using clock = std::chrono::steady_clock;
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    const auto start = clock::now();
    pool.run(tasks, body);
    best = std::min(best, std::chrono::duration<double>(clock::now() - start).count());
  }
  return best;
}

}  // namespace

double read_bandwidth(Pool& pool) {
  constexpr int64_t WORDS = int64_t(1) << 25, PART = WORDS / 64;  // 256 MB in 64 parts
  const std::vector<uint64_t> buffer(size_t(WORDS), 1);
  std::vector<uint64_t> sums(64);
  const double seconds = best_seconds(pool, 64, [&](int64_t task) {
    uint64_t sum = 0;
    for (int64_t i = task * PART; i < (task + 1) * PART; i++) sum += buffer[size_t(i)];
    sums[size_t(task)] = sum;
  });
  return double(WORDS) * 8 / seconds;
}

double int8_peak(Pool& pool, const Kernels& kernels) {
  constexpr int64_t BLOCKS = 2000000;
  std::vector<int64_t> done(size_t(pool.threads()));
  const double seconds = best_seconds(
      pool, pool.threads(), [&](int64_t task) { done[size_t(task)] = kernels.peak(BLOCKS); });
  int64_t products = 0;
  for (int64_t each : done) products += each;
  return double(products) / seconds;
}

}  // namespace phloem
