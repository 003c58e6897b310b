#include "pool.h"

#include <sched.h>

#include <chrono>
#include <stdexcept>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace phloem {

namespace {

// Between two steps' calls lies up to a millisecond; waking a thread that sleeps takes a good part
// of that. So threads stay awake for longer, but give their core to whoever wants it.
constexpr int SPINS_BEFORE_YIELD = 2000;  // some 50 us
constexpr auto AWAKE = std::chrono::milliseconds(2);

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

Pool::Pool(int threads)
    : shares_(threads), left_(new Count[size_t(MOST_STAGES * threads)]()), pending_(new Count[MOST_STAGES]()) {
  try {
    for (int i = 1; i < threads; i++) workers_.emplace_back([this, i] { serve(i); });
  } catch (...) {  // the system has no more threads
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  stop_ = true;
  run_.fetch_add(1);
  run_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::run(Job& job) {
  const std::lock_guard lock(mutex_);
  const uint32_t run = run_.load(std::memory_order_relaxed) + 1;
  const int64_t stages = job.stages();
  if (stages > MOST_STAGES) throw std::length_error("a program has too many ops");
  for (int64_t i = 0; i < stages; i++) {
    const int64_t tasks = job.tasks(i);
    pending_[size_t(i)].store(tagged(run, uint64_t(tasks)), std::memory_order_relaxed);
    for (int share = 0; share < shares_; share++)
      left(i, share).store(tagged(run, uint64_t(share_size(tasks, share))), std::memory_order_relaxed);
  }
  job_ = &job;
  count_.store(stages, std::memory_order_relaxed);
  run_.store(run, std::memory_order_release);
  run_.notify_all();
  work(run, 0);
}

void Pool::serve(int thread) {
  uint32_t seen = 0;
  while (true) {
    seen = next_run(seen);
    if (stop_) return;
    work(seen, thread);
  }
}

uint32_t Pool::next_run(uint32_t seen) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  for (int spin = 0; spin < SPINS_BEFORE_YIELD || clock::now() - start < AWAKE; spin++) {
    const uint32_t run = run_.load(std::memory_order_acquire);
    if (run != seen) return run;
    if (spin < SPINS_BEFORE_YIELD) {
      pause();
    } else {
      sched_yield();
    }
  }
  run_.wait(seen, std::memory_order_acquire);
  return run_.load(std::memory_order_acquire);
}

void Pool::work(uint32_t run, int thread) {
  const int64_t stages = count_.load(std::memory_order_relaxed);
  for (int64_t i = 0; i < stages; i++) {
    for (int offset = 0; offset < shares_; offset++)
      take_tasks(i, run, int((thread + offset) % shares_));
    if (!wait(i, run)) return;
  }
}

// Once a task was taken, the run cannot end before it is done; so what belongs to the run is read
// after that.
void Pool::take_tasks(int64_t stage, uint32_t run, int share) {
  Count& counter = left(stage, share);
  uint64_t count = counter.load(std::memory_order_acquire);
  while (run_of(count) == run && count_of(count) > 0) {
    if (!counter.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) continue;
    job_->run(stage, share_end(job_->tasks(stage), share) - count_of(count));
    pending_[size_t(stage)].fetch_sub(1, std::memory_order_acq_rel);
    count = counter.load(std::memory_order_acquire);
  }
}

// Until the stage is done; false if the run is over.
bool Pool::wait(int64_t stage, uint32_t run) const {
  for (int spin = 0;; spin++) {
    const uint64_t pending = pending_[size_t(stage)].load(std::memory_order_acquire);
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
