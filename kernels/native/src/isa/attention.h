// Attention over pages, in chunks of CHUNK keys that begin at fixed positions.
//
// A chunk's maximum, sum and weighted values are computed by themselves and merged in the order of
// the chunks. So a query's result has the same bits whoever computes its chunks, next to whatever
// other queries: keys that a query does not see have weight zero, which adds nothing.
#pragma once

#include "../kernels.h"
#include "rows.h"
#include "simd.h"

namespace PHLOEM_ISA {

using phloem::AttentionRow;
using phloem::AttentionTask;
using phloem::CHUNK;
using phloem::Heads;
using phloem::KV;
using phloem::MergeTask;
using phloem::MOST_HEAD;
using phloem::MOST_QUERIES;
using phloem::Pages;
using phloem::STATE;

constexpr int64_t KEYS = 16;  // of a block: one vector of scores
constexpr int KEY_PARTS = KEYS / LANES;
constexpr int QUERY_GROUP = 4;

// How each kind of page is read. A step of K is what one load covers: a pair of dimensions, or one;
// a step of V is a pair of keys, or one.
template <KV K>
struct Reader;

template <>
struct Reader<KV::BF16> {
  static constexpr int64_t DIMS = 2, KEYS = 2, BYTES = 4;  // of a step
  static int32_t encode(const float* q, int64_t step) {
    return int32_t(float_to_bf16(q[2 * step]) | uint32_t(float_to_bf16(q[2 * step + 1])) << 16);
  }
  static vpairs read(const uint8_t* p) { return load_pairs(p); }
  static vf dot(vf acc, vpairs k, int32_t q) { return dot_pairs(acc, k, uint32_t(q)); }
};

template <>
struct Reader<KV::F32> {
  static constexpr int64_t DIMS = 1, KEYS = 1, BYTES = 4;
  static int32_t encode(const float* q, int64_t step) {
    int32_t bits;
    std::memcpy(&bits, q + step, 4);
    return bits;
  }
  static vf read(const uint8_t* p) { return load((const float*)p); }
  static vf dot(vf acc, vf k, int32_t q) {
    float value;
    std::memcpy(&value, &q, 4);
    return fma(k, set1(value), acc);
  }
};

template <>
struct Reader<KV::I8> {
  static constexpr int64_t DIMS = 1, KEYS = 1, BYTES = 1;
  static int32_t encode(const float* q, int64_t step) { return Reader<KV::F32>::encode(q, step); }
  static vf read(const uint8_t* p) { return load_i8((const int8_t*)p); }
  static vf dot(vf acc, vf k, int32_t q) { return Reader<KV::F32>::dot(acc, k, q); }
};

// The queries of a task's rows that share a KV head, and what they have gathered.
struct Queries {
  int64_t count;
  int64_t width;  // of the rows below that belong to a query
  int64_t seen_from[MOST_QUERIES], seen_to[MOST_QUERIES];  // positions
  float highest[MOST_QUERIES], total[MOST_QUERIES];
  alignas(64) float scores[MOST_QUERIES][CHUNK];    // then weights
  alignas(64) int32_t weights[MOST_QUERIES][CHUNK];  // as V's steps take them
  float all_highest[MOST_QUERIES], all_total[MOST_QUERIES];
  alignas(64) int32_t encoded_rows[MOST_QUERIES * MOST_HEAD];
  alignas(64) float value_rows[MOST_QUERIES * MOST_HEAD];  // of this chunk
  alignas(64) float all_value_rows[MOST_QUERIES * MOST_HEAD];

  int32_t* encoded(int64_t n) { return encoded_rows + n * width; }
  float* values(int64_t n) { return value_rows + n * width; }
  float* all_values(int64_t n) { return all_value_rows + n * width; }
};

// A chunk's keys in the pages of one head.
struct Chunk {
  int64_t start, keys;
  const uint8_t* k[CHUNK / KEYS];  // of each block of 16 keys
  int64_t pitch[CHUNK / KEYS];     // bytes from step to step
  int64_t value_steps;
  const uint8_t* v[CHUNK];  // of each step
  alignas(64) float k_scale[CHUNK], v_scale[CHUNK];
  alignas(64) uint8_t gathered_k[CHUNK * MOST_HEAD * 4];
  alignas(64) uint16_t gathered_v[CHUNK * MOST_HEAD];
};

static void put_beside(uint16_t* pairs, int64_t side, const uint16_t* values, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++) pairs[2 * i + side] = values ? values[i * step] : 0;
}

// Makes pairs where the pages have none: of pages of one token, and of a last key without a
// neighbour, beside which there may be anything.
static void pair_values(const AttentionTask& task, Chunk& chunk) {
  const int64_t n = task.pages.padded, last = chunk.keys / 2;
  if (task.pages.page == 1) {
    for (int64_t i = 0; i < chunk.keys; i++) {
      const int32_t page = task.page_table[chunk.start + i];
      const uint8_t* values = task.pages.head(page, task.head) + task.pages.side_bytes();
      put_beside(chunk.gathered_v + i / 2 * 2 * n, i % 2, (const uint16_t*)values, 1, n);
    }
    for (int64_t i = 0; i < chunk.value_steps; i++) chunk.v[i] = (uint8_t*)(chunk.gathered_v + i * 2 * n);
  } else if (chunk.keys % 2) {
    put_beside(chunk.gathered_v, 0, (const uint16_t*)chunk.v[last], 2, n);
    chunk.v[last] = (const uint8_t*)chunk.gathered_v;
  }
  if (chunk.keys % 2) put_beside((uint16_t*)chunk.v[last], 1, nullptr, 0, n);
}

template <KV K>
static void find_chunk(const AttentionTask& task, int64_t start, int64_t keys, Chunk& chunk) {
  using R = Reader<K>;
  const Pages& pages = task.pages;
  const int64_t page = pages.page, value_bytes = pages.padded * pages.element();
  const int64_t steps = pages.padded / R::DIMS;
  chunk.start = start;
  chunk.keys = keys;
  chunk.value_steps = (keys + R::KEYS - 1) / R::KEYS;
  for (int64_t i = 0; i < keys; i += page - (start + i) % page) {
    const int64_t at = (start + i) % page;
    const uint8_t* base = pages.head(task.page_table[(start + i) / page], task.head);
    const int64_t here = keys - i < page - at ? keys - i : page - at;
    const float* scales = (const float*)(base + 2 * pages.side_bytes());
    for (int64_t j = 0; j < here; j += R::KEYS)
      chunk.v[(i + j) / R::KEYS] = base + pages.side_bytes() + (at + j) * value_bytes;
    if constexpr (K == KV::I8) {
      std::memcpy(chunk.k_scale + i, scales + at, size_t(here) * 4);
      std::memcpy(chunk.v_scale + i, scales + page + at, size_t(here) * 4);
    }
    if (page >= KEYS) {
      for (int64_t j = 0; j < here; j += KEYS) {
        chunk.k[(i + j) / KEYS] = base + (at + j) * R::BYTES;
        chunk.pitch[(i + j) / KEYS] = page * R::BYTES;
      }
    } else {  // small pages: put 16 keys side by side
      uint8_t* to = chunk.gathered_k + i / KEYS * KEYS * steps * R::BYTES;
      chunk.k[i / KEYS] = to;
      chunk.pitch[i / KEYS] = KEYS * R::BYTES;
      for (int64_t s = 0; s < steps; s++)
        std::memcpy(to + (s * KEYS + i % KEYS) * R::BYTES, base + (s * page + at) * R::BYTES,
                    size_t(here * R::BYTES));
    }
  }
  if constexpr (K == KV::BF16) pair_values(task, chunk);
}

static inline vf scaled_scores(vf score, const float* scales, bool scale) {
  return scale ? mul(score, load(scales)) : score;
}

// Scores of some queries with one block of keys, or with two, which hides latencies.
template <KV K, bool TWO, int... n>
static inline PHLOEM_INLINE void score_blocks(Queries& q, int64_t first, const Chunk& chunk,
                                              int64_t block, int64_t steps, ints<n...>) {
  using R = Reader<K>;
  const int32_t* query[] = {q.encoded(first + n)...};
  const int64_t pitch = chunk.pitch[block], next = TWO ? block + 1 : block;
  for (int part = 0; part < KEY_PARTS; part++) {
    const uint8_t* k0 = chunk.k[block] + part * LANES * R::BYTES;
    const uint8_t* k1 = chunk.k[next] + part * LANES * R::BYTES;
    vf one[] = {(void(n), zero())...}, two[] = {(void(n), zero())...};
    for (int64_t s = 0; s < steps; s++, k0 += pitch, k1 += pitch) {
      const auto keys0 = R::read(k0);
      ((one[n] = R::dot(one[n], keys0, query[n][s])), ...);
      if constexpr (TWO) {
        const auto keys1 = R::read(k1);
        ((two[n] = R::dot(two[n], keys1, query[n][s])), ...);
      }
    }
    const int64_t at = block * KEYS + part * LANES;
    constexpr bool SCALED = K == KV::I8;
    (store(q.scores[first + n] + at, scaled_scores(one[n], chunk.k_scale + at, SCALED)), ...);
    if constexpr (TWO)
      (store(q.scores[first + n] + at + KEYS, scaled_scores(two[n], chunk.k_scale + at + KEYS, SCALED)), ...);
  }
}

template <KV K, int N>
static void score(Queries& q, int64_t first, const Chunk& chunk, int64_t steps) {
  const int64_t blocks = (chunk.keys + KEYS - 1) / KEYS;
  int64_t block = 0;
  for (; block + 2 <= blocks; block += 2) score_blocks<K, true>(q, first, chunk, block, steps, upto<N>());
  if (block < blocks) score_blocks<K, false>(q, first, chunk, block, steps, upto<N>());
}

// Turns query n's scores into weights, its maximum and their sum.
static void weigh(Queries& q, int64_t n, const Chunk& chunk, float cap) {
  float* s = q.scores[n];
  const int64_t width = phloem::round_up(chunk.keys, KEYS);
  const int64_t end = q.seen_to[n] - chunk.start, begin = q.seen_from[n] - chunk.start;
  q.total[n] = 0;
  if (end <= 0 || begin >= chunk.keys) {
    std::memset(s, 0, size_t(width) * 4);
    return;
  }
  if (cap > 0) softcap(s, width, cap);
  for (int64_t i = 0; i < begin; i++) s[i] = -INFINITY;
  for (int64_t i = end; i < width; i++) s[i] = -INFINITY;
  vf most = load(s);
  bool nan = any_nan(most);
  for (int64_t i = LANES; i < width; i += LANES) {
    const vf score = load(s + i);
    most = max(most, score);
    nan |= any_nan(score);
  }
  q.highest[n] = reduce_max(most);
  if (nan || !std::isfinite(q.highest[n])) {  // max and exp would make numbers of it
    q.highest[n] = 0;
    q.total[n] = NAN;
    return;
  }
  vf sum = zero();
  for (int64_t i = 0; i < width; i += LANES) {
    const vf weight = exp(sub(load(s + i), set1(q.highest[n])));
    store(s + i, weight);
    sum = add(sum, weight);
  }
  q.total[n] = reduce_add(sum);
}

// Query n's weights as V's steps take them.
template <KV K>
static void encode_weights(Queries& q, int64_t n, const Chunk& chunk) {
  float* weights = q.scores[n];
  if constexpr (K == KV::I8)
    for (int64_t i = 0; i < chunk.keys; i++) weights[i] *= chunk.v_scale[i];
  if constexpr (K == KV::BF16) {
    to_bf16(weights, phloem::round_up(chunk.keys, KEYS), (uint16_t*)q.weights[n]);
  } else {
    std::memcpy(q.weights[n], weights, size_t(chunk.keys) * 4);
  }
}

// Weighted values of some queries: C vectors of columns from `column` on, i = n * C + c.
template <KV K, int C, int... i>
static inline PHLOEM_INLINE void sum_values(Queries& q, int64_t first, const Chunk& chunk,
                                            int64_t column, ints<i...>) {
  using R = Reader<K>;
  const int32_t* weights[] = {q.weights[first + i / C]...};
  vf acc[] = {(void(i), zero())...};
  for (int64_t s = 0; s < chunk.value_steps; s++) {
    const uint8_t* row = chunk.v[s] + column * R::BYTES;
    const decltype(R::read(row)) value[] = {R::read(row + i % C * LANES * R::BYTES)...};
    ((acc[i] = R::dot(acc[i], value[i % C], weights[i][s])), ...);
  }
  (store(q.values(first + i / C) + column + i % C * LANES, acc[i]), ...);
}

template <KV K, int N>
static void gather_values(Queries& q, int64_t first, const Chunk& chunk, int64_t padded) {
  constexpr int WIDE = LANES == 16 ? 4 : 2;
  int64_t column = 0;
  for (; column + WIDE * LANES <= padded; column += WIDE * LANES)
    sum_values<K, WIDE>(q, first, chunk, column, upto<N * WIDE>());
  for (; column < padded; column += LANES)
    sum_values<K, 1>(q, first, chunk, column, upto<N>());
}

template <class Body>
static void in_groups(int64_t count, Body body) {
  int64_t n = 0;
  for (; n + QUERY_GROUP <= count; n += QUERY_GROUP) body(Count<QUERY_GROUP>(), n);
  if (count - n == 3) body(Count<3>(), n);
  if (count - n == 2) body(Count<2>(), n);
  if (count - n == 1) body(Count<1>(), n);
}

// Adds a chunk's (highest, total, values) to those gathered so far.
static void merge_state(float& highest, float& total, float* values, float chunk_highest,
                        float chunk_total, const float* chunk_values, int64_t size) {
  if (chunk_total == 0) return;
  if (total == 0) {
    highest = chunk_highest;
    total = chunk_total;
    std::memcpy(values, chunk_values, size_t(size) * 4);
    return;
  }
  const float most = chunk_highest > highest ? chunk_highest : highest;
  const float old_factor = std::exp(highest - most), new_factor = std::exp(chunk_highest - most);
  total = total * old_factor + chunk_total * new_factor;
  highest = most;
  for (int64_t i = 0; i < size; i += LANES) {
    const int64_t left = size - i;
    const vf added = mul(load_part(chunk_values + i, left), set1(new_factor));
    store_part(values + i, fma(load_part(values + i, left), set1(old_factor), added), left);
  }
}

static void finish(const float* values, float total, float* out, int64_t size) {
  const vf inverse = set1(1.0f / total);
  for (int64_t i = 0; i < size; i += LANES)
    store_part(out + i, mul(load_part(values + i, size - i), inverse), size - i);
}

template <KV K>
static void attend_rows(const AttentionTask& task, const AttentionRow* rows, int64_t count, Queries& q,
                        Chunk& chunk) {
  using R = Reader<K>;
  const Pages& pages = task.pages;
  const int64_t size = pages.size, steps = pages.padded / R::DIMS;
  const int64_t group = task.q_heads / pages.heads, first_head = task.head * group;
  const int64_t state = size + STATE;
  q.count = count * group;
  q.width = pages.padded;
  int64_t end = 0;
  const auto each = [&](auto body) {
    for (int64_t m = 0; m < count; m++)
      for (int64_t g = 0; g < group; g++) body(m * group + g, rows[m], first_head + g);
  };
  each([&](int64_t n, const AttentionRow& at, int64_t head) {
    float scaled[MOST_HEAD] = {};
    const float* from = task.q.data + at.row * task.q.stride + head * size;
    for (int64_t i = 0; i < size; i++) scaled[i] = from[i] * task.scale;
    for (int64_t s = 0; s < steps; s++) q.encoded(n)[s] = R::encode(scaled, s);
    q.seen_to[n] = at.seen;
    end = at.seen > end ? at.seen : end;
    q.seen_from[n] = task.window > 0 && q.seen_to[n] > task.window ? q.seen_to[n] - task.window : 0;
    q.all_total[n] = 0;
  });
  for (int64_t c = task.first_chunk; c < task.last_chunk && c * CHUNK < end; c++) {
    const int64_t start = c * CHUNK;
    find_chunk<K>(task, start, end - start < CHUNK ? end - start : CHUNK, chunk);
    in_groups(q.count, [&](auto n, int64_t at) { score<K, decltype(n)::value>(q, at, chunk, steps); });
    for (int64_t n = 0; n < q.count; n++) {
      weigh(q, n, chunk, task.softcap);
      encode_weights<K>(q, n, chunk);
    }
    in_groups(q.count, [&](auto n, int64_t at) {
      gather_values<K, decltype(n)::value>(q, at, chunk, pages.padded);
    });
    each([&](int64_t n, const AttentionRow& at, int64_t head) {
      if (at.slot < 0) {
        merge_state(q.all_highest[n], q.all_total[n], q.all_values(n), q.highest[n], q.total[n],
                    q.values(n), size);
        return;
      }
      float* to = task.partial + ((c * task.slots + at.slot) * task.q_heads + head) * state;
      std::memcpy(to, q.values(n), size_t(size) * 4);
      to[size] = q.highest[n];
      to[size + 1] = q.total[n];
    });
  }
  each([&](int64_t n, const AttentionRow& at, int64_t head) {
    if (at.slot < 0)
      finish(q.all_values(n), q.all_total[n], task.out.data + at.row * task.out.stride + head * size, size);
  });
}

static void attention(const AttentionTask& task) {
  static thread_local Queries thread_queries;
  static thread_local Chunk thread_chunk;
  Queries& queries = opaque(thread_queries);
  Chunk& chunk = opaque(thread_chunk);
  const int64_t group = task.q_heads / task.pages.heads;
  const int64_t most = group < 16 ? 16 / group : 1;
  for (int64_t m = 0; m < task.count; m += most) {
    const int64_t count = m + most < task.count ? most : task.count - m;
    switch (task.pages.kind) {
      case KV::BF16: attend_rows<KV::BF16>(task, task.rows + m, count, queries, chunk); break;
      case KV::F32: attend_rows<KV::F32>(task, task.rows + m, count, queries, chunk); break;
      case KV::I8: attend_rows<KV::I8>(task, task.rows + m, count, queries, chunk); break;
    }
  }
}

static void merge(const MergeTask& task) {
  const int64_t size = task.size, state = size + STATE;
  alignas(64) float values[MOST_HEAD];
  for (int64_t h = 0; h < task.q_heads; h++) {
    float highest = 0, total = 0;
    for (int64_t c = task.first_chunk; c < task.last_chunk; c++) {
      const float* from =
          task.partial + ((c * task.slots + task.slot) * task.q_heads + h) * state;
      merge_state(highest, total, values, from[size], from[size + 1], from, size);
    }
    finish(values, total, task.out + h * size, size);
  }
}

}  // namespace PHLOEM_ISA
