// How a step's attention is cut into tasks. Made once a step for all layers that look alike.
#pragma once

#include <cstdint>
#include <vector>

namespace phloem {

struct Inputs;

// Rows [first, last) of one request against one KV head and the keys of some chunks.
struct AttentionItem {
  int64_t request, head;
  int64_t first, last;
  int64_t first_chunk, last_chunk;
  int64_t slot;  // of the first row in the partial results, -1 if the item sees all of its chunks
};

// Rows whose keys are shared out among several items; their partial results are merged afterwards.
struct SplitRow {
  int64_t slot = -1;
  int64_t first_chunk = 0, last_chunk = 0;
};

class AttentionPlan {
 public:
  AttentionPlan(int64_t window, int64_t q_heads, int64_t kv_heads, int64_t size)
      : window(window), q_heads(q_heads), kv_heads(kv_heads), size(size) {}

  void make(const Inputs& inputs, int threads);

  int64_t window, q_heads, kv_heads, size;
  std::vector<AttentionItem> items;
  std::vector<SplitRow> rows;
  int64_t split_rows = 0;
  std::vector<float> partial;  // [chunk][split row][q_heads][size + STATE]

 private:
  void add_request(const Inputs& inputs, int64_t request, int64_t share);
  int64_t chunks(int64_t first_position, int64_t last_position) const;
  int64_t first_chunk(int64_t position) const;
};

}  // namespace phloem
