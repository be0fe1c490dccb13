// Ops that pass a tensor on; they differ in how they treat the gradient.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

BoundKernel same_memory(const KernelRequest& request) {
  BoundKernel out;
  for (int i = 0; i < static_cast<int>(request.inputs.size()); ++i) out.views.push_back({i, i});
  return out;
}

std::vector<Kernel> identity_kernels() {
  std::vector<Kernel> out = kernels_for_any_device(same_memory);
  out.insert(out.begin(), {.types = {{"T", {DType::variant}}},
                           .execute = [](ExecuteContext& c) { c.set_output(0, c.take_input(0)); }});
  return out;
}

const Op identity_op{{
    .name = "Identity",
    .doc = "output = input. Of a variable: its value when the node runs.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = g.dy(); },
    .kernels = identity_kernels(),
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 2})}}},
}};

// The variable itself, for ops that write to it after the inputs that the node waits for.
const Op ref_identity_op{{
    .name = "RefIdentity",
    .doc = "output = the variable input.",
    .inputs = {"input: Ref(T)"},
    .outputs = {"output: Ref(T)"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx() = g.dy(); },
    .kernels = kernels_for_any_device([](const KernelRequest&) { return BoundKernel{}; }),
    .allows_uninitialized = true,
    .only_reads_state = true,
}};

const Op identity_n_op{{
    .name = "IdentityN",
    .doc = "output[i] = input[i].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: list(type) >= 1"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
        },
    .gradient =
        [](Gradient& g) {
          for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = g.dy(i);
        },
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {Tensor::scalar(1.5f), ints({1, 2})},
                  .outputs = {Tensor::scalar(1.5f), ints({1, 2})}}},
}};

const Op stop_gradient_op{{
    .name = "StopGradient",
    .doc = "output = input; no gradient flows back.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 2})}}},
    .is_not_differentiable = true,
}};

// Hints for optimizers of graphs.
OpDef named_identity(const char* name, const char* doc) {
  return {.name = name,
          .doc = doc,
          .inputs = {"input: T"},
          .outputs = {"output: T"},
          .attrs = {"T: type"},
          .shape = shapes::same_as(0),
          .gradient = [](Gradient& g) { g.dx() = g.dy(); },
          .kernels = kernels_for_any_device(same_memory),
          .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 2})}}}};
}
const Op guarantee_op{named_identity("GuaranteeConst", "output = input, which never changes.")};
const Op snapshot_op{named_identity("Snapshot", "output = input.")};

const Op prevent_gradient_op{{
    .name = "PreventGradient",
    .doc = "output = input; asking for a gradient through it is an error that says `message`.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "message: string = ''"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          fail(Code::invalid_argument,
               "Gradient explicitly disabled. Reason: ", g.attr<std::string>("message"));
        },
    .kernels = kernels_for_any_device(same_memory),
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 2})}}},
}};

const Op deep_copy_op{{
    .name = "DeepCopy",
    .doc = "y = x, in memory of its own.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_moving_kernel("T",
                                  []<class T>(TypeTag<T>, const KernelRequest& r) {
                                    return BoundKernel::of(
                                        [n = r.inputs[0].shape.elements()](const Arguments& a) {
                                          copy_elements(a.input<T>(0), n, a.output<T>());
                                        });
                                  })},
    .examples = {{.inputs = {floats({1, 2})}, .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

}  // namespace
}  // namespace leat
