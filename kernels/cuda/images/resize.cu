// ResizeBilinear, ResizeBicubic and ResizeNearestNeighbor with their gradients, and ResizeArea, on
// the GPU: a thread for each output adds its taps along both axes (kernels/images/resize_taps.h). A
// gradient has the taps of the resizing turned round, so nothing is added by atomics.
#include <cstring>
#include <memory>
#include <vector>

#include "core/memory/memory_owner.h"
#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/images/resize_taps.h"
#include "kernels/types.h"

namespace leat {
namespace {

// By output: the inputs index[first[i]] to index[first[i + 1] - 1], and their weights.
struct Table {
  std::vector<int32_t> first = {0}, index;
  std::vector<float> weight;

  static Table of(const Taps& taps) {
    Table out;
    for (int64_t i = 0; i < taps.out; ++i) {
      for (int64_t tap = i * taps.count; tap < (i + 1) * taps.count; ++tap)
        out.add(taps.index[tap], taps.weight[tap]);
      out.end();
    }
    return out;
  }
  // Of its gradient: by input, the outputs that it went into.
  static Table turned(const Taps& taps, int64_t in) {
    std::vector<std::vector<std::pair<int64_t, float>>> users(static_cast<size_t>(in));
    for (int64_t i = 0; i < taps.out; ++i) {
      for (int64_t tap = i * taps.count; tap < (i + 1) * taps.count; ++tap)
        users[taps.index[tap]].emplace_back(i, taps.weight[tap]);
    }
    Table out;
    for (const auto& each : users) {
      for (const auto& [index, weight] : each) out.add(index, weight);
      out.end();
    }
    return out;
  }

 private:
  void add(int64_t at, float by) {
    if (by == 0) return;
    index.push_back(static_cast<int32_t>(at));
    weight.push_back(by);
  }
  void end() { first.push_back(static_cast<int32_t>(index.size())); }
};

// A table in the GPU's memory.
struct Axis {
  const int32_t* first;
  const int32_t* index;
  const float* weight;
  int64_t in, out;
};
struct TableThere {
  Tensor memory;
  Axis axis;

  TableThere(Device& device, const Table& table, int64_t in) {
    const auto count = std::ssize(table.first), taps = std::ssize(table.index);
    Tensor host(DType::i32, {count + 2 * taps});
    int32_t* const to = host.data<int32_t>();
    std::copy(table.first.begin(), table.first.end(), to);
    std::copy(table.index.begin(), table.index.end(), to + count);
    if (taps > 0)
      std::memcpy(to + count + taps, table.weight.data(), table.weight.size() * sizeof(float));
    const MemoryOwner owner(MemoryUse::constant);
    memory = Tensor(DType::i32, host.shape(), device.allocate(host.bytes()));
    device.copy_from_host(host.raw(), memory.raw(), host.bytes(),
                          [host, memory = memory](const Status&) {});
    const auto* const there = static_cast<const int32_t*>(memory.raw());
    axis = {there, there + count, reinterpret_cast<const float*>(there + count + taps), in,
            count - 1};
  }
};

// Images that are resized along both axes.
struct Images {
  Axis rows, columns;
  int64_t channels;

  // Output element i: its place along the axes, and the element of the input at row 0, column 0 of
  // its image and channel.
  struct Place {
    int64_t row, column, first;
  };
  LEAT_DEVICE Place place(int64_t i) const {
    const int64_t pixel = i / channels, image = pixel / columns.out / rows.out;
    return {pixel / columns.out % rows.out, pixel % columns.out,
            image * rows.in * columns.in * channels + i % channels};
  }
  LEAT_DEVICE int64_t at(const Place& place, int64_t row, int64_t column) const {
    return place.first + (row * columns.in + column) * channels;
  }
};

// Sums are of type C.
template <class In, class Out, class C>
struct Resample {
  Images images;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const Axis &rows = images.rows, &columns = images.columns;
    const Images::Place place = images.place(i);
    C sum = 0;
    for (int32_t r = rows.first[place.row]; r < rows.first[place.row + 1]; ++r) {
      for (int32_t c = columns.first[place.column]; c < columns.first[place.column + 1]; ++c) {
        const In& value = p.input<In>(0)[images.at(place, rows.index[r], columns.index[c])];
        sum += static_cast<C>(rows.weight[r] * columns.weight[c]) * static_cast<C>(value);
      }
    }
    p.output<Out>()[i] = static_cast<Out>(sum);
  }
};

// The only tap.
template <class T>
struct Pick {
  Images images;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const Images::Place place = images.place(i);
    p.output<T>()[i] = p.input<T>(
        0)[images.at(place, images.rows.index[place.row], images.columns.index[place.column])];
  }
};

struct Tables {
  std::shared_ptr<const TableThere> rows, columns;

  // `x`: the image that is not resized.
  Tables(const KernelRequest& r, Resampling method, const Shape& x, const Shape& y,
         bool is_turned) {
    check(x[1] > 0 && x[2] > 0, "input image must be of non-zero size, got shape ", x);
    check(r.inputs[0].shape[1] > 0 && r.inputs[0].shape[2] > 0,
          "input image must be of non-zero size, got shape ", r.inputs[0].shape);
    const auto along = [&](int axis) {
      const Taps taps = y.elements() == 0 ? Taps() : taps_along(r.node, method, x[axis], y[axis]);
      check(taps.count * taps.out <= INT32_MAX, "an image of ", y[axis], " pixels is too large");
      const Table table = is_turned ? Table::turned(taps, x[axis]) : Table::of(taps);
      return std::make_shared<const TableThere>(r.device, table, is_turned ? y[axis] : x[axis]);
    };
    rows = along(1);
    columns = along(2);
  }

  template <template <class...> class F, class... Types>
  BoundKernel bind(const KernelRequest& r) const {
    const TensorSpec& out = r.outputs[0];
    BoundKernel kernel = bind_indexed(r, out.shape.elements(), 0,
                                      F<Types...>{{rows->axis, columns->axis, out.shape[3]}});
    // The tables live as long as the kernel.
    struct Kept {
      std::shared_ptr<const void> bound;
      Tables tables;
    };
    const auto kept = std::make_shared<Kept>(Kept{kernel.bound, *this});
    kernel.bound = std::shared_ptr<const void>(kept, kernel.bound.get());
    return kernel;
  }
};

using ImageTypes =
    Types<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

template <class Supported, class Prepare>
std::vector<Kernel> kernels(Supported, Prepare prepare) {
  return {{.device = DeviceType::gpu,
           .types = {{"T", Supported::list()}},
           .prepare = [prepare](const KernelRequest& r) {
             if (r.outputs[0].shape.elements() == 0) return BoundKernel{};
             const DType dtype = r.attr<DType>("T");
             return visit_type(Supported{}, dtype,
                               [&](auto tag) { return BoundKernel(prepare(tag, r)); });
           }}};
}

template <Resampling method>
std::vector<Kernel> resize() {
  return kernels(ImageTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return Tables(r, method, r.inputs[0].shape, r.outputs[0].shape, false)
        .template bind<Resample, T, float, float>(r);
  });
}

// With elements of type D, or of the images' if that is void.
template <Resampling method, class D, class Supported>
std::vector<Kernel> gradient() {
  return kernels(Supported{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    using Given = std::conditional_t<std::is_void_v<D>, T, D>;
    return Tables(r, method, r.outputs[0].shape, r.inputs[0].shape, true)
        .template bind<Resample, Given, T, ComputeType<T>>(r);
  });
}

const OpKernels bilinear{"ResizeBilinear", resize<Resampling::bilinear>()};
const OpKernels bicubic{"ResizeBicubic", resize<Resampling::bicubic>()};
const OpKernels area{"ResizeArea", resize<Resampling::area>()};
const OpKernels bilinear_gradient{"ResizeBilinearGrad",
                                  gradient<Resampling::bilinear, float, FloatTypes>()};
const OpKernels bicubic_gradient{"ResizeBicubicGrad",
                                 gradient<Resampling::bicubic, float, Types<float, double>>()};
const OpKernels nearest_gradient{
    "ResizeNearestNeighborGrad",
    gradient<Resampling::nearest, void,
             Types<float, double, half, bfloat16, uint8_t, int8_t, int32_t>>()};
const OpKernels nearest{
    "ResizeNearestNeighbor", kernels(ImageTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
      return Tables(r, Resampling::nearest, r.inputs[0].shape, r.outputs[0].shape, false)
          .template bind<Pick, T>(r);
    })};

}  // namespace
}  // namespace leat
