// leat: cpu+cuda
// Cast: every number type and bool to every other.
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
    if constexpr (std::is_same_v<To, bool>) {
      return x != T(0);
    } else {
      return static_cast<To>(static_cast<ComputeType<To>>(x));
    }
  }
};

std::vector<Kernel> cast_kernels() {
  Kernel kernel;
  kernel.device = kernel_device;
  kernel.types = {{"SrcT", NumberAndBoolTypes::list()}, {"DstT", NumberAndBoolTypes::list()}};
  kernel.prepare = [](const KernelRequest& request) {
    const DType from = request.attr<DType>("SrcT");
    const DType to = request.attr<DType>("DstT");
    if (from == to) return BoundKernel::view();
    const BroadcastPlan plan = plan_broadcast(request);
    BoundKernel kernel = visit_type(NumberAndBoolTypes{}, from, [&](auto from_tag) {
      using From = typename decltype(from_tag)::type;
      return visit_type(NumberAndBoolTypes{}, to, [&](auto to_tag) {
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
          if (is_floating(g.attr<DType>("SrcT")) && is_floating(g.attr<DType>("DstT"))) {
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
}};

}  // namespace
}  // namespace leat
