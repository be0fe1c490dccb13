// Which nodes are dead together: those behind the same Switch outputs.
#pragma once

#include <map>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Of a graph whose nodes are in topological order.
class DeadTogether {
 public:
  explicit DeadTogether(const Graph& graph);

  // Whatever the predicates, both run or neither does.
  bool are(const Node& a, const Node& b) const { return of_node_[a.id] == of_node_[b.id]; }
  // Whatever the predicates, it runs.
  bool is_in_no_branch(const Node& node) const { return of_node_[node.id] == 0; }

 private:
  using Set = std::vector<int64_t>;  // of Switch outputs, as numbers; sorted

  int set_of(const Node& node);
  int set_of(const Output& value);
  int both(int a, int b);
  int number_of(Set set);

  std::vector<int> of_node_;  // by id: the number of its set
  std::vector<Set> sets_;
  std::map<Set, int> numbers_;
};

}  // namespace leat
