#include "kernels/state/assign.h"

#include <mutex>

#include "core/byte_size.h"
#include "core/state/variable.h"
#include "kernels/cpu.h"
#include "kernels/wrapping.h"

namespace leat {
namespace {

constexpr int64_t grain = 32768;

void check_same_shape(const KernelRequest& request) {
  check(request.inputs[0].shape == request.inputs[1].shape, request.node.op,
        " requires shapes of both tensors to match. lhs shape= ", request.inputs[0].shape,
        " rhs shape= ", request.inputs[1].shape);
}

template <class T>
BoundKernel prepare_assign(TypeTag<T>, const KernelRequest& request) {
  check_same_shape(request);
  return BoundKernel::of([n = request.inputs[1].shape.elements()](const Arguments& a) {
    a.stream->parallel_for(n, grain, [&](int64_t begin, int64_t end) {
      copy_elements(a.input<T>(1) + begin, end - begin, a.ref<T>(0) + begin);
    });
  });
}

std::vector<DType> fixed_size_types() {
  std::vector<DType> out = AllTypes::list();
  std::erase(out, DType::string);
  return out;
}

BoundKernel prepare_assign_on_device(const KernelRequest& request) {
  check_same_shape(request);
  const size_t bytes = byte_size(request.inputs[1].dtype, request.inputs[1].shape);
  return BoundKernel::of([&device = request.device, bytes](const Arguments& a) {
    device.copy_within(a.inputs[1], a.inputs[0], bytes);
  });
}

// Replaces the variable, shape included. For variables without a declared shape, and where
// validate_shape is false.
void assign_any_shape(ExecuteContext& c) {
  Variable& variable = c.variable(0);
  const std::unique_lock lock(variable.mutex());
  const bool may_change = !c.node().attr<bool>("validate_shape") || !variable.is_initialized() ||
                          variable.value().shape() == c.input(1).shape();
  if (!may_change) {
    fail(Code::invalid_argument, c.node().op,
         " requires shapes of both tensors to match. lhs shape= ", variable.value().shape(),
         " rhs shape= ", c.input(1).shape());
  }
  variable.assign(c.input(1));
}

template <class T, bool subtract>
void add_in_place(T* variable, const T* value, int64_t n) {
  using W = Wrapping<ComputeType<T>>;
  for (int64_t i = 0; i < n; ++i) {
    variable[i] = subtract ? T(W(variable[i]) - W(value[i])) : T(W(variable[i]) + W(value[i]));
  }
}

template <bool subtract>
std::vector<Kernel> add_kernels(const std::string& type_attr) {
  return {cpu_kernel(
      type_attr, NumberAndComplexTypes{}, []<class T>(TypeTag<T>, const KernelRequest& request) {
        check_same_shape(request);
        return BoundKernel::of([n = request.inputs[1].shape.elements()](const Arguments& a) {
          a.stream->parallel_for(n, grain, [&](int64_t begin, int64_t end) {
            add_in_place<T, subtract>(a.ref<T>(0) + begin, a.input<T>(1) + begin, end - begin);
          });
        });
      })};
}

}  // namespace

std::vector<Kernel> assign_kernels(const std::string& type_attr) {
  Kernel cpu =
      cpu_moving_kernel(type_attr, []<class T>(TypeTag<T> type, const KernelRequest& request) {
        return prepare_assign(type, request);
      });
  cpu.execute = assign_any_shape;
  Kernel gpu{.device = DeviceType::gpu,
             .types = {{type_attr, fixed_size_types()}},
             .prepare = prepare_assign_on_device,
             .execute = assign_any_shape};
  return {std::move(cpu), std::move(gpu)};
}

std::vector<Kernel> assign_add_kernels(const std::string& type_attr) {
  return add_kernels<false>(type_attr);
}

std::vector<Kernel> assign_sub_kernels(const std::string& type_attr) {
  return add_kernels<true>(type_attr);
}

}  // namespace leat
