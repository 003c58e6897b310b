// Threads that work off the stages of a job, task by task.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace phloem {

// Stages run one after the other; a stage's tasks run in any order on any thread.
class Job {
 public:
  virtual ~Job() = default;
  virtual int64_t stages() const = 0;
  virtual int64_t tasks(int64_t stage) const = 0;
  virtual void run(int64_t stage, int64_t task) = 0;
};

// A job of one stage: run(task) for each of `count` tasks.
template <class Run>
class Tasks final : public Job {
 public:
  Tasks(int64_t count, Run run) : count_(count), run_(run) {}
  int64_t stages() const override { return 1; }
  int64_t tasks(int64_t) const override { return count_; }
  void run(int64_t, int64_t task) override { run_(task); }

 private:
  int64_t count_;
  Run run_;
};

// Each thread has a share of a stage's tasks, neighbours in memory most often, and takes tasks of
// the others' shares when its own is empty. A stage is over when its tasks are done, not when all
// threads have seen it: a thread that the system took off its core holds up others by the task in
// its hands at most, and finds out by the run's number that it has missed something. Idle threads
// spin for some microseconds, then sleep.
class Pool {
 public:
  static constexpr int64_t MOST_STAGES = 8192;

  // `threads` counts the one that calls `run`.
  explicit Pool(int threads);
  ~Pool();

  int threads() const { return int(workers_.size()) + 1; }

  // Returns when every task was run. Callers from several threads take turns.
  void run(Job& job);
  template <class Run>
  void run(int64_t count, Run each) {
    Tasks<Run> job(count, each);
    run(job);
  }

 private:
  using Count = std::atomic<uint64_t>;  // run number in the upper half, count in the lower

  void stop();
  void serve(int thread);
  uint32_t next_run(uint32_t seen);
  void work(uint32_t run, int thread);
  void take_tasks(int64_t stage, uint32_t run, int share);
  bool wait(int64_t stage, uint32_t run) const;
  int64_t share_end(int64_t tasks, int share) const { return tasks * (share + 1) / shares_; }
  int64_t share_size(int64_t tasks, int share) const {
    return share_end(tasks, share) - share_end(tasks, share - 1);
  }
  Count& left(int64_t stage, int share) { return left_[size_t(stage * shares_ + share)]; }

  std::mutex mutex_;
  int64_t shares_;
  std::unique_ptr<Count[]> left_;     // tasks of each stage and share that nobody took yet
  std::unique_ptr<Count[]> pending_;  // tasks of each stage that are not done
  std::atomic<int64_t> count_{0};
  Job* job_ = nullptr;
  std::atomic<uint32_t> run_{0};
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace phloem
