// leat: cpu+cuda
// Ops on the bits of integers.
#include "kernels/elementwise_ops.h"

namespace leat {
namespace {

// clang-format off
struct Invert     { static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x) const { return static_cast<T>(~x); } };
struct BitwiseAnd { static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x, T y) const { return static_cast<T>(x & y); } };
struct BitwiseOr  { static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x, T y) const { return static_cast<T>(x | y); } };
struct BitwiseXor { static constexpr bool has_versions = false; template <class T> LEAT_DEVICE T operator()(T x, T y) const { return static_cast<T>(x ^ y); } };
// clang-format on

// A shift by less than 0 counts as 0; a shift by as many bits as the type has, or more, counts as
// one bit less than that.
template <class T>
LEAT_DEVICE int shift_of(T y) {
  constexpr int most = static_cast<int>(sizeof(T) * 8 - 1);
  if constexpr (std::is_signed_v<T>) {
    if (y < T(0)) return 0;
  }
  return y > T(most) ? most : static_cast<int>(y);
}

struct LeftShift {
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(static_cast<uint64_t>(x) << shift_of(y));
  }
};
struct RightShift {
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE T operator()(T x, T y) const {
    return static_cast<T>(x >> shift_of(y));
  }
};

struct PopulationCount {
  static constexpr bool has_versions = false;
  template <class T>
  LEAT_DEVICE uint8_t operator()(T x) const {
    uint8_t count = 0;
    for (auto rest = static_cast<std::make_unsigned_t<T>>(x); rest != 0; rest &= rest - 1) ++count;
    return count;
  }
};

std::vector<Kernel> population_count_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"T", IntegerTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const BroadcastPlan plan = plan_broadcast(request);
    return visit_type(IntegerTypes{}, request.inputs[0].dtype, [&](auto tag) {
      return bind_elementwise<PopulationCount, uint8_t, typename decltype(tag)::type>({}, plan);
    });
  };
  return {kernel};
}

const char* const integers = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

OpDef bitwise(std::string name, std::string doc, std::vector<Kernel> kernels, Tensor expected) {
  return binary({
      .name = std::move(name),
      .doc = std::move(doc),
      .attrs = {integers},
      .kernels = std::move(kernels),
      .examples = {{.inputs = {ints({6, -8}), ints({3, 1})}, .outputs = {std::move(expected)}}},
      .is_not_differentiable = true,
  });
}

OpDef commutative(OpDef op) {
  op.is_commutative = true;
  return op;
}

const Op invert_op{unary({
    .name = "Invert",
    .doc = "y = ~x: every bit of x inverted.",
    .attrs = {integers},
    .kernels = elementwise<Invert, IntegerTypes>(),
    .examples = {{.inputs = {ints({0, 5})}, .outputs = {ints({-1, -6})}}},
    .is_not_differentiable = true,
})};

const Op and_op{commutative(bitwise("BitwiseAnd", "z = x & y with broadcasting.",
                                    elementwise<BitwiseAnd, IntegerTypes>(), ints({2, 0})))};
const Op or_op{commutative(bitwise("BitwiseOr", "z = x | y with broadcasting.",
                                   elementwise<BitwiseOr, IntegerTypes>(), ints({7, -7})))};
const Op xor_op{commutative(bitwise("BitwiseXor", "z = x ^ y with broadcasting.",
                                    elementwise<BitwiseXor, IntegerTypes>(), ints({5, -7})))};
const Op left_shift_op{
    bitwise("LeftShift", "z = x << y with broadcasting; y is limited to the bits of its type.",
            elementwise<LeftShift, IntegerTypes>(), ints({48, -16}))};
const Op right_shift_op{
    bitwise("RightShift",
            "z = x >> y with broadcasting: the sign is kept; y is limited to the bits of its type.",
            elementwise<RightShift, IntegerTypes>(), ints({0, -4}))};

const Op population_count_op{unary({
    .name = "PopulationCount",
    .doc = "y = how many bits of x are set.",
    .outputs = {"y: uint8"},
    .attrs = {integers},
    .kernels = population_count_kernels(),
    .examples = {{.inputs = {ints({0, 5, -1})}, .outputs = {Tensor::of<uint8_t>({3}, {0, 2, 32})}}},
    .is_not_differentiable = true,
})};

}  // namespace
}  // namespace leat
