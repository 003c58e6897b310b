// How a step's attention is cut into tasks. Made once a step for all layers that look alike.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.h"

namespace phloem {

struct Inputs;

// Rows [first_row, last_row) of the plan against one KV head and the keys of some chunks, which lie
// in the pages of `request` for all of them.
struct AttentionItem {
  int64_t request, head;
  int64_t first_row, last_row;
  int64_t first_chunk, last_chunk;
};

// Where the partial results of a row are whose keys are shared out among several items; they are
// merged afterwards.
struct SplitRow {
  int64_t slot = -1;
  int64_t first_chunk = 0, last_chunk = 0;
};

class AttentionPlan {
 public:
  AttentionPlan(int64_t window, int64_t q_heads, const Pages& pages)
      : window(window), q_heads(q_heads), kv_heads(pages.heads), size(pages.size), page(pages.page) {}

  bool is_for(int64_t window, int64_t q_heads, const Pages& pages) const {
    return this->window == window && this->q_heads == q_heads && kv_heads == pages.heads &&
           size == pages.size && page == pages.page;
  }

  void make(const Inputs& inputs, int threads);

  int64_t window, q_heads, kv_heads, size, page;
  std::vector<AttentionItem> items;
  std::vector<AttentionRow> rows;   // of the items; those of a request that decodes may be in several
  std::vector<SplitRow> splits;     // of each row of the step
  int64_t slots = 0;
  std::vector<float> partial;  // [chunk][slot][q_heads][size + STATE]

 private:
  // Requests [first, last) of `order`, each with one row, that begin with the same `chunks`.
  struct Group {
    size_t first, last;
    int64_t chunks;
  };

  int64_t work_share(const Inputs& inputs, int threads) const;
  Group group_at(const Inputs& inputs, size_t first) const;
  void add_shared(const Inputs& inputs, const Group& group);
  void add_request(const Inputs& inputs, int64_t request, int64_t skipped);
  void add_items(int64_t request, int64_t first_row, int64_t first_chunk, int64_t last_chunk, bool split);
  void add_row(const Inputs& inputs, int64_t request, int64_t row, bool split);
  int64_t chunks(int64_t first_position, int64_t last_position) const;
  int64_t first_chunk(int64_t position) const;

  std::vector<int64_t> order_;  // of the requests
  int64_t share_ = 1;           // chunks times rows that an item should have at most
};

}  // namespace phloem
