// Rotary embedding and the write of K and V into their pages.
#pragma once

#include "rows.h"

namespace PHLOEM_ISA {

using phloem::KV;
using phloem::Pages;
using phloem::RopeTask;

// Rotates dimension i together with i + half; the rest is copied.
static inline void rotate(const float* x, float* out, int64_t size, int64_t half, const float* table) {
  const float *cos = table, *sin = table + half;
  for (int64_t i = 0; i < half; i += LANES) {
    const int64_t left = half - i;
    const vf a = load_part(x + i, left), b = load_part(x + half + i, left);
    const vf c = load_part(cos + i, left), s = load_part(sin + i, left);
    store_part(out + i, sub(mul(a, c), mul(b, s)), left);
    store_part(out + half + i, fma(b, c, mul(a, s)), left);
  }
  if (out != x && size > 2 * half)
    std::memcpy(out + 2 * half, x + 2 * half, size_t(size - 2 * half) * 4);
}

// NaN if one of the values is not finite: so are then all that are read with it.
static inline float int8_scale(const float* x, int64_t n) {
  float most = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; i++) {
    const float size = std::fabs(x[i]);
    most = size > most ? size : most;
    finite &= size <= FLT_MAX;
  }
  return finite ? most / 127.0f : NAN;
}

static inline int8_t int8_code(float x, float scale) {
  return scale > 0 ? int8_t(std::nearbyint(x * (1 / scale))) : int8_t(0);
}

static inline void write_kv(const Pages& pages, int64_t slot, int64_t head, const float* k, const float* v) {
  const int64_t at = slot % pages.page;
  uint8_t* base = pages.head(slot / pages.page, head);
  uint8_t* values = base + pages.side_bytes() + at * pages.padded * pages.element();
  if (pages.kind == KV::F32) {
    for (int64_t i = 0; i < pages.padded; i++) ((float*)base)[i * pages.page + at] = k[i];
    std::memcpy(values, v, size_t(pages.padded) * 4);
  } else if (pages.kind == KV::BF16) {
    uint32_t* pairs = (uint32_t*)base;
    for (int64_t i = 0; i < pages.padded; i += 2)
      pairs[i / 2 * pages.page + at] = float_to_bf16(k[i]) | uint32_t(float_to_bf16(k[i + 1])) << 16;
    // Neighbouring keys side by side; a page of one token has no neighbour.
    const int64_t pair = pages.page > 1 ? 2 : 1;
    auto* to = (uint16_t*)(base + pages.side_bytes()) + at / 2 * pages.padded * 2 + at % 2;
    for (int64_t i = 0; i < pages.padded; i++) to[i * pair] = float_to_bf16(v[i]);
  } else {
    float* scales = (float*)(base + 2 * pages.side_bytes());
    const float k_scale = int8_scale(k, pages.size), v_scale = int8_scale(v, pages.size);
    for (int64_t i = 0; i < pages.padded; i++) {
      ((int8_t*)base)[i * pages.page + at] = int8_code(k[i], k_scale);
      ((int8_t*)values)[i] = int8_code(v[i], v_scale);
    }
    scales[at] = k_scale;
    scales[pages.page + at] = v_scale;
  }
}

static void rope(const RopeTask& task) {
  const Pages& pages = task.pages;
  const int64_t size = pages.size;
  alignas(64) float k[phloem::MOST_HEAD] = {}, v[phloem::MOST_HEAD] = {};
  for (int64_t m = task.first; m < task.last; m++) {
    const float* table = task.table + task.positions[m] * 2 * task.half;
    for (int64_t h = 0; h < task.q_heads; h++)
      rotate(task.q.data + m * task.q.stride + h * size, task.out.data + m * task.out.stride + h * size,
             size, task.half, table);
    for (int64_t h = 0; h < pages.heads; h++) {
      rotate(task.k.data + m * task.k.stride + h * size, k, size, task.half, table);
      std::memcpy(v, task.v.data + m * task.v.stride + h * size, size_t(size) * 4);
      write_kv(pages, task.slots[m], h, k, v);
    }
  }
}

}  // namespace PHLOEM_ISA
