#include "attention_plan.h"

#include <algorithm>
#include <numeric>

#include "program.h"

namespace phloem {

namespace {

constexpr int64_t ROWS = 32;        // of an item of one request at most
constexpr int64_t SPLIT_UP_TO = 8;  // rows: longer stretches give enough items by themselves
constexpr int64_t SHARED_CHUNKS = 8;  // with fewer in common, rows gain nothing by going together

int64_t queries(const Inputs& inputs, int64_t r) {
  return inputs.query_start[r + 1] - inputs.query_start[r];
}

const int32_t* table(const Inputs& inputs, int64_t r) {
  return inputs.page_table + r * inputs.page_table_width;
}

// Requests that begin with the same pages one after the other, so that those stay in the cache.
void order_by_prefix(const Inputs& inputs, std::vector<int64_t>& order) {
  order.resize(size_t(inputs.requests));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const int64_t width = inputs.page_table_width;
    return std::lexicographical_compare(table(inputs, a), table(inputs, a) + width,
                                        table(inputs, b), table(inputs, b) + width);
  });
}

// Whole chunks that both see all of, in the same pages.
int64_t common_chunks(const Inputs& inputs, int64_t page, int64_t a, int64_t b) {
  const int64_t keys = std::min(inputs.kv_len[a], inputs.kv_len[b]), pages = keys / page;
  const int32_t* pages_of_a = table(inputs, a);
  const auto [end, _] = std::mismatch(pages_of_a, pages_of_a + pages, table(inputs, b));
  return (end - pages_of_a) * page / CHUNK;
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
  rows.clear();
  splits.assign(size_t(inputs.tokens), SplitRow{});
  slots = 0;
  share_ = work_share(inputs, threads);
  order_by_prefix(inputs, order_);
  for (size_t i = 0; i < order_.size();) {
    const Group group = group_at(inputs, i);
    if (group.chunks) add_shared(inputs, group);
    for (; i < group.last; i++) add_request(inputs, order_[i], group.chunks);
  }
  // Items of one head together: its shared pages are read by all of them.
  std::stable_sort(items.begin(), items.end(), [](const AttentionItem& a, const AttentionItem& b) {
    return a.head < b.head;
  });
  const int64_t longest = slots ? *std::max_element(inputs.kv_len, inputs.kv_len + inputs.requests) : 0;
  const int64_t needed = (longest + CHUNK - 1) / CHUNK * slots * q_heads * (size + STATE);
  if (int64_t(partial.size()) < needed) partial.resize(size_t(needed));
}

int64_t AttentionPlan::work_share(const Inputs& inputs, int threads) const {
  int64_t work = 0;
  for (int64_t r = 0; r < inputs.requests; r++) {
    const int64_t count = queries(inputs, r), end = inputs.kv_len[r];
    work += count * chunks(end - count, end - 1);
  }
  return std::max<int64_t>(1, work * kv_heads / (threads * 8));
}

// The request alone, with no chunks, if none after it shares enough. A request that would halve
// what the others share begins a group of its own.
AttentionPlan::Group AttentionPlan::group_at(const Inputs& inputs, size_t first) const {
  Group group{first, first + 1, 0};
  const auto decodes = [&](size_t i) { return queries(inputs, order_[i]) == 1; };
  if (window > 0 || !decodes(first)) return group;
  for (; group.last < order_.size() && decodes(group.last); group.last++) {
    const int64_t common = common_chunks(inputs, page, order_[first], order_[group.last]);
    if (common < SHARED_CHUNKS || 2 * common < group.chunks) break;
    group.chunks = group.chunks ? std::min(group.chunks, common) : common;
  }
  return group;
}

// All rows of the group against the chunks that they share: keys are loaded once for several rows.
void AttentionPlan::add_shared(const Inputs& inputs, const Group& group) {
  const int64_t first_row = int64_t(rows.size());
  for (size_t i = group.first; i < group.last; i++)
    add_row(inputs, order_[i], inputs.query_start[order_[i]], true);
  add_items(order_[group.first], first_row, 0, group.chunks, true);
}

// The request's rows against all chunks but the first `skipped`, which a group has seen to.
void AttentionPlan::add_request(const Inputs& inputs, int64_t r, int64_t skipped) {
  const int64_t start = inputs.query_start[r], end = inputs.query_start[r + 1];
  const int64_t offset = inputs.kv_len[r] - (end - start) - start;  // row to position
  for (int64_t first = start; first < end; first += ROWS) {
    const int64_t last = std::min(first + ROWS, end), count = last - first;
    const int64_t begin = std::max(first_chunk(first + offset), skipped);
    const int64_t stop = (last - 1 + offset) / CHUNK + 1;
    const bool split = skipped || (count <= SPLIT_UP_TO && (stop - begin) * count > share_);
    const int64_t first_row = int64_t(rows.size());
    for (int64_t m = first; m < last; m++) add_row(inputs, r, m, split);
    add_items(r, first_row, begin, stop, split);
  }
}

// A row for the next items; with `split`, one whose results are merged.
void AttentionPlan::add_row(const Inputs& inputs, int64_t r, int64_t row, bool split) {
  const int64_t position = inputs.kv_len[r] - inputs.query_start[r + 1] + row;
  SplitRow& merged = splits[size_t(row)];
  if (split && merged.slot < 0) merged = {slots++, first_chunk(position), position / CHUNK + 1};
  rows.push_back({row, position + 1, merged.slot});
}

// The rows from `first_row` on against each head; with `split`, chunks are cut into parts.
void AttentionPlan::add_items(int64_t r, int64_t first_row, int64_t begin, int64_t end, bool split) {
  const int64_t last_row = int64_t(rows.size());
  const int64_t part = split ? std::max<int64_t>(1, share_ / (last_row - first_row)) : end - begin;
  for (int64_t head = 0; head < kv_heads; head++)
    for (int64_t c = begin; c < end; c += part)
      items.push_back({r, head, first_row, last_row, c, std::min(c + part, end)});
}

}  // namespace phloem
