// Variables, and the nodes that initialise them.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/initializers.h"

namespace leat {

struct VariableOptions {
  Initializer initializer = {};  // zeros if there is none
  DType dtype = f32;
  bool trainable = true;
  std::string container = {};  // "" = the task's default container
  // "" = the node's name: programs that build the same graph share the variable
  std::string shared_name = {};
  // A resource variable (VarHandleOp) instead of a reference, as TensorFlow's use_resource: a read
  // is a value that later updates do not change. graph.use_resource_variables() sets it for all.
  bool use_resource = false;
  // Given for a part of a partitioned variable: the initialiser receives it, and checkpoints have
  // the part as a slice of the tensor `part->of`.
  std::optional<VariablePart> part = {};
};

// Implements the template below.
Output variable_of(Graph& graph, std::string_view name, const TensorLike& initial,
                   const VariableOptions& options, Location at);

// Makes a variable under the current scopes, with the op that initialises it, and adds both to the
// collections "variables", "trainable_variables" and "initializers". An initializer or dtype given
// as an argument of its own wins over that of the options.
// Returns a reference (VariableV2); ops that take values read it. A resource variable "w" consists
// of a VarHandleOp "w", an AssignVariableOp "w/Assign" and the ReadVariableOp
// "w/Read/ReadVariableOp", which is returned and accepted wherever a variable is: assign(w, …),
// optimizers, Saver. A step runs this read once, before or after updates that do not depend on it;
// read_variable(w) under a ControlScope reads what an update has left.
// A name that begins with a copy root (add_copy_root) makes a copy of the variable with the rest of
// that name. The copy is initialised from that variable, by an op in "initializers" and
// "copy_initializers", and is not saved. INVALID_ARGUMENT if there is no such variable, or its
// dtype or shape differs.
Output variable(Graph& graph, std::string_view name, const Shape& shape, const Initializer& initial,
                DType dtype = f32, const VariableOptions& options = {}, Location at = here());
inline Output variable(Graph& graph, std::string_view name, const Shape& shape,
                       const Initializer& initial, const VariableOptions& options,
                       Location at = here()) {
  return variable(graph, name, shape, initial, options.dtype, options, at);
}
Output variable(Graph& graph, std::string_view name, const Shape& shape,
                const VariableOptions& options = {}, Location at = here());
Output variable(Graph& graph, std::string_view name, const Shape& shape, DType dtype,
                const VariableOptions& options = {}, Location at = here());
// Of the shape and dtype of its first value: an Output, a Tensor or a number.
template <class T>
requires(std::same_as<T, Output> || std::same_as<T, Tensor> || std::is_arithmetic_v<T>) Output
    variable(Graph& graph, std::string_view name, const T& initial,
             const VariableOptions& options = {}, Location at = here()) {
  return variable_of(graph, name, TensorLike(initial, at), options, at);
}

// The variable "global_step" of the graph, int64, not trainable, which counts updates: made if it
// is not there yet. Give it to minimize().
Output global_step(Graph& graph, Location at = here());
// In the order in which they were made: all, or those under a name scope.
//   optimizer.minimize(loss, {.variables = trainable_variables(g, "generator")});
std::vector<Output> trainable_variables(const Graph& graph, std::string_view scope = "");

// A variable that goes with `of`: where it is, of its shape, dtype and kind, called "<of>/<name>",
// not trainable. What optimizers and averages keep for a variable, as TensorFlow's slots. That of a
// part is the same part of the partitioned "<variable>/<name>".
Output slot(Output of, std::string_view name, const Initializer& initial = initializers::zeros(),
            Location at = here());

// The name of the variable's node, of which TensorFlow makes the names of slots and checkpoints:
// "w", also if w is the read of a resource variable.
const std::string& variable_name(const Output& variable);
// What variable() returned for the variable of that name; of one in parts, what they hold together,
// as a value; none if there is no such variable.
Output variable_named(Graph& graph, std::string_view name);
bool is_resource_variable(const Output& variable);

// Which part of a partitioned variable this one is; none if it is no part.
std::optional<VariablePart> part_of(const Output& variable);
// The tensor of a checkpoint that has the variable: the variable's name, of a part the name of the
// whole.
std::string checkpoint_name(const Output& variable);

// The Assign that gives a variable its first value. INVALID_ARGUMENT if it has none.
Node& initializer_of(const Graph& graph, const Output& variable);

// Variables called root/… are copies of those called …: of a replica that has its own (AllReduce).
// `root` is the name of a node of the graph, which marks it. With `own_state`, a variable that is
// not trainable and has no original is this program's own: initialised by itself, and not saved.
// Such are the slots of an optimizer that runs only on the copies.
void add_copy_root(Graph& graph, Node& root, bool own_state = false);
// "worker_1/" if that begins the name and is a copy root, else "".
std::string_view copy_root_of(const Graph& graph, std::string_view name);

// No copies are made of that variable: a variable under a copy root that would be one is the
// variable itself.
void add_shared_variable(Graph& graph, const Output& variable);

// A node that sets all copies of this graph to what their originals have: in a program that does
// not initialise the originals.
Node& update_copies(Graph& graph, Location at = here());
// A node that initialises the variables that are this program's own, and are in no checkpoint.
Node& initialize_own_variables(Graph& graph, Location at = here());

// Variables called root/… are no new ones, but those called …: of a replica that shares them, or of
// an evaluation. variable() returns what is there, of a variable in parts the value of all of them;
// INVALID_ARGUMENT if there is no such variable, or its dtype or shape differs. Slots are new ones;
// `with_slots`, those that are there already, in the order in which they were made for the
// variable.
void add_shared_root(Graph& graph, Node& root, bool with_slots = false);
// "replica_1/" if that begins the name and is a shared root, else "".
std::string_view shared_root_of(const Graph& graph, std::string_view name);

// One node that waits for the initialisers of all variables and tables (state/table.h) made so far:
// session.run({initialize_variables(graph)}).
Node& initialize_variables(Graph& graph, Location at = here());
// The same for the tables alone: checkpoints have the variables, but no tables.
Node& initialize_tables(Graph& graph, Location at = here());

// One NoOp that runs after all of these.
Node& group(Graph& graph, const std::vector<Output>& after, std::string_view name = "group",
            Location at = here());
Node& group(Graph& graph, const std::vector<Node*>& after, std::string_view name = "group",
            Location at = here());
Node& group(Graph& graph, std::initializer_list<Awaited> after, std::string_view name = "group",
            Location at = here());
// In the graph of the first one, of which there must be one: group({train, update}).
Node& group(std::initializer_list<Awaited> after, std::string_view name = "group",
            Location at = here());

}  // namespace leat
