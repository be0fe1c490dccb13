// The variables of a sharded step: parts of one tensor on the workers of a group, or a whole on its
// first worker with copies on the others.
#pragma once

#include <map>
#include <vector>

#include "frontends/cpp/initializers.h"
#include "frontends/cpp/strategies/sharding/emission.h"

namespace leat::sharding {

class ShardedVariables {
 public:
  ShardedVariables(Graph& graph, const Step& step, const Mesh& mesh);

  // What variable() returns on each worker for a variable of the step. Split, "w" becomes
  // "w/part_0" on worker 0, …, slices of the tensor "w" of a checkpoint. Other groups have copies.
  // The initial values are those of the whole.
  const collectives::PerReplica& make(const Node& variable, State state);
  const collectives::PerReplica& made(const Node& variable) const { return made_.at(&variable); }
  // The read that variable() makes with a resource variable.
  bool is_first_read(const Node& node) const;

 private:
  // The initial value of a variable of the step, as new nodes under the current scopes.
  Output initial_value(const Node& variable, const VariablePart& part);
  Output copied(const Output& output, std::map<const Node*, Node*>& copies);

  Graph& graph_;
  const Step& step_;
  const Mesh& mesh_;
  std::map<const Node*, Node*> initializers_;  // of the step, by variable
  std::map<const Node*, State> states_;
  std::map<const Node*, collectives::PerReplica> made_;
};

}  // namespace leat::sharding
