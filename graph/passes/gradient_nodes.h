// Which nodes of a training step compute gradients, told by their names.
#pragma once

#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace leat {

// A part of the name but the last is "gradients" or "gradients_1": gradients() and TensorFlow's
// tf.gradients() name their nodes so.
bool is_called_gradient(std::string_view name);

// Of a graph whose nodes are in topological order.
class GradientNodes {
 public:
  explicit GradientNodes(const Graph& graph);

  bool contains(const Node& node) const { return is_gradient_[node.id]; }
  // Computes a factor of a gradient from values of the forward part alone, such as x/|x| of the
  // gradient of Abs. What comes from the loss does not.
  bool is_factor(const Node& node) const {
    return contains(node) && comes_from_[node.id] < last_forward_;
  }

 private:
  std::vector<bool> is_gradient_;  // by id
  std::vector<int> comes_from_;    // by id: the last forward node before it; -1: none
  int last_forward_ = -1;          // that any comes from: at the loss
};

}  // namespace leat
