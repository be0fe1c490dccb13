// Tensors that are made of a few values: Fill, Empty, Range, LinSpace, OneHot.
#include "graph/op_def.h"
#include "kernels/cpu.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

// ---- Fill, Empty

template <int value_input>  // -1: zeros
std::vector<Kernel> fill_kernels(const char* type_attr) {
  return moving_kernels(type_attr, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return BoundKernel::of([n = r.outputs[0].shape.elements()](const Arguments& a) {
      const T* value = nullptr;
      if constexpr (value_input >= 0) value = a.input<T>(value_input);
      fill_elements(a, a.output<T>(), n, value);
    });
  });
}

const OpKernels fill{"Fill", fill_kernels<1>("T")};
const OpKernels empty{"Empty", fill_kernels<-1>("dtype")};

// ---- Range, LinSpace

using RangeTypes = Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint16_t,
                         uint32_t, uint64_t>;

template <class T>
struct Progression {
  ComputeType<T> start, delta;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    p.output<T>()[i] = static_cast<T>(start + static_cast<C>(i) * delta);
  }
};

const OpKernels range{"Range",
                      {{.device = DeviceType::gpu,
                        .types = {{"Tidx", RangeTypes::list()}},
                        .prepare = [](const KernelRequest& r) {
                          return visit_type(RangeTypes{}, r.outputs[0].dtype, [&](auto tag) {
                            using T = typename decltype(tag)::type;
                            using C = ComputeType<T>;
                            return bind_indexed(
                                r, r.outputs[0].shape[0], 0,
                                Progression<T>{static_cast<C>(r.inputs[0].value->item<T>()),
                                               static_cast<C>(r.inputs[2].value->item<T>())});
                          });
                        }}}};

// The ends are exact, infinities included.
template <class T>
struct Spaced {
  int64_t count;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    const C start = cuda::widened(p.input<T>(0)[0]), stop = cuda::widened(p.input<T>(1)[0]);
    const C step = count > 1 ? (stop - start) / static_cast<C>(count - 1) : C(0);
    const C value = i == 0 ? start : i == count - 1 ? stop : start + step * static_cast<C>(i);
    p.output<T>()[i] = static_cast<T>(value);
  }
};

const OpKernels lin_space{"LinSpace",
                          {{.device = DeviceType::gpu,
                            .types = {{"T", FloatTypes::list()}},
                            .prepare = [](const KernelRequest& r) {
                              const int64_t n = r.outputs[0].shape[0];
                              return visit_type(FloatTypes{}, r.outputs[0].dtype, [&](auto tag) {
                                using T = typename decltype(tag)::type;
                                return bind_indexed(r, n, 0, Spaced<T>{n});
                              });
                            }}}};

// ---- OneHot

// The output as [prefix, depth, suffix], the indices as [prefix, suffix].
template <class T, class Index>
struct IsHot {
  int64_t depth, suffix;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t row = i / suffix, at = row / depth * suffix + i % suffix;
    const bool is_on = static_cast<int64_t>(p.input<Index>(0)[at]) == row % depth;
    p.output<T>()[i] = p.input<T>(is_on ? 2 : 3)[0];
  }
};

template <class T, class Index>
BoundKernel bind_one_hot(const KernelRequest& r) {
  const Shape &indices = r.inputs[0].shape, &out = r.outputs[0].shape;
  const int64_t axis_attr = r.attr<int64_t>("axis");
  const int axis =
      axis_attr == -1 ? indices.rank() : normalized_axis(axis_attr, indices.rank() + 1);
  int64_t suffix = 1;
  for (int i = axis; i < indices.rank(); ++i) suffix *= indices[i];
  return bind_indexed(r, out.elements(), 0, IsHot<T, Index>{out[axis], suffix});
}

const OpKernels one_hot{"OneHot",
                        moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
                          switch (r.attr<DType>("TI")) {
                            case DType::u8:
                              return bind_one_hot<T, uint8_t>(r);
                            case DType::i8:
                              return bind_one_hot<T, int8_t>(r);
                            case DType::i32:
                              return bind_one_hot<T, int32_t>(r);
                            default:
                              return bind_one_hot<T, int64_t>(r);
                          }
                        })};

}  // namespace
}  // namespace leat
