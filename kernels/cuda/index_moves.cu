// Ops whose indices say where an element comes from: GatherNd, ReverseSequence, Roll,
// InvertPermutation, MirrorPad with its gradient. As in TensorFlow, an index out of range gives
// zeros: a kernel cannot report it.
#include "graph/op_def.h"
#include "kernels/arrays/mirror_pad.h"
#include "kernels/arrays/reverse_sequence.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/index_vectors.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace {

// ---- GatherNd, ResourceGatherNd

template <class T, class Index>
struct MoveSlices {
  IndexVectors vectors;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t slice = vectors.slice_of(p.input<Index>(1) + i / vectors.slice * vectors.depth);
    p.output<T>()[i] = slice < 0 ? T{} : p.input<T>(0)[slice * vectors.slice + i % vectors.slice];
  }
};

std::vector<Kernel> gather_kernels(const char* type_attr) {
  return moving_kernels(type_attr, []<class T>(TypeTag<T>, const KernelRequest& r) {
    const int64_t n = r.outputs[0].shape.elements();
    const IndexVectors vectors(r.inputs[1].shape, r.inputs[0].shape);
    switch (r.inputs[1].dtype) {
      case DType::i64:
        return bind_indexed(r, n, 0, MoveSlices<T, int64_t>{vectors});
      case DType::i16:
        return bind_indexed(r, n, 0, MoveSlices<T, int16_t>{vectors});
      default:
        return bind_indexed(r, n, 0, MoveSlices<T, int32_t>{vectors});
    }
  });
}

const OpKernels gather_nd{"GatherNd", gather_kernels("Tparams")};
const OpKernels resource_gather_nd{"ResourceGatherNd", gather_kernels("dtype")};

// ---- ReverseSequence

template <class T, class Length>
struct ReverseElements {
  SequenceExtents e;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    int64_t n = p.input<Length>(1)[e.sequence_of(i)];
    n = n < e.length ? n : e.length;
    p.output<T>()[i] = p.input<T>(0)[e.source_of(i, n)];
  }
};

const OpKernels reverse_sequence{
    "ReverseSequence", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
      const int64_t n = r.outputs[0].shape.elements();
      const SequenceExtents e = sequence_extents(r);
      return r.inputs[1].dtype == DType::i64
                 ? bind_indexed(r, n, 0, ReverseElements<T, int64_t>{e})
                 : bind_indexed(r, n, 0, ReverseElements<T, int32_t>{e});
    })};

// ---- Roll

template <class T, class Shift, class Axis>
struct RollElements {
  int rank, shifts;
  int64_t extents[Shape::max_rank];

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    int64_t from = 0, rest = i, stride = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t extent = extents[axis];
      int64_t shift = 0;
      for (int s = 0; s < shifts; ++s) {
        const int64_t named = p.input<Axis>(2)[s];
        if ((named < 0 ? named + rank : named) == axis)
          shift = (shift + p.input<Shift>(1)[s] % extent) % extent;
      }
      const int64_t index = (rest % extent - shift + extent) % extent;
      from += index * stride;
      stride *= extent;
      rest /= extent;
    }
    p.output<T>()[i] = p.input<T>(0)[from];
  }
};

template <class T, class Shift, class Axis>
BoundKernel bind_roll(const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  RollElements<T, Shift, Axis> f{shape.rank(), static_cast<int>(r.inputs[2].shape.elements()), {}};
  for (int i = 0; i < shape.rank(); ++i) f.extents[i] = shape[i];
  return bind_indexed(r, shape.elements(), 0, f);
}

const OpKernels roll{
    "Roll", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
      const bool wide_shift = r.inputs[1].dtype == DType::i64;
      if (r.inputs[2].dtype == DType::i64)
        return wide_shift ? bind_roll<T, int64_t, int64_t>(r) : bind_roll<T, int32_t, int64_t>(r);
      return wide_shift ? bind_roll<T, int64_t, int32_t>(r) : bind_roll<T, int32_t, int32_t>(r);
    })};

// ---- InvertPermutation

// Looks for the place of i, so that numbers that are no permutation leave no element unwritten.
template <class T>
struct FindPlace {
  int64_t n;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    T place = -1;
    for (int64_t k = 0; k < n && place < 0; ++k)
      if (p.input<T>(0)[k] == static_cast<T>(i)) place = static_cast<T>(k);
    p.output<T>()[i] = place;
  }
};

const OpKernels invert_permutation{
    "InvertPermutation", {{.device = DeviceType::gpu, .prepare = [](const KernelRequest& r) {
                             const int64_t n = r.inputs[0].shape[0];
                             return r.inputs[0].dtype == DType::i64
                                        ? bind_indexed(r, n, 0, FindPlace<int64_t>{n})
                                        : bind_indexed(r, n, 0, FindPlace<int32_t>{n});
                           }}}};

// ---- MirrorPad, MirrorPadGrad

struct MirrorAxes {
  int rank = 0;
  int64_t edge = 0;
  int64_t inner[Shape::max_rank] = {}, padded[Shape::max_rank] = {}, before[Shape::max_rank] = {};

  MirrorAxes(const KernelRequest& r, const Shape& inner_shape, const Shape& padded_shape)
      : rank(inner_shape.rank()), edge(r.attr<std::string>("mode") == "SYMMETRIC" ? 1 : 0) {
    const std::vector<int64_t> paddings = to_int64s(*r.inputs[1].value);
    for (int i = 0; i < rank; ++i) {
      inner[i] = inner_shape[i];
      padded[i] = padded_shape[i];
      before[i] = paddings[2 * i];
    }
  }
};

template <class T>
struct Mirror {
  MirrorAxes axes;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    int64_t from = 0, rest = i, stride = 1;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      from += mirrored(rest % axes.padded[axis], axes.before[axis], axes.inner[axis], axes.edge) *
              stride;
      stride *= axes.inner[axis];
      rest /= axes.padded[axis];
    }
    p.output<T>()[i] = p.input<T>(0)[from];
  }
};

// The elements of dy that mirror an inner element, in their order: along each axis there are up to
// three, in the border before, inside and in the border after.
template <class T>
struct FoldBack {
  MirrorAxes axes;

  // Index of image `which` of inner index k along an axis; -1 if there is none.
  LEAT_DEVICE int64_t image(int axis, int64_t k, int which) const {
    const int64_t n = axes.inner[axis], before = axes.before[axis];
    if (which == 1) return before + k;
    const int64_t at = before + (which == 0 ? -axes.edge - k : 2 * (n - 1) + axes.edge - k);
    const bool is_there =
        which == 0 ? at >= 0 && at < before : at >= before + n && at < axes.padded[axis];
    return is_there ? at : -1;
  }
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    using C = ComputeType<T>;
    int64_t index[Shape::max_rank];
    int64_t rest = i, images = 1;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      index[axis] = rest % axes.inner[axis];
      rest /= axes.inner[axis];
      images *= 3;
    }
    T total = static_cast<T>(C(0));
    for (int64_t k = 0; k < images; ++k) {
      int64_t from = 0, stride = 1, choice = k;
      bool is_there = true;
      for (int axis = axes.rank - 1; axis >= 0; --axis) {
        const int64_t at = image(axis, index[axis], static_cast<int>(choice % 3));
        is_there = is_there && at >= 0;
        from += at * stride;
        stride *= axes.padded[axis];
        choice /= 3;
      }
      if (is_there)
        total = static_cast<T>(cuda::widened(total) + cuda::widened(p.input<T>(0)[from]));
    }
    p.output<T>()[i] = total;
  }
};

const OpKernels mirror_pad{
    "MirrorPad", moving_kernels("T", []<class T>(TypeTag<T>, const KernelRequest& r) {
      const Shape &inner = r.inputs[0].shape, &padded = r.outputs[0].shape;
      return bind_indexed(r, padded.elements(), 0, Mirror<T>{MirrorAxes(r, inner, padded)});
    })};

const OpKernels mirror_pad_grad{
    "MirrorPadGrad",
    {{.device = DeviceType::gpu,
      .types = {{"T", NumberTypes::list()}},
      .prepare = [](const KernelRequest& r) {
        const Shape &inner = r.outputs[0].shape, &padded = r.inputs[0].shape;
        return visit_type(NumberTypes{}, r.inputs[0].dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          return bind_indexed(r, inner.elements(), 0, FoldBack<T>{MirrorAxes(r, inner, padded)});
        });
      }}}};

}  // namespace
}  // namespace leat
