// leat: cpu+cuda
// All and Any over axes.
#include "kernels/reduction.h"

namespace leat {
namespace {

struct AllReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return true;
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return a & b;
  }
};

struct AnyReducer : Reducer {
  template <class T>
  LEAT_DEVICE static T identity() {
    return false;
  }
  template <class T>
  LEAT_DEVICE static T combine(T a, T b) {
    return a | b;
  }
};

const Op all_op{{
    .name = "All",
    .doc = "output = whether all elements over the axes reduction_indices are true; keep_dims "
           "leaves extent 1.",
    .inputs = {"input: bool", "reduction_indices: Tidx"},
    .outputs = {"output: bool"},
    .attrs = {"keep_dims: bool = false", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .kernels = reduction<AllReducer, Types<bool>>(),
    .examples = {{.inputs = {bools({2, 2}, {true, true, false, true}), ints({1})},
                  .outputs = {bools({true, false})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

const Op any_op{{
    .name = "Any",
    .doc = "output = whether any element over the axes reduction_indices is true; keep_dims leaves "
           "extent 1.",
    .inputs = {"input: bool", "reduction_indices: Tidx"},
    .outputs = {"output: bool"},
    .attrs = {"keep_dims: bool = false", "Tidx: {int32, int64} = int32"},
    .shape = infer_reduction,
    .kernels = reduction<AnyReducer, Types<bool>>(),
    .examples = {{.inputs = {bools({2, 2}, {false, false, false, true}), ints({1})},
                  .outputs = {bools({false, true})}}},
    .value_inputs = {1},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
