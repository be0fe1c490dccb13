// leat: cpu+cuda
// LowerBound and UpperBound: the place of numbers in sorted rows.
#include <string>

#include "kernels/elementwise.h"

namespace leat {
namespace {

// The entries of the sorted row that are less than a value, or, with `counts_equal`, at most it.
template <class T, class Out>
struct CountBelow {
  int64_t entries, values;  // of each row
  bool counts_equal;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const T* const row = p.input<T>(0) + i / values * entries;
    const T& value = p.input<T>(1)[i];
    int64_t first = 0, count = entries;
    while (count > 0) {
      const int64_t half_count = count / 2;
      const T& entry = row[first + half_count];
      const bool is_below = counts_equal ? !(value < entry) : entry < value;
      first = is_below ? first + half_count + 1 : first;
      count = is_below ? count - half_count - 1 : half_count;
    }
    p.output<Out>()[i] = static_cast<Out>(first);
  }
};

template <class T, class Out>
BoundKernel bind_bound(const KernelRequest& r, bool counts_equal) {
  const int64_t entries = r.inputs[0].shape[1], values = r.inputs[1].shape[1];
  return bind_indexed(r, r.outputs[0].shape.elements(), 200,
                      CountBelow<T, Out>{entries, values, counts_equal});
}

using SortedTypes =
    std::conditional_t<has_host_types,
                       Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                             uint64_t, half, bfloat16, float, double, std::string>,
                       NumberTypes>;

std::vector<Kernel> bound_kernels(bool counts_equal) {
  return typed_kernels(
      "T", SortedTypes{}, [counts_equal]<class T>(TypeTag<T>, const KernelRequest& r) {
        return r.attr<DType>("out_type") == DType::i64 ? bind_bound<T, int64_t>(r, counts_equal)
                                                       : bind_bound<T, int32_t>(r, counts_equal);
      });
}

OpDef bound_op(std::string name, std::string doc, bool upper, Tensor expected) {
  return {
      .name = std::move(name),
      .doc =
          "output[r, i] = the number of entries of the sorted row sorted_inputs[r, :] that are " +
          std::move(doc) + " values[r, i].",
      .inputs = {"sorted_inputs: T", "values: T"},
      .outputs = {"output: out_type"},
      .attrs = {"T: type", "out_type: {int32, int64} = int32"},
      .shape =
          [](ShapeContext& c) {
            const Shape sorted = c.with_rank(0, 2), values = c.with_rank(1, 2);
            check(sorted[0] == any || values[0] == any || sorted[0] == values[0],
                  "Leading dim_size of both tensors must match: ", sorted, " and ", values);
            c.set_output(0, values);
          },
      .kernels = bound_kernels(upper),
      .examples = {{.inputs = {floats({1, 4}, {1, 3, 3, 5}), floats({1, 3}, {0, 3, 9})},
                    .outputs = {std::move(expected)}}},
      .is_not_differentiable = true,
  };
}

const Op lower_bound_op{bound_op("LowerBound", "less than", false, ints({1, 3}, {0, 1, 4}))};
const Op upper_bound_op{bound_op("UpperBound", "at most", true, ints({1, 3}, {0, 3, 4}))};

}  // namespace
}  // namespace leat
