// Variables, and the nodes that initialise them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/initializers.h"

namespace leat {

struct VariableOptions {
  bool trainable = true;
  std::string container = {};  // "" = the task's default container
  // "" = the node's name: programs that build the same graph share the variable
  std::string shared_name = {};
  // Given for a part of a partitioned variable: the initialiser is told, and checkpoints have the
  // part as a slice of the tensor `part->of`.
  std::optional<VariablePart> part = {};
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

// The variable "global_step", int64, not trainable: it counts updates. Give it to minimize().
Output make_global_step(Graph& graph, Location at = here());

// A variable that goes with `of`: where it is, of its shape and dtype, called "<of>/<name>", not
// trainable. What optimizers and averages keep for a variable, as TensorFlow's slots. That of a
// part is the same part of the partitioned "<variable>/<name>".
Output slot(Output of, std::string_view name, const Initializer& initial = initializers::zeros(),
            Location at = here());

// Which part of a partitioned variable this one is; none if it is no part.
std::optional<VariablePart> part_of(const Output& variable);
// The tensor of a checkpoint that has the variable: the variable's name, of a part the name of the
// whole.
std::string checkpoint_name(const Output& variable);

// The Assign that gives a variable its first value. INVALID_ARGUMENT if it has none.
Node& initializer_of(const Graph& graph, const Output& variable);

// Variables called root/… are copies of those called …: of a replica that has its own (AllReduce).
// `root` is the name of a node of the graph, which marks it.
void add_copy_root(Graph& graph, Node& root);
// "worker_1/" if that begins the name and is a copy root, else "".
std::string_view copy_root_of(const Graph& graph, std::string_view name);

// One node that waits for the initialisers of all variables and tables (state/table.h) made so far:
// session.run({initialize_variables(graph)}).
Node& initialize_variables(Graph& graph, Location at = here());
// The same for the tables alone: checkpoints have the variables, but no tables.
Node& initialize_tables(Graph& graph, Location at = here());

// One NoOp that runs after all of these.
Node& group(Graph& graph, const std::vector<Output>& after, std::string_view name = "group",
            Location at = here());

}  // namespace leat
