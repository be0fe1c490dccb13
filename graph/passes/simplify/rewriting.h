// How rules change a graph node by node (arithmetic.cc, movement.cc). A node keeps its name, its
// device and the dtypes of its outputs; only what it computes becomes cheaper. What nobody needs
// any more, remove_unused() removes.
#pragma once

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/passes/simplify/simplify.h"

namespace leat {

class Rewriting {
 public:
  // All are kept by reference. Call finish() at the end.
  Rewriting(Graph& graph, const KeptNames& kept);

  // The node behind an input if it is of that op and a rule may look through it: it waits for
  // nothing but its inputs, and is asked for where `user` is. Null otherwise.
  Node* behind(const Node& user, int input, std::string_view op) const;
  // Does nothing but one input of one node need it?
  bool has_one_use(const Node& node) const;

  // The node applies another op to other inputs. False, and nothing changes, if that op has no
  // kernel where the node's own has one. Type attributes that follow from the inputs may be left
  // out of `attrs`.
  bool become(Node& node, std::string_view op, std::vector<Output> inputs, AttrMap attrs = {});
  // The node passes that value on. True.
  bool become_value(Node& node, Output value);
  // A new node before `user`, with its device and line, called "user/suffix".
  Output insert(const Node& user, std::string_view suffix, std::string_view op,
                std::vector<Output> inputs, AttrMap attrs);
  // A new constant in place of `old`, which it lives and dies with.
  Output insert_constant(const Node& user, std::string_view suffix, const Tensor& value,
                         const Output& old);

  // Users of a value that is passed on take it from its source.
  void follow(Node& node);
  // Puts the nodes in order again.
  void finish();

 private:
  struct Uses {
    int data = 0;
    bool is_awaited = false;  // by a control edge
  };
  Uses& uses_of(const Node& node);
  void count(const Node& node, int by);
  void wait_for_dropped_constants(Node& node, const std::vector<Output>& inputs);

  Graph& graph_;
  const KeptNames& kept_;
  const size_t size_;                                     // of the graph as it was
  std::vector<Uses> uses_;                                // by id
  std::vector<bool> passes_on_;                           // by id: made an Identity here
  std::unordered_map<int, std::vector<Node*>> inserted_;  // by the id of the user
};

// A rule changes a node and returns true, or returns false. It sees only nodes that is_pure().
using RewriteRule = bool (*)(Rewriting& rewriting, Node& node);
using RewriteRules = std::unordered_map<std::string_view, RewriteRule>;  // by op
// Numbers: Pow, products, sums, differences, quotients, negation.
const RewriteRules& arithmetic_rules();
// Elements that keep their values: transposes, reshapes, casts, slices, parts, empty reductions.
const RewriteRules& movement_rules();

}  // namespace leat
