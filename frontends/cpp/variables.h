// Variables and how they start.
#pragma once

#include <functional>
#include <string_view>

#include "graph/ops.h"

namespace leat {

// Makes the first value of a variable of that dtype and shape. Seeds follow TensorFlow: (0, 0) =
// different at each run.
using Initializer = std::function<Output(Graph&, DType, const Shape&)>;

namespace initializers {
Initializer zeros();
Initializer ones();
Initializer constant(double value);
Initializer constant(Tensor value);  // shape and dtype must be the variable's
// What another variable begins with, whose shape and dtype must be the same.
Initializer value_of(Output variable);
Initializer truncated_normal(double stddev = 1.0, int64_t seed = 0);
Initializer random_uniform(double low, double high, int64_t seed = 0);
// U(-l, l) with l = sqrt(6 / (fan_in + fan_out)); Glorot and Bengio, AISTATS 2010. Rank 2 or more.
Initializer glorot_uniform(int64_t seed = 0);
// Truncated normal with stddev sqrt(2 / fan_in); He et al., ICCV 2015.
Initializer he_normal(int64_t seed = 0);
}  // namespace initializers

struct VariableOptions {
  bool trainable = true;
  std::string container = {};  // "" = the task's default container
  // "" = the node's name: programs that build the same graph share the variable
  std::string shared_name = {};
};

// A VariableV2 under the current scopes with an Assign that initialises it (collections
// "variables", "trainable_variables", "initializers"). Returns the ref; ops that take values read
// it. If its name has a copy root, it is a copy of the variable of the rest of that name:
// initialised from that one, and not in "variables", so that it is not saved; its Assign is in
// "initializers" and in "copy_initializers". INVALID_ARGUMENT if there is no such variable, or it
// has another dtype or shape.
Output variable(Graph& graph, std::string_view name, const Shape& shape,
                const Initializer& initial = initializers::zeros(), DType dtype = f32,
                const VariableOptions& options = {}, Location at = here());

// Variables called root/… are copies of those called …: of a replica that has its own (AllReduce).
// `root` is the name of a node of the graph, which marks it.
void add_copy_root(Graph& graph, Node& root);
// "worker_1/" if that begins the name and is a copy root, else "".
std::string_view copy_root_of(const Graph& graph, std::string_view name);

// One node that waits for the initialisers of all variables made so far:
// session.run({initialize_variables(graph)}).
Node& initialize_variables(Graph& graph, Location at = here());

// One NoOp that runs after all of these.
Node& group(Graph& graph, const std::vector<Output>& after, std::string_view name = "group",
            Location at = here());

}  // namespace leat
