// Activations and their gradients, element by element (see kernels/math/functors.h). The gradients
// of the relus are products, as TensorFlow has them: NaN or infinity in dy shows wherever it
// occurs.
#pragma once

#include "kernels/elementwise_ops.h"
#include "kernels/math/curves.h"

namespace leat {
namespace {

struct Relu {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x < T(0) ? T(0) : x;  // NaN stays NaN
  }
};

// A product, as TensorFlow has it: NaN or infinity in dy shows wherever it occurs.
struct ReluGrad {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T dy, T x) const {
    return static_cast<T>(dy * T(x > T(0)));
  }
};

struct Relu6 {
  static constexpr bool is_exact = true;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    const T below = x > T(6) ? T(6) : x;
    return below < T(0) ? T(0) : below;
  }
};

// A product, like ReluGrad.
struct Relu6Grad {
  template <class T>
  LEAT_DEVICE T operator()(T dy, T x) const {
    return static_cast<T>(dy * (x > T(0) && x < T(6) ? T(1) : T(0)));
  }
};

struct LeakyRelu {
  float alpha;
  explicit LeakyRelu(const NodeView& node) : alpha(node.attr<float>("alpha")) {}
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x > T(0) ? x : x * T(alpha);
  }
};

struct LeakyReluGrad {
  float alpha;
  explicit LeakyReluGrad(const NodeView& node) : alpha(node.attr<float>("alpha")) {}
  template <class T>
  LEAT_DEVICE T operator()(T dy, T x) const {
    return x > T(0) ? dy : dy * T(alpha);
  }
};

struct Elu {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x < T(0) ? T(std::expm1(x)) : x;
  }
};

struct EluGrad {
  template <class T>
  LEAT_DEVICE T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(1)) : dy;
  }
};

constexpr double selu_scale = 1.0507009873554804934193349852946;
constexpr double selu_scaled_alpha = 1.7580993408473768599402175208123;

struct Selu {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x < T(0) ? T(selu_scaled_alpha) * T(std::expm1(x)) : T(selu_scale) * x;
  }
};

struct SeluGrad {
  template <class T>
  LEAT_DEVICE T operator()(T dy, T y) const {
    return y < T(0) ? dy * (y + T(selu_scaled_alpha)) : dy * T(selu_scale);
  }
};

struct Softplus {
  static constexpr int cost = 20;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    const T size = x < T(0) ? -x : x;  // exp of a negative number cannot overflow
    return (x > T(0) ? x : x < T(0) ? T(0) : x) + T(std::log1p(std::exp(-size)));
  }
};

struct SoftplusGrad {
  static constexpr int cost = 10;
  template <class T>
  LEAT_DEVICE T operator()(T dy, T x) const {
    return dy / (T(1) + T(std::exp(-x)));
  }
};

struct Softsign {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return x / (T(1) + (x < T(0) ? -x : x));
  }
};

struct SoftsignGrad {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T dy, T x) const {
    const T size = T(1) + (x < T(0) ? -x : x);
    return dy / (size * size);
  }
};

struct Sigmoid {
  static constexpr int cost = 6;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
};

struct SigmoidGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    return dy * (y * (T(1) - y));  // as TensorFlow rounds it
  }
};

struct Tanh {
  static constexpr int cost = 5;
  template <class T>
  LEAT_DEVICE T operator()(T x) const {
    return tanh_of(x);
  }
};

struct TanhGrad {
  template <class T>
  LEAT_DEVICE T operator()(T y, T dy) const {
    return dy * (T(1) - y * y);
  }
};

}  // namespace
}  // namespace leat
