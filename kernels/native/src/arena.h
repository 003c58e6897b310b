// Memory for weights: many matrices share large stretches, so that huge pages can hold them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace phloem {

// Memory that starts out as zeros. It is given back when the last matrix in its stretch is gone.
class Arena {
 public:
  std::shared_ptr<uint8_t> take(size_t bytes);

 private:
  std::mutex mutex_;
  std::shared_ptr<uint8_t> stretch_;
  size_t used_ = 0, size_ = 0;
};

}  // namespace phloem
