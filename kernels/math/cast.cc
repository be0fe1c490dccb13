// leat: cpu+cuda
// Cast: every number type and bool to every other; a complex number becomes its real part.
#include <bit>

#include "kernels/elementwise.h"

namespace leat {
namespace {

// The types that mixed-precision programs and shape arithmetic cast between.
template <class T>
inline constexpr bool is_common = std::is_floating_point_v<ComputeType<T>> ||
                                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <class To>
struct Convert {
  static constexpr bool has_versions = is_common<To>;

  template <class T>
  LEAT_DEVICE ComputeType<To> operator()(T x) const {
    if constexpr (is_complex_type<T>) {
      if constexpr (is_complex_type<To>) {
        return To(x);
      } else {
        return (*this)(x.real());
      }
    } else if constexpr (is_complex_type<To>) {
      return To(static_cast<typename To::value_type>(x));
    } else if constexpr (std::is_same_v<To, bool>) {
      return x != T(0);
    } else if constexpr (std::is_same_v<T, bool>) {
      return x ? ComputeType<To>(1) : ComputeType<To>(0);
    } else {
      return static_cast<ComputeType<To>>(x);
    }
  }
};

using CastTypes = std::conditional_t<has_host_types, NumberComplexAndBoolTypes, NumberAndBoolTypes>;

// The number of low mantissa bits that Truncate sets to 0: those that do not fit into the result.
// TensorFlow treats complex64 as a type without any bits where it casts a double, and truncates to
// bfloat16 only from float.
template <class From, class To>
constexpr int dropped_bits() {
  if constexpr (std::is_same_v<From, complex128> && std::is_same_v<To, complex64>) {
    return dropped_bits<double, float>();
  } else if constexpr (std::is_same_v<From, complex128>) {
    return std::is_same_v<To, bfloat16> ? 0 : dropped_bits<double, To>();
  } else if constexpr (std::is_same_v<From, complex64>) {
    return std::is_same_v<To, half> ? dropped_bits<float, half>() : 0;
  } else if constexpr (std::is_same_v<From, double>) {
    if (std::is_same_v<To, complex64>) return 53;
    return std::is_same_v<To, float> ? 29 : std::is_same_v<To, half> ? 42 : 0;
  } else if constexpr (std::is_same_v<From, float>) {
    return std::is_same_v<To, bfloat16> ? 16 : std::is_same_v<To, half> ? 13 : 0;
  } else {
    return 0;
  }
}

// Convert with Truncate: drops the bits that do not fit into the result instead of rounding.
template <class To>
struct TruncatedConvert {
  static constexpr bool has_versions = false;

  template <int bits, class T>
  LEAT_DEVICE static T truncated(T x) {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr Word infinity = sizeof(T) == 8 ? 0x7ff0000000000000 : 0x7f800000;
    const Word word = std::bit_cast<Word>(x);
    // A NaN stays as it is, or it could become an infinity. (With x != x as the test, GCC 12 at -O1
    // forgets the mask.)
    const bool is_nan = (word & ~Word{0} >> 1) > infinity;
    return std::bit_cast<T>(is_nan ? word : static_cast<Word>(word & ~Word{0} << bits));
  }

  template <class T>
  LEAT_DEVICE ComputeType<To> operator()(T x) const {
    constexpr int bits = dropped_bits<T, To>();
    if constexpr (bits == 0) {
      return Convert<To>{}(x);
    } else if constexpr (is_complex_type<T>) {
      return Convert<To>{}(T(truncated<bits>(x.real()), truncated<bits>(x.imag())));
    } else {
      return Convert<To>{}(truncated<bits>(x));
    }
  }
};

std::vector<Kernel> cast_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"SrcT", CastTypes::list()}, {"DstT", CastTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const DType from = request.attr<DType>("SrcT");
    const DType to = request.attr<DType>("DstT");
    if (from == to) return BoundKernel::view();
    const bool truncate = request.attr<bool>("Truncate");
    const BroadcastPlan plan = plan_broadcast(request);
    BoundKernel kernel = visit_type(CastTypes{}, from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      return visit_type(CastTypes{}, to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        if constexpr (dropped_bits<From, To>() > 0) {
          if (truncate) return bind_elementwise<TruncatedConvert<To>, To, From>({}, plan);
        }
        return bind_elementwise<Convert<To>, To, From>({}, plan);
      });
    });
    return share_where_equal(std::move(kernel), request);
  };
  return {kernel};
}

const Op cast_op{{
    .name = "Cast",
    .doc = "y = x as DstT: floating-point numbers become integers by rounding towards zero, and "
           "bools by x != 0. With Truncate, a floating type is also rounded towards zero to a "
           "smaller one (except from double to bfloat16).",
    .inputs = {"x: SrcT"},
    .outputs = {"y: DstT"},
    .attrs = {"SrcT: type", "DstT: type", "Truncate: bool = false"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          const auto has_gradient = [&](std::string_view attr) {
            const DType dtype = g.attr<DType>(attr);
            return is_floating(dtype) || is_complex(dtype);
          };
          if (has_gradient("SrcT") && has_gradient("DstT")) {
            g.dx() = cast(g.dy(), g.attr<DType>("SrcT"));
          }
        },
    .kernels = cast_kernels(),
    .examples = {{.inputs = {floats({1.7, -1.7})},
                  .attrs = {{"DstT", DType::i32}},
                  .outputs = {ints({1, -1})}},
                 {.inputs = {ints({0, 2})},
                  .attrs = {{"DstT", DType::boolean}},
                  .outputs = {bools({false, true})}},
                 {.inputs = {Tensor::of<double>({2}, {1 + 0x1.8p-24, -1})},
                  .attrs = {{"DstT", f32}, {"Truncate", true}},
                  .outputs = {floats({1, -1})}}},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
