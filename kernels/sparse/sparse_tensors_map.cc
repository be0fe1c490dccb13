// AddSparseToTensorsMap, AddManySparseToTensorsMap and TakeManySparseFromTensorsMap: sparse tensors
// wait in a map of their task while a queue carries their numbers. tf.train.batch uses them.
#include <map>
#include <mutex>

#include "core/state/resource.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/execute.h"
#include "kernels/extents.h"
#include "kernels/named_resource.h"
#include "kernels/sparse/sparse_batch.h"
#include "kernels/sparse/sparse_tensor.h"

namespace leat {
namespace {

class SparseTensorsMap : public Resource {
 public:
  using Resource::Resource;

  // Any Add and Take may share a map, whatever the dtypes.
  void check_fits(const NodeView&) const override {}
  std::string state() const override {
    const std::lock_guard lock(mutex_);
    return concat("SparseTensorsMap '", name(), "' has ", tensors_.size(), " sparse tensors");
  }

  int64_t add(std::shared_ptr<const SparseValue> tensor) {
    const std::lock_guard lock(mutex_);
    tensors_.emplace(next_, std::move(tensor));
    return next_++;
  }

  // Removes the tensors from the map.
  std::vector<SparseValue> take(std::span<const int64_t> handles) {
    std::vector<SparseValue> out;
    const std::lock_guard lock(mutex_);
    for (const int64_t handle : handles) {
      const auto found = tensors_.find(handle);
      check(found != tensors_.end(), "Unable to find SparseTensor: ", handle, " in map: ", name(),
            ": it was already taken, or the op that added it has another shared_name");
      out.push_back(*found->second);
      tensors_.erase(found);
    }
    return out;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int64_t, std::shared_ptr<const SparseValue>> tensors_;
  int64_t next_ = 0;
};

SparseTensorsMap& map_of(ExecuteContext& c) { return own_resource<SparseTensorsMap>(c); }

void add(ExecuteContext& c) {
  check_sparse(c.input(0), c.input(1), c.input(2));
  check_dense_shape(c.input(2));
  c.set_output(0, Tensor::scalar(map_of(c).add(std::make_shared<const SparseValue>(
                      SparseValue{c.input(0), c.input(1), c.input(2)}))));
}

// As in TensorFlow, numbers the elements with entries first, then the empty ones.
void add_many(ExecuteContext& c) {
  constexpr uint64_t bytes_per_element = 80;  // of the map
  const SparseRows rows(c.input(0), c.input(1), c.input(2));
  check_memory_for(rows.size(), bytes_per_element);
  const auto empty = std::make_shared<const SparseValue>(rows.empty());
  check_dense_shape(empty->shape);
  Tensor handles(DType::i64, {rows.size()});
  auto* out = handles.data<int64_t>();
  std::fill_n(out, rows.size(), -1);
  SparseTensorsMap& map = map_of(c);
  for (int64_t group = 0; group < rows.groups(); ++group)
    out[rows.row_of(group)] = map.add(std::make_shared<const SparseValue>(rows.element(group)));
  for (int64_t row = 0; row < rows.size(); ++row) {
    if (out[row] < 0) out[row] = map.add(empty);
  }
  c.set_output(0, std::move(handles));
}

void take_many(ExecuteContext& c) {
  const Tensor& handles = c.input(0);
  check(handles.shape().rank() == 1, "sparse_handles should be a vector but received shape ",
        handles.shape());
  check(handles.elements() > 0,
        "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
  SparseValue out = batch_of(map_of(c).take(handles.span<int64_t>()), c.node().attr<DType>("dtype"),
                             {handles.elements()});
  c.set_output(0, std::move(out.indices));
  c.set_output(1, std::move(out.values));
  c.set_output(2, std::move(out.shape));
}

const char* const container = "container: string = ''";
const char* const shared_name = "shared_name: string = ''";

OpDef map_op(OpDef op, Execute execute) {
  op.attrs.insert(op.attrs.end(), {container, shared_name});
  op.kernels = {{.execute = std::move(execute)}};
  op.is_stateful = true;
  op.make_resource = make_named<SparseTensorsMap>;
  op.is_not_differentiable = true;
  return op;
}

const Op add_op(map_op(
    {
        .name = "AddSparseToTensorsMap",
        .doc = "sparse_handle = the number under which the sparse tensor is now in the map called "
               "shared_name (or like the node) in `container`.",
        .inputs = {"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"},
        .outputs = {"sparse_handle: int64"},
        .attrs = {"T: type"},
        .shape =
            [](ShapeContext& c) {
              infer_sparse_ranks(c);
              c.set_output(0, {});
            },
    },
    add));

const Op add_many_op(map_op(
    {
        .name = "AddManySparseToTensorsMap",
        .doc = "sparse_handles[i] = AddSparseToTensorsMap of the i-th element along the first "
               "axis, whose entries must be in row-major order.",
        .inputs = {"sparse_indices: int64", "sparse_values: T", "sparse_shape: int64"},
        .outputs = {"sparse_handles: int64"},
        .attrs = {"T: type"},
        .shape =
            [](ShapeContext& c) {
              infer_sparse_ranks(c);
              c.set_output(0, {any});
            },
    },
    add_many));

const Op take_many_op(map_op(
    {
        .name = "TakeManySparseFromTensorsMap",
        .doc =
            "The sparse tensor whose i-th element along its first axis is number sparse_handles[i] "
            "of the map, which leaves it; every other extent is the largest among the elements.",
        .inputs = {"sparse_handles: int64"},
        .outputs = {"sparse_indices: int64", "sparse_values: dtype", "sparse_shape: int64"},
        .attrs = {"dtype: type"},
        .shape =
            [](ShapeContext& c) {
              c.with_rank(0, 1);
              c.set_output(0, {any, any});
              c.set_output(1, {any});
              c.set_output(2, {any});
            },
    },
    take_many));

}  // namespace
}  // namespace leat
