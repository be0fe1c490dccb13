// Which nodes must share a device, and why.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Sets of nodes that `_class` attributes and edges of variables, resources and variants tie
// together (union-find), with the ties themselves kept for explanations.
class Colocation {
 public:
  // A `_Loop` is tied to the state that it uses, unless its set would then have to be on several
  // devices: spread_loops() puts a `_Loop` on each of them.
  explicit Colocation(const Graph& graph);

  // The same for all nodes of a set.
  int root(int node) const;

  // A node without inputs whose one output is a variable or a resource.
  static bool is_resource(const Node& node);
  // A node that updates or reads one through its handle, and so must be on its device.
  static bool uses_resource(const Node& node);
  // A node that makes or uses a value of dtype variant, which stays where it is made.
  static bool has_variant(const Node& node);

  // How two nodes of one set are tied: "w/Assign has the variable w as input ref; slot has _class
  // loc:@w".
  std::string chain(const Node& from, const Node& to) const;

 private:
  struct Tie {
    int a, b;
    int input;  // of node b; -1: a _class attribute of b names a; -2: both name a node that is not
                // in the graph
  };
  void tie_all();
  bool set_loops_free();
  void tie(int a, int b, int input);
  std::string describe_tie(const Tie& tie) const;

  const Graph& graph_;
  mutable std::vector<int> parents_;
  std::vector<Tie> ties_;
  std::set<int> free_loops_;  // not tied to state
};

// What the `_class` attribute names: "loc:@w" → "w".
std::vector<std::string_view> colocated_with(const Node& node);

}  // namespace leat
