#include "attention_plan.h"

#include <algorithm>
#include <numeric>

#include "program.h"

namespace phloem {

namespace {

constexpr int64_t ROWS = 32;     // of an item at most
constexpr int64_t SPLIT_UP_TO = 8;  // rows: longer stretches give enough items by themselves

int64_t queries(const Inputs& inputs, int64_t r) {
  return inputs.query_start[r + 1] - inputs.query_start[r];
}

// Requests that begin with the same pages one after the other, so that those stay in the cache.
std::vector<int64_t> by_prefix(const Inputs& inputs) {
  std::vector<int64_t> order(static_cast<size_t>(inputs.requests));
  std::iota(order.begin(), order.end(), 0);
  const auto table = [&](int64_t r) { return inputs.page_table + r * inputs.page_table_width; };
  const int64_t width = std::min<int64_t>(inputs.page_table_width, 8);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::lexicographical_compare(table(a), table(a) + width, table(b), table(b) + width);
  });
  return order;
}

}  // namespace

int64_t AttentionPlan::first_chunk(int64_t position) const {
  return window > 0 && position >= window ? (position - window + 1) / CHUNK : 0;
}

int64_t AttentionPlan::chunks(int64_t first_position, int64_t last_position) const {
  return last_position / CHUNK + 1 - first_chunk(first_position);
}

void AttentionPlan::make(const Inputs& inputs, int threads) {
  items.clear();
  rows.assign(size_t(inputs.tokens), SplitRow{});
  split_rows = 0;
  int64_t work = 0, longest = 0;
  for (int64_t r = 0; r < inputs.requests; r++) {
    const int64_t count = queries(inputs, r), end = inputs.kv_len[r];
    work += count * chunks(end - count, end - 1);
    longest = std::max<int64_t>(longest, end);
  }
  const int64_t share = std::max<int64_t>(1, work * kv_heads / (threads * 8));
  for (int64_t r : by_prefix(inputs)) add_request(inputs, r, share);
  // Items of one head together: its shared pages are read by all of them.
  std::stable_sort(items.begin(), items.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.head < b.head;
  });
  const int64_t needed = (longest + CHUNK - 1) / CHUNK * split_rows * q_heads * (size + STATE);
  if (int64_t(partial.size()) < needed) partial.resize(size_t(needed));
}

void AttentionPlan::add_request(const Inputs& inputs, int64_t r, int64_t share) {
  const int64_t start = inputs.query_start[r], end = inputs.query_start[r + 1];
  const int64_t offset = inputs.kv_len[r] - (end - start) - start;  // row to position
  for (int64_t first = start; first < end; first += ROWS) {
    const int64_t last = std::min(first + ROWS, end), count = last - first;
    const int64_t begin = first_chunk(first + offset), stop = (last - 1 + offset) / CHUNK + 1;
    const int64_t part = std::max<int64_t>(1, share / count);
    const bool split = count <= SPLIT_UP_TO && stop - begin > part;
    if (split)
      for (int64_t m = first; m < last; m++)
        rows[size_t(m)] = {split_rows + m - first, begin, (m + offset) / CHUNK + 1};
    for (int64_t head = 0; head < kv_heads; head++)
      for (int64_t c = begin; c < stop; c += split ? part : stop)
        items.push_back({r, head, first, last, c, split ? std::min(c + part, stop) : stop,
                         split ? split_rows : -1});
    if (split) split_rows += count;
  }
}

}  // namespace phloem
