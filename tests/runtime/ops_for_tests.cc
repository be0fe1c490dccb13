// Ops that only tests need: calls that do nothing, failures, waiting, shapes that depend on data.
#include "tests/runtime/ops_for_tests.h"

#include <algorithm>

#include "core/kernel.h"
#include "graph/op_def.h"
#include "graph/shape_inference.h"
#include "tests/support/recording_device.h"

namespace leat {
namespace {

// Enqueues f(inputs…, output, n) on a recording device, with addresses where it may touch them.
template <class F>
BoundKernel on_device(const KernelRequest& request, int64_t n, F f) {
  auto* device = &static_cast<RecordingDevice&>(request.device);
  return BoundKernel::of([device, n, f](const Arguments& a) {
    const void* x = a.inputs[0];
    const void* y = a.inputs[1];
    void* z = a.outputs[0];
    device->recording_stream().enqueue([=] {
      f(static_cast<float*>(device->view(x)), static_cast<float*>(device->view(y)),
        static_cast<float*>(device->view(z)), n);
    });
  });
}

// Called, unlike Identity, which is only another name for its input.
const Op null_op{{
    .name = "TestNull",
    .doc = "y = x without touching it: the memory is passed on.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.prepare =
                     [](const KernelRequest&) {
                       return BoundKernel::of([](const Arguments&) {}).sharing(0, 0);
                     }}},
}};

const Op add_op{{
    .name = "TestAdd",
    .doc = "z = x + y, same shapes.",
    .inputs = {"x: float", "y: float"},
    .outputs = {"z: float"},
    .shape = shapes::same_for_all(),
    .kernels = {{.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                                  [n = request.outputs[0].shape.elements()](const Arguments& a) {
                                    for (int64_t i = 0; i < n; ++i)
                                      a.output<float>()[i] =
                                          a.input<float>(0)[i] + a.input<float>(1)[i];
                                  })
                           .sharing(0, 0)
                           .sharing(0, 1);
                     }},
                {.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       return on_device(request, request.outputs[0].shape.elements(),
                                        [](const float* x, const float* y, float* z, int64_t n) {
                                          for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
                                        })
                           .sharing(0, 0);
                     }}},
}};

const Op assign_add_op{{
    .name = "TestAssignAdd",
    .doc = "ref = ref + value; on a GPU only.",
    .inputs = {"ref: Ref(float)", "value: float"},
    .outputs = {"output_ref: Ref(float)"},
    .shape = shapes::same_as(0),
    .kernels = {{.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       return on_device(request, request.outputs[0].shape.elements(),
                                        [](float* ref, const float* value, float*, int64_t n) {
                                          for (int64_t i = 0; i < n; ++i) ref[i] += value[i];
                                        });
                     }}},
    .is_stateful = true,
}};

const Op pass_op{{
    .name = "TestPass",
    .doc = "y = x, the same memory, on every device.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.prepare = [](const KernelRequest&) { return BoundKernel::view(); }},
                {.device = DeviceType::gpu,
                 .prepare = [](const KernelRequest&) { return BoundKernel::view(); }}},
}};

const Op fail_op{{
    .name = "TestFail",
    .doc = "y = x; an error if the elements' sum is negative.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.inputs[0].shape.elements()](const Arguments& a) {
                             float sum = 0;
                             for (int64_t i = 0; i < n; ++i)
                               sum += a.output<float>()[i] = a.input<float>(0)[i];
                             check(sum >= 0, "sum is negative");
                           });
                     }}},
    .is_stateful = true,
}};

const Op positive_op{{
    .name = "TestPositive",
    .doc = "y = the positive elements of x.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = [](ShapeContext& c) { c.set_output(0, Shape{any}); },
    .kernels = {{.execute =
                     [](ExecuteContext& c) {
                       std::vector<float> kept;
                       for (float value : c.input(0).span<float>()) {
                         if (value > 0) kept.push_back(value);
                       }
                       c.set_output(0, Tensor::of<float>({static_cast<int64_t>(kept.size())},
                                                         std::span<const float>(kept)));
                     }}},
    .has_data_dependent_shape = true,
}};

const Op wait_op{{
    .name = "TestWait",
    .doc = "y = x, when TestGate::of(node name) is opened.",
    .inputs = {"x: float"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.execute_async =
                     [](ExecuteContext& c, std::function<void(Status)> done) {
                       c.set_output(0, c.input(0));
                       TestGate::of(c.node().name).wait(std::move(done));
                     }}},
    .is_stateful = true,
}};

const Op ones_op{{
    .name = "TestOnes",
    .doc = "y = ones of shape n.",
    .inputs = {"n: int32"},
    .outputs = {"y: float"},
    .shape = [](ShapeContext& c) { c.set_output(0, c.shape_from_value(0)); },
    .kernels = {{.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.outputs[0].shape.elements()](const Arguments& a) {
                             std::fill_n(a.output<float>(), n, 1.0f);
                           });
                     }},
                {.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       auto* device = &static_cast<RecordingDevice&>(request.device);
                       return BoundKernel::of(
                           [device, n = request.outputs[0].shape.elements()](const Arguments& a) {
                             device->recording_stream().enqueue([=, y = a.outputs[0]] {
                               std::fill_n(static_cast<float*>(device->view(y)), n, 1.0f);
                             });
                           });
                     }}},
    .value_inputs = {0},
    .is_stateful = true,  // so that it is never folded
}};

const Op count_op{{
    .name = "TestCount",
    .doc = "n = the number of elements above 0, as a vector of one int32.",
    .inputs = {"x: float"},
    .outputs = {"n: int32"},
    .shape = [](ShapeContext& c) { c.set_output(0, Shape{1}); },
    .kernels = {{.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.inputs[0].shape.elements()](const Arguments& a) {
                             a.output<int32_t>()[0] = 0;
                             for (int64_t i = 0; i < n; ++i)
                               a.output<int32_t>()[0] += a.input<float>(0)[i] > 0 ? 1 : 0;
                           });
                     }},
                {.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       auto* device = &static_cast<RecordingDevice&>(request.device);
                       return BoundKernel::of([device, n = request.inputs[0].shape.elements()](
                                                  const Arguments& a) {
                         device->recording_stream().enqueue([=, x = a.inputs[0], y = a.outputs[0]] {
                           const auto* from = static_cast<const float*>(device->view(x));
                           *static_cast<int32_t*>(device->view(y)) = static_cast<int32_t>(
                               std::count_if(from, from + n, [](float v) { return v > 0; }));
                         });
                       });
                     }}},
}};

// Cast for the GPU of these tests, for which Cast itself has no kernel.
const Op floats_op{{
    .name = "TestFloats",
    .doc = "y = x as float.",
    .inputs = {"x: int32"},
    .outputs = {"y: float"},
    .shape = shapes::same_as(0),
    .kernels = {{.prepare =
                     [](const KernelRequest& request) {
                       return BoundKernel::of(
                           [n = request.inputs[0].shape.elements()](const Arguments& a) {
                             std::copy_n(a.input<int32_t>(0), n, a.output<float>());
                           });
                     }},
                {.device = DeviceType::gpu,
                 .prepare =
                     [](const KernelRequest& request) {
                       auto* device = &static_cast<RecordingDevice&>(request.device);
                       return BoundKernel::of([device, n = request.inputs[0].shape.elements()](
                                                  const Arguments& a) {
                         device->recording_stream().enqueue([=, x = a.inputs[0], y = a.outputs[0]] {
                           std::copy_n(static_cast<const int32_t*>(device->view(x)), n,
                                       static_cast<float*>(device->view(y)));
                         });
                       });
                     }}},
}};

}  // namespace

TestGate& TestGate::of(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<TestGate>, std::less<>> gates;
  const std::lock_guard lock(mutex);
  auto& gate = gates[std::string(name)];
  if (!gate) gate = std::make_unique<TestGate>();
  return *gate;
}

void TestGate::wait(std::function<void(Status)> done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  arrived_.notify_all();
}

bool TestGate::has_visitor() {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !waiting_.empty(); });
}

bool TestGate::open(Status status) {
  std::function<void(Status)> done;
  {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !waiting_.empty(); }))
      return false;
    done = std::move(waiting_.back());
    waiting_.pop_back();
  }
  done(status);
  return true;
}

}  // namespace leat
