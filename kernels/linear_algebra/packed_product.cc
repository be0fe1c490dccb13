#include "kernels/linear_algebra/packed_product.h"

#include <algorithm>
#include <vector>

#include "kernels/onednn.h"

namespace leat {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto f32_type = dnnl::memory::data_type::f32;
constexpr int64_t least_rows =
    4;  // fewer are a product with vectors, which reads b once in any case

Desc matrix(int64_t rows, int64_t columns) {
  return Desc({rows, columns}, f32_type, dnnl::memory::dims{columns, 1});
}

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// A primitive for a fixed number of rows.
struct Rows {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  int64_t count = 0;
};

Rows make_rows(int64_t count, const MatMul& mm, const Desc& b) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (mm.adds) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description({matrix(count, mm.k), b, matrix(count, mm.n)},
                                                 attributes, onednn_engine());
  return {description, dnnl::matmul(description), count};
}

}  // namespace

struct PackedProduct::Parts {
  MatMul mm;
  Desc plain, packed;  // of b
  dnnl::reorder packing;
  int64_t rows, chunks;     // rows of all chunks but the last
  std::vector<Rows> kinds;  // all chunks but the last, the last
  size_t scratch = 0;       // of a chunk
};

PackedProduct::PackedProduct(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PackedProduct::~PackedProduct() = default;

std::unique_ptr<PackedProduct> PackedProduct::make(const MatMul& mm) {
  if (mm.m < least_rows || mm.n <= 0 || mm.k <= 0) return nullptr;
  use_one_onednn_thread();
  auto parts = std::make_unique<Parts>();
  parts->mm = mm;
  // A second thread pays for two times tens of microseconds; rows of a vector stay together.
  const int64_t flops_of_row = 2 * mm.n * mm.k;
  const int64_t enough = std::max<int64_t>(16, matmul_flops_per_chunk / flops_of_row / 16 * 16);
  parts->rows = std::min(mm.m, std::max(enough, (mm.m / 2 + 15) / 16 * 16));
  parts->chunks = (mm.m + parts->rows - 1) / parts->rows;
  parts->plain = Desc({mm.k, mm.n}, f32_type,
                      mm.transpose_b ? dnnl::memory::dims{1, mm.k} : dnnl::memory::dims{mm.n, 1});
  try {
    const Desc any({mm.k, mm.n}, f32_type, dnnl::memory::format_tag::any);
    parts->packed = make_rows(parts->rows, mm, any).description.weights_desc();
    if (parts->chunks > 1) parts->kinds.push_back(make_rows(parts->rows, mm, parts->packed));
    parts->kinds.push_back(make_rows(mm.m - (parts->chunks - 1) * parts->rows, mm, parts->packed));
    parts->packing =
        dnnl::reorder(onednn_memory(parts->plain, nullptr), onednn_memory(parts->packed, nullptr));
  } catch (const dnnl::error&) {
    return nullptr;
  }
  for (const Rows& kind : parts->kinds)
    parts->scratch = std::max(parts->scratch, kind.description.scratchpad_desc().get_size());
  parts->scratch = aligned(parts->scratch);
  return std::unique_ptr<PackedProduct>(new PackedProduct(std::move(parts)));
}

size_t PackedProduct::packed_bytes() const { return aligned(parts_->packed.get_size()); }

size_t PackedProduct::workspace_bytes() const {
  return parts_->scratch * static_cast<size_t>(parts_->chunks);
}

void PackedProduct::pack(const float* b, void* packed) const {
  use_one_onednn_thread();
  dnnl::stream stream(onednn_engine());
  dnnl::memory from = onednn_memory(parts_->plain, b), to = onednn_memory(parts_->packed, packed);
  parts_->packing.execute(stream, from, to);
}

void PackedProduct::run(const float* a, const void* packed, float* product, void* workspace,
                        Stream& stream) const {
  const Parts& p = *parts_;
  stream.parallel_for(p.chunks, 1, [&](int64_t begin, int64_t end) {
    use_one_onednn_thread();
    dnnl::stream here(onednn_engine());
    for (int64_t c = begin; c < end; ++c) {
      const Rows& kind = c + 1 == p.chunks ? p.kinds.back() : p.kinds.front();
      const auto& d = kind.description;
      kind.primitive.execute(
          here,
          {{DNNL_ARG_SRC, onednn_memory(d.src_desc(), a + c * p.rows * p.mm.k)},
           {DNNL_ARG_WEIGHTS, onednn_memory(d.weights_desc(), packed)},
           {DNNL_ARG_DST, onednn_memory(d.dst_desc(), product + c * p.rows * p.mm.n)},
           {DNNL_ARG_SCRATCHPAD,
            onednn_memory(d.scratchpad_desc(), static_cast<char*>(workspace) + c * p.scratch)}});
    }
  });
}

}  // namespace leat
