// DummySeedGenerator and DummyMemoryCache: TensorFlow's client passes them to a dataset that is to
// have its own seeds or cache.
#include "core/state/resource.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"

namespace leat {
namespace {

class Dummy final : public Resource {
 public:
  using Resource::Resource;
  void check_fits(const NodeView&) const override {}
  std::string state() const override { return "an empty handle"; }
};

OpDef dummy_op(const char* name) {
  return {.name = name,
          .doc = "handle = a handle that refers to nothing.",
          .outputs = {"handle: resource"},
          .attrs = {"container: string = ''", "shared_name: string = ''"},
          .shape = shapes::scalar(),
          .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
          .is_stateful = true,
          .make_resource =
              [](const NodeView& node) { return std::make_shared<Dummy>(resource_name(node)); },
          .is_private_resource = true,
          .is_not_differentiable = true};
}
const Op seed_generator_op{dummy_op("DummySeedGenerator")};
const Op memory_cache_op{dummy_op("DummyMemoryCache")};

}  // namespace
}  // namespace leat
