#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace phloem {

namespace {

constexpr size_t HUGE_PAGE = size_t(2) << 20;
constexpr size_t STRETCH = size_t(64) << 20;  // memory that is not touched costs nothing
constexpr size_t ALIGNMENT = 64;

// mmap aligns to small pages: take a huge page more, and begin at the first whole one.
std::shared_ptr<uint8_t> map(size_t bytes) {
  const size_t length = bytes + HUGE_PAGE;
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, length, MADV_HUGEPAGE);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  auto* aligned = reinterpret_cast<uint8_t*>((address + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
  return {aligned, [memory, length](uint8_t*) { munmap(memory, length); }};
}

}  // namespace

std::shared_ptr<uint8_t> Arena::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (used_ + bytes > size_) {
    size_ = std::max(bytes, STRETCH);
    stretch_ = map(size_);
    used_ = 0;
  }
  std::shared_ptr<uint8_t> part(stretch_, stretch_.get() + used_);
  used_ += bytes;
  return part;
}

}  // namespace phloem
