// Local response normalisation and its gradient on the GPU: a thread for each channel of a pixel,
// which goes through its neighbours.
#include "graph/op_def.h"
#include "kernels/cuda_launch.cuh"
#include "kernels/neural/lrn.h"
#include "kernels/types.h"

namespace leat {
namespace {

// Of the channels of a pixel.
struct Neighbours {
  Normalisation by;
  int64_t channels;

  LEAT_DEVICE int64_t begin(int64_t c) const { return c > by.radius ? c - by.radius : 0; }
  LEAT_DEVICE int64_t end(int64_t c) const {
    return c + by.radius + 1 < channels ? c + by.radius + 1 : channels;
  }
  // bias + alpha * the sum of the squares of the neighbours of channel c.
  template <class T>
  LEAT_DEVICE float norm(const T* pixel, int64_t c) const {
    float squares = 0;
    for (int64_t k = begin(c); k < end(c); ++k)
      squares += cuda::widened(pixel[k]) * cuda::widened(pixel[k]);
    return by.bias + by.alpha * squares;
  }
  LEAT_DEVICE float factor(float norm) const { return std::pow(norm, -by.beta); }
};

template <class T>
struct Normalise {
  Neighbours of;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const T* const x = p.input<T>(0);
    const int64_t c = i % of.channels;
    const float factor = of.factor(of.norm(x + i - c, c));
    p.output<T>()[i] = static_cast<T>(cuda::widened(x[i]) * factor);
  }
};

template <class T>
struct Differentiate {
  Neighbours of;
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const int64_t c = i % of.channels, pixel = i - c;
    const T *const dy = p.input<T>(0) + pixel, *const x = p.input<T>(1) + pixel,
                   *const y = p.input<T>(2) + pixel;
    float slopes = 0;
    for (int64_t k = of.begin(c); k < of.end(c); ++k)
      slopes += cuda::widened(y[k]) / of.norm(x, k) * cuda::widened(dy[k]);
    const float through_norm = -2 * of.by.alpha * of.by.beta * slopes * cuda::widened(x[c]);
    p.output<T>()[i] =
        static_cast<T>(through_norm + of.factor(of.norm(x, c)) * cuda::widened(dy[c]));
  }
};

using LrnTypes = Types<float, half, bfloat16>;

template <template <class> class F>
std::vector<Kernel> kernels() {
  return {{.device = DeviceType::gpu,
           .types = {{"T", LrnTypes::list()}},
           .prepare = [](const KernelRequest& r) {
             const Shape& shape = r.outputs[0].shape;
             return visit_type(LrnTypes{}, r.outputs[0].dtype, [&](auto tag) {
               using T = typename decltype(tag)::type;
               return bind_indexed(r, shape.elements(), 0, F<T>{{Normalisation(r.node), shape[3]}});
             });
           }}};
}

const OpKernels lrn{"LRN", kernels<Normalise>()};
const OpKernels lrn_gradient{"LRNGrad", kernels<Differentiate>()};

}  // namespace
}  // namespace leat
