// oneDNN's bfloat16 matmul, 8 to 10 times as fast as f32 on processors with AMX. The primitive is
// made once; its scratch memory is our workspace.
#include "kernels/linear_algebra/bfloat16_matmul.h"

#include <algorithm>

#include "core/execution/step_end.h"
#include "kernels/onednn.h"

namespace leat {
namespace {

using Desc = dnnl::memory::desc;
constexpr auto bf16_type = dnnl::memory::data_type::bf16;

Desc plain_b(const MatMul& mm) {
  return Desc({mm.k, mm.n}, bf16_type,
              mm.transpose_b ? dnnl::memory::dims{1, mm.k} : dnnl::memory::dims{mm.n, 1});
}

// One primitive for a fixed number of rows.
struct Rows {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
  int64_t count;
};

Rows make_rows(int64_t count, const MatMul& mm, const Desc& b) {
  const int64_t m = mm.m, n = mm.n, k = mm.k;
  const Desc a({count, k}, bf16_type,
               mm.transpose_a ? dnnl::memory::dims{1, m} : dnnl::memory::dims{k, 1});
  const Desc product({count, n}, bf16_type, dnnl::memory::dims{n, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (mm.adds) {
    dnnl::post_ops sum;
    sum.append_sum();
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc description({a, b, product}, attributes, onednn_engine());
  return {description, dnnl::matmul(description), count};
}

// A constant b in the layouts that oneDNN asked for.
using PackedLayouts = std::vector<dnnl::memory>;

dnnl::memory packed(const MatMul& mm, const Tensor& b, const Desc& layout, PackedLayouts& layouts) {
  for (const dnnl::memory& known : layouts) {
    if (known.get_desc() == layout) return known;
  }
  dnnl::memory from = onednn_memory(plain_b(mm), b.raw()), to(layout, onednn_engine());
  dnnl::stream stream(onednn_engine());
  dnnl::reorder(from, to).execute(stream, from, to);
  layouts.push_back(to);
  return to;
}

// With a constant b, as it is laid out in `layouts`.
std::optional<BoundKernel> bind(const MatMul& mm, const Tensor* constant_b,
                                PackedLayouts* layouts) {
  if (dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core_bf16)
    return std::nullopt;  // emulated: slower than f32
  use_one_onednn_thread();
  const int64_t m = mm.m, n = mm.n, k = mm.k;
  // Tens of microseconds of work are worth a chunk of their own.
  const int64_t rows = std::clamp<int64_t>(40'000'000 / (2 * n * k), 16, std::max<int64_t>(16, m));
  const int64_t chunks = (m + rows - 1) / rows;
  std::vector<Rows> kinds;  // all chunks but the last, the last
  dnnl::memory packed_b;
  try {
    Desc layout = plain_b(mm);
    if (constant_b != nullptr) {
      const Desc fastest({k, n}, bf16_type, dnnl::memory::format_tag::any);
      layout = make_rows(std::min(rows, m), mm, fastest).description.weights_desc();
      packed_b = packed(mm, *constant_b, layout, *layouts);
    }
    if (chunks > 1) kinds.push_back(make_rows(rows, mm, layout));
    kinds.push_back(make_rows(m - (chunks - 1) * rows, mm, layout));
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
  size_t scratch = 0;
  for (const Rows& kind : kinds)
    scratch = std::max(scratch, kind.description.scratchpad_desc().get_size());
  scratch = (scratch + 63) / 64 * 64;
  BoundKernel kernel = BoundKernel::of([=](const Arguments& args) {
    const bfloat16* a = args.input<bfloat16>(0);
    const void* b = packed_b ? packed_b.get_data_handle() : args.input<bfloat16>(1);
    bfloat16* product = args.output<bfloat16>();
    args.stream->parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
      use_one_onednn_thread();
      dnnl::stream stream(onednn_engine());
      for (int64_t c = begin; c < end; ++c) {
        StepEnd::ask();
        const Rows& kind = c + 1 == chunks ? kinds.back() : kinds.front();
        const auto& d = kind.description;
        kind.primitive.execute(
            stream,
            {{DNNL_ARG_SRC, onednn_memory(d.src_desc(), a + c * rows * (mm.transpose_a ? 1 : k))},
             {DNNL_ARG_WEIGHTS, onednn_memory(d.weights_desc(), b)},
             {DNNL_ARG_DST, onednn_memory(d.dst_desc(), product + c * rows * n)},
             {DNNL_ARG_SCRATCHPAD,
              onednn_memory(d.scratchpad_desc(),
                            static_cast<char*>(args.workspace) + c * scratch)}});
      }
    });
  });
  kernel.workspace_bytes = scratch * chunks;
  return kernel;
}

}  // namespace

std::optional<BoundKernel> bind_bfloat16_matmul(const MatMul& mm) {
  return bind(mm, nullptr, nullptr);
}

std::optional<BoundKernel> bind_bfloat16_matmul(const MatMul& mm, const Tensor& b,
                                                std::shared_ptr<void>& node_state) {
  if (!node_state) node_state = std::make_shared<PackedLayouts>();
  return bind(mm, &b, static_cast<PackedLayouts*>(node_state.get()));
}

}  // namespace leat
