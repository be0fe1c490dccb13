// AdjustHue and AdjustSaturation on the GPU: a thread for each pixel.
#include "kernels/images/adjust_colours.h"

#include "graph/op_def.h"

namespace leat {
namespace cuda {
namespace {

template <class Change, class T>
struct ChangePixel {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    change_pixel(Change(*p.input<float>(1)), p.input<T>(0), i, p.output<T>());
  }
};

template <class Change>
std::vector<Kernel> pixel_kernels() {
  return typed_kernels("T", Types<float, half>{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind_indexed(r, r.inputs[0].shape.elements() / 3, 150, ChangePixel<Change, T>{})
        .sharing(0, 0);
  });
}

const OpKernels hue{"AdjustHue", pixel_kernels<Hue>()};
const OpKernels saturation{"AdjustSaturation", pixel_kernels<Saturation>()};

}  // namespace
}  // namespace cuda
}  // namespace leat
