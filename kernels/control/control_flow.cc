// Switch, RefSwitch and Merge: the runtime itself handles dead values, so these have no kernels,
// only a device.
#include "graph/gradient.h"
#include "graph/loops/loops.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// Nothing to call: program_items.cc does the work.
std::vector<Kernel> on_any_device() { return {{}, {.device = DeviceType::gpu}}; }

void infer_merge(ShapeContext& c) {
  // A value that comes back from a loop's body may have another shape.
  Shape out = c.node().has(back_edge_attr) ? Shape::unknown() : c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    const Shape& other = c.input(i);
    if (out.rank() != other.rank()) out = Shape::unknown();
    for (int d = 0; d < out.rank(); ++d) {
      if (out[d] != other[d]) out.set(d, any);
    }
  }
  c.set_output(0, out);
  c.set_output(1, Shape{});
}

// The gradient of the branch that was taken; a branch without a gradient contributes zeros if it
// was taken.
void switch_gradient(Gradient& g) {
  std::vector<Output> branches;
  for (int i = 0; i < 2; ++i) branches.push_back(g.dy(i) ? g.dy(i) : zeros_like(g.y(i)));
  g.dx(0) = merge(branches)[0];
}

// Input i gets the gradient if it was the one that arrived, else a dead value.
void merge_gradient(Gradient& g) {
  if (!g.dy(0)) return;
  for (int i = 0; i < g.num_inputs(); ++i) {
    const Output chosen = equal(g.y(1), i);
    g.dx(i) = switch_on(g.dy(0), chosen)[1];
  }
}

void infer_switch(ShapeContext& c) {
  c.with_rank(1, 0);
  c.set_output(0, c.input(0));
  c.set_output(1, c.input(0));
}

const Op switch_op{{
    .name = "Switch",
    .doc = "output_true = data if pred, else output_false = data; the other output is dead: what "
           "depends on it does not run.",
    .inputs = {"data: T", "pred: bool"},
    .outputs = {"output_false: T", "output_true: T"},
    .attrs = {"T: type"},
    .shape = infer_switch,
    .gradient = switch_gradient,
    .kernels = on_any_device(),
}};

// Decides which branch gets the variable; its value, if it has one, does not matter.
const Op ref_switch_op{{
    .name = "RefSwitch",
    .doc = "output_true = the variable data if pred, else output_false = data; the other output is "
           "dead. The variable may be uninitialized.",
    .inputs = {"data: Ref(T)", "pred: bool"},
    .outputs = {"output_false: Ref(T)", "output_true: Ref(T)"},
    .attrs = {"T: type"},
    .shape = infer_switch,
    .gradient = switch_gradient,
    .kernels = on_any_device(),
    .allows_uninitialized = true,
    .only_reads_state = true,
}};

const Op merge_op{{
    .name = "Merge",
    .doc = "output = the one input that is not dead, value_index = its number.",
    .inputs = {"inputs: N * T"},
    .outputs = {"output: T", "value_index: int32"},
    .attrs = {"T: type", "N: int >= 1"},
    .shape = infer_merge,
    .gradient = merge_gradient,
    .kernels = on_any_device(),
}};

const Op ref_merge_op{{
    .name = "RefMerge",
    .doc = "output = the value of the one variable that is not dead, value_index = its number.",
    .inputs = {"inputs: N * Ref(T)"},
    .outputs = {"output: Ref(T)", "value_index: int32"},
    .attrs = {"T: type", "N: int >= 1"},
    .shape = infer_merge,
    .gradient = merge_gradient,
    .kernels = on_any_device(),
}};

}  // namespace
}  // namespace leat
