// leat: cpu+cuda
// ArgMax and ArgMin.
#include <limits>

#include "kernels/reduction.h"

namespace leat {
namespace {

// NaN is never better, and the search starts with the worst number: NaN is chosen only where all
// are NaN.
struct Larger {
  template <class T>
  static constexpr T worst = std::numeric_limits<T>::lowest();
  template <class T>
  LEAT_DEVICE bool operator()(T a, T b) const {
    return a > b;
  }
};
struct Smaller {
  template <class T>
  static constexpr T worst = std::numeric_limits<T>::max();
  template <class T>
  LEAT_DEVICE bool operator()(T a, T b) const {
    return a < b;
  }
};

// The first of the best of adjacent elements. The search for the best in a block has no branches;
// only the block that has it is searched for its place.
template <class Better, class T>
LEAT_DEVICE int64_t best_of_adjacent(const T* from, int64_t extent) {
  using C = ComputeType<T>;
  constexpr int64_t block = 256, lanes = 32;
  constexpr C worst = Better::template worst<C>;
  C best = worst;
  int64_t best_block = 0;
  for (int64_t first = 0; first < extent; first += block) {
    const T* in = from + first;
    const int64_t n = extent - first < block ? extent - first : block;
    C found[lanes];
    for (C& value : found) value = worst;
    const auto look = [&](int64_t lane, C candidate) {
      found[lane] = Better{}(candidate, found[lane]) ? candidate : found[lane];
    };
    int64_t k = 0;
    for (; k + lanes <= n; k += lanes) {
      for (int64_t lane = 0; lane < lanes; ++lane) look(lane, in[k + lane]);
    }
    for (; k < n; ++k) look(0, in[k]);
    for (int64_t lane = 1; lane < lanes; ++lane) look(0, found[lane]);
    if (Better{}(found[0], best)) {
      best = found[0];
      best_block = first;
    }
  }
  int64_t at = best_block;
  while (at < extent && !(static_cast<C>(from[at]) == best)) ++at;
  return best == worst ? 0 : at;
}

// The first of the best among `extent` elements that lie `inner` apart.
template <class Better, class T>
struct FindBest {
  int64_t extent;
  int64_t inner;
  int index_bytes;  // of an element of the output: 2, 4 or 8

  LEAT_DEVICE void operator()(int64_t i, const Pointers& pointers) const {
    const T* from = pointers.input<T>(0) + i / inner * extent * inner + i % inner;
    const int64_t at = place_of_best(from);
    if (index_bytes == 8) {
      pointers.output<int64_t>()[i] = at;
    } else if (index_bytes == 4) {
      pointers.output<int32_t>()[i] = static_cast<int32_t>(at);
    } else {
      pointers.output<uint16_t>()[i] = static_cast<uint16_t>(at);
    }
  }

 private:
  LEAT_DEVICE int64_t place_of_best(const T* from) const {
    if constexpr (has_host_types) {  // a GPU reads with one thread per result
      if (inner == 1) return best_of_adjacent<Better>(from, extent);
    }
    ComputeType<T> best = Better::template worst<ComputeType<T>>;
    int64_t at = 0;
    for (int64_t k = 0; k < extent; ++k) {
      const ComputeType<T> candidate = from[k * inner];
      if (Better{}(candidate, best)) {
        best = candidate;
        at = k;
      }
    }
    return at;
  }
};

int the_axis(const Tensor& dimension, int rank) {
  check(dimension.shape().rank() == 0, "dimension must be a scalar, got shape ", dimension.shape());
  const int64_t axis = to_int64s(dimension)[0];
  check(axis >= -rank && axis < rank, "Expected dimension in the range [", -rank, ", ", rank,
        "), but got ", axis);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void infer_arg(ShapeContext& c) {
  const Shape& input = c.input(0);
  const Tensor* dimension = c.value(1);
  if (!input.has_rank()) return c.set_output(0, Shape::unknown());
  check(input.rank() > 0, "the input must have at least one axis");
  if (dimension == nullptr) return c.set_output(0, Shape::of_rank(input.rank() - 1));
  const int skipped = the_axis(*dimension, input.rank());
  Shape output;
  for (int axis = 0; axis < input.rank(); ++axis) {
    if (axis != skipped) output.push_back(input[axis]);
  }
  c.set_output(0, output);
}

template <class Better, class Indices>
std::vector<Kernel> arg_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", NumberAndBoolTypes::list()}, {"output_type", Indices::list()}};
  kernel.host_inputs = {1};
  kernel.prepare = [](const KernelRequest& request) {
    const Shape& shape = request.inputs[0].shape;
    const int axis = the_axis(*request.inputs[1].value, shape.rank());
    int64_t inner = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    const int64_t outputs = request.outputs[0].shape.elements();
    check(shape[axis] > 0 || outputs == 0, "Reduction axis ", axis, " is empty in shape ", shape);
    const int index_bytes = static_cast<int>(dtype_size(request.outputs[0].dtype));
    return visit_type(NumberAndBoolTypes{}, request.inputs[0].dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return bind_indexed(request, outputs, 10 * shape[axis],
                          FindBest<Better, T>{shape[axis], inner, index_bytes});
    });
  };
  return {kernel};
}

const Op arg_max_op{{
    .name = "ArgMax",
    .doc = "output = the index along axis `dimension` of the largest element; the first one if "
           "several are equal.",
    .inputs = {"input: T", "dimension: Tidx"},
    .outputs = {"output: output_type"},
    .attrs = {"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, bool}",
              "Tidx: {int16, int32, int64} = int32",
              "output_type: {int16, uint16, int32, int64} = int64"},
    .shape = infer_arg,
    .kernels = arg_kernels<Larger, Types<int16_t, uint16_t, int32_t, int64_t>>(),
    .examples = {{.inputs = {floats({2, 3}, {1, 5, 2, 9, 3, 9}), Tensor::scalar(1)},
                  .outputs = {longs({1, 0})}},
                 {.inputs = {floats({2, 3}, {1, 5, 2, 9, 3, 9}), Tensor::scalar(-2)},
                  .outputs = {longs({1, 0, 1})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

const Op arg_min_op{{
    .name = "ArgMin",
    .doc = "output = the index along axis `dimension` of the smallest element; the first one if "
           "several are equal.",
    .inputs = {"input: T", "dimension: Tidx"},
    .outputs = {"output: output_type"},
    .attrs = {"T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
              "uint32, uint64, bool}",
              "Tidx: {int32, int64} = int32", "output_type: {int32, int64} = int64"},
    .shape = infer_arg,
    .kernels = arg_kernels<Smaller, Types<int32_t, int64_t>>(),
    .examples = {{.inputs = {floats({2, 3}, {1, 5, 2, 9, 3, 9}), Tensor::scalar(1)},
                  .outputs = {longs({0, 1})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
