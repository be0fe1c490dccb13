// Makes the nodes of a sharded step: of every node of the unsharded one a node per worker, and the
// collectives between them.
#pragma once

#include <string>
#include <vector>

#include "frontends/cpp/strategies/sharding/plan.h"

namespace leat::sharding {

// Groups of n workers, each of which trains the whole model: worker k of group g is g · n + k.
struct Mesh {
  Replicas all;  // count() = groups · n
  int n = 1;
  int groups() const { return all.count() / n; }
  Replicas group(int g) const;
  // Those that have the same part, one of each group.
  Replicas across(int k) const;
};

// What was made, for people.
struct Made {
  struct Row {
    std::string op, name, states;  // "replicated, split 1 -> split 1"
    std::string collective;        // of a conversion, else ""
    double bytes = 0;              // that each worker sends
    bool is_complete = true;       // else an extent is not known: bytes are for 32
    bool is_update = false;        // or of the model and its gradients
  };
  std::vector<Row> rows;
  // By variable: where its parts are, e.g. "dense/kernel [784,128] split 1".
  std::vector<std::string> variables;
  std::string text(bool with_ops) const;
};

struct Emitted {
  std::vector<std::vector<Output>> results;  // by group, as Step::results
  std::vector<Output> targets;               // a node of each worker for Step::targets
  Made made;
};

// Adds the nodes to `graph`, which already has the step's nodes before Step::begin. `inputs`
// replaces outputs of those nodes, such as the batch: it returns what group g uses, or none to keep
// the output. `means`: outputs of the step, all before Step::update_begin, that the groups replace
// by the mean over the groups.
Emitted emit(Graph& graph, const Step& step, const Plan& plan, const Mesh& mesh,
             const std::function<Output(const Output&, int g)>& inputs,
             const std::vector<Output>& means, Location at);

}  // namespace leat::sharding
