// Gather: rows of a table by index. Its gradient adds up rows: segment.cc.
#include "kernels/arrays/gather.h"

#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/ops/raw.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/moves/handles.h"
#include "kernels/moves/moved_variants.h"

namespace leat {
namespace {

int axis_of(const Tensor& axis, int rank) {
  check(axis.shape().rank() == 0, "axis must be a scalar, got shape ", axis.shape());
  return normalized_axis(to_int64s(axis)[0], rank);
}

int64_t product(const Shape& shape, int begin, int end) {
  int64_t out = 1;
  for (int i = begin; i < end; ++i) out = product_of_extents(out, shape[i]);
  return out;
}

template <class T, class Index>
BoundKernel bind(const GatherExtents& e) {
  return BoundKernel::of([e](const Arguments& a) {
    const T* params = a.input<T>(0);
    const Index* indices = a.input<Index>(1);
    T* out = a.output<T>();
    const int64_t grain =
        1 + 65536 / std::max<int64_t>(1, e.inner * static_cast<int64_t>(sizeof(T)));
    a.stream->parallel_for(e.batch * e.outer * e.count, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t block = i / e.count;  // batch and outer
        const int64_t at = block / e.outer * e.count + i % e.count;
        const int64_t row = indices[at];
        check(row >= 0 && row < e.rows, "indices[", at, "] = ", row, " is not in [0, ", e.rows,
              ")");
        copy_elements(params + (block * e.rows + row) * e.inner, e.inner, out + i * e.inner);
      }
    });
  });
}

template <class T>
BoundKernel bind(const GatherExtents& e, DType index) {
  if (e.batch * e.outer * e.count * e.inner == 0) return {};
  if (index == DType::i64) return bind<T, int64_t>(e);
  if (index == DType::i16) return bind<T, int16_t>(e);
  return bind<T, int32_t>(e);
}

template <class T>
BoundKernel prepare(TypeTag<T>, const KernelRequest& request, const GatherExtents& extents) {
  return bind<T>(extents, request.inputs[1].dtype);
}

GatherExtents extents_of(const KernelRequest& request, int axis, int batch) {
  const Shape &params = request.inputs[0].shape, &indices = request.inputs[1].shape;
  return {.batch = product(params, 0, batch),
          .outer = product(params, batch, axis),
          .rows = params[axis],
          .inner = product(params, axis + 1, params.rank()),
          .count = product(indices, batch, indices.rank())};
}

int batch_dims_of(int64_t batch_dims, const Shape& params, const Shape& indices) {
  const int64_t batch = batch_dims < 0 ? batch_dims + indices.rank() : batch_dims;
  check(batch >= 0 && batch <= indices.rank() && batch < params.rank(), "batch_dims = ", batch_dims,
        " does not fit params ", params, " and indices ", indices);
  for (int i = 0; i < batch; ++i) {
    check(params[i] == any || indices[i] == any || params[i] == indices[i], "params ", params,
          " and indices ", indices, " differ in batch axis ", i);
  }
  return static_cast<int>(batch);
}

void infer_v2(ShapeContext& c) {
  const Shape params = c.with_rank_at_least(0, 1), indices = c.input(1);
  const Tensor* axis_value = c.value(2);
  if (!params.has_rank() || !indices.has_rank()) return c.set_output(0, Shape::unknown());
  const int batch = batch_dims_of(c.attr<int64_t>("batch_dims"), params, indices);
  if (axis_value == nullptr)
    return c.set_output(0, Shape::of_rank(params.rank() + indices.rank() - 1 - batch));
  const int axis = axis_of(*axis_value, params.rank());
  check(axis >= batch, "batch_dims (", batch, ") must be at most axis (", axis, ")");
  Shape out;
  for (int i = 0; i < axis; ++i) out.push_back(params[i]);
  for (int i = batch; i < indices.rank(); ++i) out.push_back(indices[i]);
  for (int i = axis + 1; i < params.rank(); ++i) out.push_back(params[i]);
  c.set_output(0, out);
}

void infer_v1(ShapeContext& c) {
  const Shape params = c.with_rank_at_least(0, 1), indices = c.input(1);
  if (!params.has_rank() || !indices.has_rank()) return c.set_output(0, Shape::unknown());
  Shape out = indices;
  for (int i = 1; i < params.rank(); ++i) out.push_back(params[i]);
  c.set_output(0, out);
}

Output row_sums(Output dy, Output indices, Output params) {
  const auto at = [&](int32_t i) { return constant(dy.graph(), ints({i})); };
  const Output rows =
      strided_slice(shape_of(params), at(0), at(1), at(1), {{"shrink_axis_mask", 1}});
  return segment_sum(dy, indices, rows);
}
void gradient_of_rows(Gradient& g) { g.set_rows(0, g.dy(), g.x(1)); }

// The batch axes and the rows become one axis of all rows, which the indices are numbered along;
// the axes between them go behind it: [b…, p…, i…, j…] is read as [b… · i…, p…, j…], the sums as
// [b… · rows, p…, j…], and the rows' axis is put back.
void gradient_v2(Gradient& g) {
  const Shape &params = g.x(0).shape(), &indices = g.x(1).shape();
  const Tensor axis_value = constant_value(g.x(2));
  check(axis_value.is_valid(), "the gradient of GatherV2 needs a constant axis");
  const auto batch_dims = g.attr<int64_t>("batch_dims");
  if (batch_dims == 0 && to_int64s(axis_value)[0] == 0) {
    gradient_of_rows(g);
    return;
  }
  check(params.has_rank() && indices.has_rank(),
        "the gradient of GatherV2 along an inner axis needs known ranks");
  const int axis = axis_of(axis_value, params.rank()), n = indices.rank();
  const int batch = batch_dims_of(batch_dims, params, indices), between = axis - batch;
  std::vector<int> dy_order, params_order, back;
  const auto add = [](std::vector<int>& order, int begin, int end) {
    for (int i = begin; i < end; ++i) order.push_back(i);
  };
  const int dy_rank = params.rank() - 1 + n - batch, indices_end = axis + n - batch;
  add(dy_order, 0, batch);
  add(dy_order, axis, indices_end);
  add(dy_order, batch, axis);
  add(dy_order, indices_end, dy_rank);
  add(params_order, 0, batch);
  add(params_order, axis, axis + 1);
  add(params_order, batch, axis);
  add(params_order, axis + 1, params.rank());
  add(back, 0, batch);
  add(back, batch + 1, batch + 1 + between);
  add(back, batch, batch + 1);
  add(back, axis + 1, params.rank());

  const Output dy = transpose(g.dy(), dy_order), rows = transpose(g.x(0), params_order);
  if (batch == 0) {
    g.dx(0) = transpose(row_sums(dy, g.x(1), rows), back);
    return;
  }
  const Output extents = shape_of(rows, i64);  // [b…, rows, p…, j…]
  const Output batches = prod(extents[{slice(0, batch)}]), count = extents[batch];
  const Output rest = extents[{slice(batch + 1, none)}];
  const Output first = arange(g.graph(), batches) * count;  // of each element of the batch
  const Output of_each = prod(shape_of(g.x(1), i64)[{slice(batch, none)}]);
  const Output ids = reshape(cast(g.x(1), i64), {batches, of_each}) + expand_dims(first, 1);
  const auto with_rest = [&](Output extent) { return concatenate({expand_dims(extent, 0), rest}); };
  const Output sums =
      segment_sum(reshape(dy, with_rest(batches * of_each)), reshape(ids, {-1}), batches * count);
  g.dx(0) = transpose(reshape(sums, extents), back);
}

const Op gather_op{{
    .name = "Gather",
    .doc = "output[i…, j…] = params[indices[i…], j…].",
    .inputs = {"params: Tparams", "indices: Tindices"},
    .outputs = {"output: Tparams"},
    .attrs = {"validate_indices: bool = true", "Tparams: type", "Tindices: {int32, int64}"},
    .shape = infer_v1,
    .gradient = gradient_of_rows,
    .kernels = and_gather_handles(
        and_for_variants(cpu_moving_kernel("Tparams",
                                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                                             return prepare(t, r, gather_extents(r));
                                           }))),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({1, 0, 1})},
                  .outputs = {floats({3, 2}, {3, 4, 1, 2, 3, 4})}}},
}};

const Op gather_v2_op{{
    .name = "GatherV2",
    .doc = "output[p…, i…, j…] = params[p…, indices[i…], j…], where p… are the axes before `axis`. "
           "The first batch_dims axes are those of both: output[b…, p…, i…, j…] = params[b…, p…, "
           "indices[b…, i…], j…].",
    .inputs = {"params: Tparams", "indices: Tindices", "axis: Taxis"},
    .outputs = {"output: Tparams"},
    .attrs = {"batch_dims: int = 0", "Tparams: type", "Tindices: {int16, int32, int64}",
              "Taxis: {int32, int64}"},
    .shape = infer_v2,
    .gradient = gradient_v2,
    .kernels = and_gather_handles(
        and_for_variants(cpu_moving_kernel("Tparams",
                                           []<class T>(TypeTag<T> t, const KernelRequest& r) {
                                             return prepare(t, r, gather_v2_extents(r));
                                           }))),
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({1, 0, 1}),
                             Tensor::scalar<int32_t>(1)},
                  .outputs = {floats({2, 3}, {2, 1, 2, 4, 3, 4})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({2, 1}, {1, 0}),
                             Tensor::scalar<int32_t>(1)},
                  .attrs = {{"batch_dims", 1}},
                  .outputs = {floats({2, 1}, {2, 3})}}},
    .value_inputs = {2},
}};

// Reads some rows of a variable; batch_dims as in GatherV2, the axis is the first one after them.
void infer_resource(ShapeContext& c) {
  const Shape params = c.with_rank_at_least(0, 1), indices = c.input(1);
  if (!params.has_rank() || !indices.has_rank()) return c.set_output(0, Shape::unknown());
  const int batch = batch_dims_of(c.attr<int64_t>("batch_dims"), params, indices);
  Shape out = indices;
  for (int i = batch + 1; i < params.rank(); ++i) out.push_back(params[i]);
  c.set_output(0, out);
}

const Op resource_gather_op{{
    .name = "ResourceGather",
    .doc = "output[b…, i…, j…] = variable[b…, indices[b…, i…], j…], where b… are the first "
           "batch_dims axes.",
    .inputs = {"resource: resource", "indices: Tindices"},
    .outputs = {"output: dtype"},
    .attrs = {"batch_dims: int = 0", "validate_indices: bool = true", "dtype: type",
              "Tindices: {int32, int64}"},
    .shape = infer_resource,
    .gradient =
        [](Gradient& g) {
          check(g.attr<int64_t>("batch_dims") == 0,
                "the gradient of ResourceGather needs batch_dims = 0");
          gradient_of_rows(g);
        },
    .kernels = {cpu_moving_kernel("dtype",
                                  []<class T>(TypeTag<T> t, const KernelRequest& r) {
                                    return prepare(t, r, resource_gather_extents(r));
                                  })},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), ints({1, 0, 1})},
                  .attrs = {{"dtype", f32}},
                  .outputs = {floats({3, 2}, {3, 4, 1, 2, 3, 4})}}},
    .is_stateful = true,
    .only_reads_state = true,
}};

}  // namespace

GatherExtents gather_extents(const KernelRequest& request) { return extents_of(request, 0, 0); }

GatherExtents gather_v2_extents(const KernelRequest& request) {
  const Shape &params = request.inputs[0].shape, &indices = request.inputs[1].shape;
  return extents_of(request, axis_of(*request.inputs[2].value, params.rank()),
                    batch_dims_of(request.attr<int64_t>("batch_dims"), params, indices));
}

GatherExtents resource_gather_extents(const KernelRequest& request) {
  const Shape &params = request.inputs[0].shape, &indices = request.inputs[1].shape;
  const int batch = batch_dims_of(request.attr<int64_t>("batch_dims"), params, indices);
  return extents_of(request, batch, batch);
}

}  // namespace leat
