#include "kernels/moves/handles.h"

#include <utility>

#include "core/state/resource.h"

namespace leat {
namespace {

void pack(ExecuteContext& c) {
  std::vector<std::shared_ptr<Resource>> handles;
  for (int i = 0; i < c.num_inputs(); ++i) handles.push_back(c.resource(i));
  const auto n = static_cast<int64_t>(handles.size());
  c.set_output(0, resource_handles({n}, handles));
}

void gather(ExecuteContext& c) {
  const Tensor &params = c.input(0), &indices = c.input(1);
  check(params.shape().rank() == 1, "handles must be a vector, got shape ", params.shape());
  const auto handles = resources_of(params);
  std::vector<std::shared_ptr<Resource>> out;
  for (const int64_t index : to_int64s(indices)) {
    check(index >= 0 && index < std::ssize(handles), "indices = ", index, " is not in [0, ",
          handles.size(), ")");
    out.push_back(handles[index]);
  }
  c.set_output(0, resource_handles(indices.shape(), out));
}

std::vector<Kernel> and_of_handles(std::vector<Kernel> kernels, const char* type, Execute execute) {
  kernels.push_back({.types = {{type, {DType::resource}}}, .execute = std::move(execute)});
  return kernels;
}

}  // namespace

std::vector<Kernel> and_pack_handles(std::vector<Kernel> kernels) {
  return and_of_handles(std::move(kernels), "T", pack);
}

std::vector<Kernel> and_gather_handles(std::vector<Kernel> kernels) {
  return and_of_handles(std::move(kernels), "Tparams", gather);
}

}  // namespace leat
