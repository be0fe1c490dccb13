// ScatterNd adds slices into a tensor of zeros at the positions of index vectors; GatherNd reads
// slices from these positions, ResourceGatherNd from those of a variable.
#include <algorithm>
#include <span>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/bad_indices.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/moves/strided_copy.h"
#include "kernels/pieces.h"
#include "kernels/state/resource_form.h"

namespace leat {
namespace {

// indices [places…, depth], updates [places…, slice…], output [depth axes…, slice…]. Unknown
// extents fit anything.
void check_shapes(const Shape& indices, const Shape& updates, const Shape& out) {
  const int places = indices.rank() - 1;
  const int64_t depth = indices[places];
  if (depth == any) return;
  check(depth <= out.rank(), "indices of ", depth, " numbers do not index into shape ", out);
  Shape expected;
  for (int i = 0; i < places; ++i) expected.push_back(indices[i]);
  for (int i = static_cast<int>(depth); i < out.rank(); ++i) expected.push_back(out[i]);
  check(expected.is_compatible(updates), "updates must have shape ", expected, " (indices ",
        indices, ", output ", out, "), got ", updates);
}

void infer(ShapeContext& c) {
  const Shape out = c.shape_from_value(2), indices = c.with_rank_at_least(0, 1),
              updates = c.input(1);
  c.set_output(0, out);
  if (!indices.has_rank() || !updates.has_rank() || !out.has_rank()) return;
  check_shapes(indices, updates, out);
  check(out.elements() != 0 || indices.elements() == 0 || updates.elements() == 0,
        "Indices and updates specified for empty output shape ", out);
}

template <class T, class Index>
BoundKernel bind(const KernelRequest& request) {
  const Shape &indices = request.inputs[0].shape, &out = request.outputs[0].shape;
  check_shapes(indices, request.inputs[1].shape, out);
  const int64_t depth = indices[indices.rank() - 1];
  int64_t places = 1, slice = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i) places *= indices[i];
  for (int i = static_cast<int>(depth); i < out.rank(); ++i) slice *= out[i];
  if (indices.elements() == 0 && slice == 0) places = 0;  // without numbers, any number of places
  return BoundKernel::of([=, strides = strides_of(out), n = out.elements(),
                          ignores_bad = ignores_bad_indices(request)](const Arguments& a) {
    T* to = a.output<T>();
    fill_in_pieces(to, n, T{});
    for (int64_t p = 0; p < places; ++p) {
      StepEnd::pace(8 + slice);
      int64_t at = 0;
      bool is_good = true;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t index = a.input<Index>(0)[p * depth + d];
        is_good = is_good && index >= 0 && index < out[static_cast<int>(d)];
        check(is_good || ignores_bad, "indices[", p, "] holds ", index, " for axis ", d,
              ": does not index into shape ", out);
        if (is_good) at += index * strides[d];
      }
      if (!is_good) continue;
      const T* from = a.input<T>(1) + p * slice;
      for (int64_t i = 0; i < slice; ++i) {
        if constexpr (std::is_same_v<T, bool>) {
          to[at + i] = to[at + i] || from[i];
        } else if constexpr (std::is_same_v<T, std::string>) {
          to[at + i] += from[i];
        } else {
          to[at + i] = T(ComputeType<T>(to[at + i]) + ComputeType<T>(from[i]));
        }
      }
    }
  });
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request) {
  const DType index = request.inputs[0].dtype;
  if (index == DType::i64) return bind<T, int64_t>(request);
  if (index == DType::i16) return bind<T, int16_t>(request);
  return bind<T, int32_t>(request);
}

AttrMap policy_of(Gradient& g) {
  return {{"bad_indices_policy", g.attr<std::string>("bad_indices_policy")}};
}

const Op scatter_nd_op{{
    .name = "ScatterNd",
    .doc = "output = zeros of the given shape with updates[i…, j…] added at [indices[i…, :], j…].",
    .inputs = {"indices: Tindices", "updates: T", "shape: Tindices"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "Tindices: {int16, int32, int64}", "bad_indices_policy: string = ''"},
    .shape = infer,
    .gradient =
        [](Gradient& g) {
          g.dx(1) = op("GatherNd", {g.dy(), g.x(0)}, policy_of(g));
        },
    .kernels = {cpu_kernel(
        "T", AllTypes{},
        []<class T>(TypeTag<T> t, const KernelRequest& r) { return prepare(t, r); })},
    .examples = {{.inputs = {ints({3, 1}, {2, 0, 2}), floats({3, 2}, {1, 2, 3, 4, 5, 6}),
                             ints({3, 2})},
                  .outputs = {floats({3, 2}, {3, 4, 0, 0, 6, 8})}},
                 {.inputs = {ints({2, 2}, {0, 1, 1, 0}), floats({5, 6}), ints({2, 2})},
                  .outputs = {floats({2, 2}, {0, 5, 6, 0})}}},
    .value_inputs = {2},
}};

// ---- GatherNd

void infer_gather(ShapeContext& c) {
  const Shape params = c.input(0), indices = c.with_rank_at_least(1, 1);
  if (!params.has_rank() || !indices.has_rank() || indices[indices.rank() - 1] == any)
    return c.set_output(0, Shape::unknown());
  const int64_t depth = indices[indices.rank() - 1];
  check(depth <= params.rank(),
        "index innermost dimension length must be <= params rank; saw: ", depth, " vs. ",
        params.rank());
  Shape out;
  for (int i = 0; i + 1 < indices.rank(); ++i) out.push_back(indices[i]);
  for (int i = static_cast<int>(depth); i < params.rank(); ++i) out.push_back(params[i]);
  c.set_output(0, out);
}

template <class T, class Index>
BoundKernel bind_gather(const KernelRequest& request, bool ignores_bad = false) {
  const Shape &params = request.inputs[0].shape, &indices = request.inputs[1].shape;
  const int64_t depth = indices[indices.rank() - 1];
  const int64_t n = request.outputs[0].shape.elements();
  const std::span<const int64_t> places = indices.dims().first(indices.rank() - 1);
  const bool asks_for_none = std::find(places.begin(), places.end(), 0) != places.end();
  check(asks_for_none || params.elements() != 0,
        "Requested more than 0 entries, but params is empty.  Params shape: ", params);
  if (n == 0) return {};
  int64_t slice = 1;
  for (int i = static_cast<int>(depth); i < params.rank(); ++i) slice *= params[i];
  return BoundKernel::of([=, strides = strides_of(params)](const Arguments& a) {
    for (int64_t p = 0; p < n / slice; ++p) {
      StepEnd::pace(8 + slice);
      int64_t at = 0;
      bool is_good = true;
      for (int64_t d = 0; d < depth; ++d) {
        const int64_t index = a.input<Index>(1)[p * depth + d];
        is_good = is_good && index >= 0 && index < params[static_cast<int>(d)];
        check(is_good || ignores_bad, "indices[", p, "] holds ", index, " for axis ", d,
              ": does not index into param shape ", params);
        if (is_good) at += index * strides[d];
      }
      T* to = a.output<T>() + p * slice;
      if (is_good) {
        copy_elements(a.input<T>(0) + at, slice, to);
      } else {
        std::fill_n(to, slice, T{});
      }
    }
  });
}

const Op gather_nd_op{{
    .name = "GatherNd",
    .doc = "output[i…, j…] = params[indices[i…, :], j…]; 0 for indices that bad_indices_policy "
           "IGNORE skips.",
    .inputs = {"params: Tparams", "indices: Tindices"},
    .outputs = {"output: Tparams"},
    .attrs = {"Tparams: type", "Tindices: {int16, int32, int64}",
              "bad_indices_policy: string = ''"},
    .shape = infer_gather,
    .gradient =
        [](Gradient& g) {
          const DType index = g.x(1).dtype();
          g.dx(0) = op("ScatterNd", {g.x(1), g.dy(), cast(shape_of(g.x(0)), index)}, policy_of(g));
        },
    .kernels = {cpu_moving_kernel("Tparams",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    const DType index = r.inputs[1].dtype;
                                    const bool ignores_bad = ignores_bad_indices(r);
                                    if (index == DType::i64)
                                      return bind_gather<T, int64_t>(r, ignores_bad);
                                    if (index == DType::i16)
                                      return bind_gather<T, int16_t>(r, ignores_bad);
                                    return bind_gather<T, int32_t>(r, ignores_bad);
                                  })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({2, 1}, {1, 0})},
                  .outputs = {floats({2, 2}, {3, 4, 1, 2})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({1, 2}, {1, 0})},
                  .outputs = {floats({3})}}},
}};

const Op resource_gather_nd_op{{
    .name = "ResourceGatherNd",
    .doc = "output[i…, j…] = variable[indices[i…, :], j…].",
    .inputs = {"resource: resource", "indices: Tindices"},
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "Tindices: {int32, int64}"},
    .shape = infer_gather,
    .gradient =
        [](Gradient& g) {
          const Output shape = op("VariableShape", {g.x(0)}, {{"out_type", g.x(1).dtype()}});
          g.dx(0) = op("ScatterNd", {g.x(1), g.dy(), shape});
        },
    .kernels = {cpu_moving_kernel("dtype",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    check_variable_dtype(r, "dtype");
                                    check(r.inputs[0].shape.rank() > 0,
                                          "params must be at least a vector");
                                    if (r.inputs[1].dtype == DType::i64)
                                      return bind_gather<T, int64_t>(r);
                                    return bind_gather<T, int32_t>(r);
                                  })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({2, 1}, {1, 0})},
                  .attrs = {{"dtype", f32}},
                  .outputs = {floats({2, 2}, {3, 4, 1, 2})}}},
    .is_stateful = true,
    .only_reads_state = true,
}};

}  // namespace
}  // namespace leat
