#include "pool.h"

#include <sched.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace phloem {

namespace {

constexpr int SPINS_BEFORE_SLEEP = 2000;  // some 50 us: the usual gap between two steps' calls
constexpr int SPINS_BEFORE_YIELD = 4000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

constexpr uint64_t tagged(uint32_t run, uint64_t count) { return uint64_t(run) << 32 | count; }
constexpr uint32_t run_of(uint64_t value) { return uint32_t(value >> 32); }
constexpr uint32_t count_of(uint64_t value) { return uint32_t(value); }

}  // namespace

Pool::Pool(int threads) : stages_(new Stage[MOST_STAGES]) {
  for (int i = 1; i < threads; i++) workers_.emplace_back([this] { serve(); });
}

Pool::~Pool() {
  stop_ = true;
  run_.fetch_add(1);
  run_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run(Job& job) {
  const uint32_t run = run_.load(std::memory_order_relaxed) + 1;
  const int64_t stages = job.stages();
  for (int64_t i = 0; i < stages; i++) {
    const uint64_t tasks = uint64_t(job.tasks(i));
    stages_[i].pending.store(tagged(run, tasks), std::memory_order_relaxed);
    stages_[i].left.store(tagged(run, tasks), std::memory_order_relaxed);
  }
  job_ = &job;
  count_.store(stages, std::memory_order_relaxed);
  run_.store(run, std::memory_order_release);
  run_.notify_all();
  work(run);
}

void Pool::serve() {
  uint32_t seen = 0;
  while (true) {
    seen = next_run(seen);
    if (stop_) return;
    work(seen);
  }
}

uint32_t Pool::next_run(uint32_t seen) {
  for (int spin = 0; spin < SPINS_BEFORE_SLEEP; spin++) {
    const uint32_t run = run_.load(std::memory_order_acquire);
    if (run != seen) return run;
    pause();
  }
  run_.wait(seen, std::memory_order_acquire);
  return run_.load(std::memory_order_acquire);
}

void Pool::work(uint32_t run) {
  const int64_t stages = count_.load(std::memory_order_relaxed);
  for (int64_t i = 0; i < stages; i++)
    if (!work_on(i, run)) return;
}

// False if `run` is over. Once a task was taken, the run cannot end before it is done; so whatever
// belongs to the run is read after that.
bool Pool::work_on(int64_t index, uint32_t run) {
  Stage& stage = stages_[index];
  uint64_t left = stage.left.load(std::memory_order_acquire);
  while (run_of(left) == run && count_of(left) > 0) {
    if (!stage.left.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) continue;
    job_->run(index, job_->tasks(index) - count_of(left));
    stage.pending.fetch_sub(1, std::memory_order_acq_rel);
    left = stage.left.load(std::memory_order_acquire);
  }
  for (int spin = 0;; spin++) {
    const uint64_t pending = stage.pending.load(std::memory_order_acquire);
    if (run_of(pending) != run) return false;
    if (count_of(pending) == 0) return true;
    if (spin < SPINS_BEFORE_YIELD) {
      pause();
    } else {
      sched_yield();
    }
  }
}

}  // namespace phloem
