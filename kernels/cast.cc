// leat: cpu+cuda
// Cast: every number type and bool to every other; of a complex number the real part goes.
#include "kernels/elementwise.h"

namespace leat {
namespace {

// What mixed-precision programs and shape arithmetic cast between.
template <class T>
inline constexpr bool is_common = std::is_floating_point_v<ComputeType<T>> ||
                                  std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;

template <class To>
struct Convert {
  static constexpr bool has_versions = is_common<To>;

  template <class T>
  LEAT_DEVICE To operator()(T x) const {
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
    } else {
      return static_cast<To>(static_cast<ComputeType<To>>(x));
    }
  }
};

using CastTypes = std::conditional_t<has_host_types, NumberComplexAndBoolTypes, NumberAndBoolTypes>;

std::vector<Kernel> cast_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"SrcT", CastTypes::list()}, {"DstT", CastTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const DType from = request.attr<DType>("SrcT");
    const DType to = request.attr<DType>("DstT");
    if (from == to) return BoundKernel::view();
    const BroadcastPlan plan = plan_broadcast(request);
    BoundKernel kernel = visit_type(CastTypes{}, from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      return visit_type(CastTypes{}, to, [&](auto to_tag) {
        using To = typename decltype(to_tag)::type;
        return bind_elementwise<Convert<To>, To, From>({}, plan);
      });
    });
    return share_where_equal(std::move(kernel), request);
  };
  return {kernel};
}

const Op cast_op{{
    .name = "Cast",
    .doc = "y = x as DstT: towards zero from floating to integer, x != 0 to bool.",
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
                  .outputs = {bools({false, true})}}},
    .has_complex_gradient = true,
}};

}  // namespace
}  // namespace leat
