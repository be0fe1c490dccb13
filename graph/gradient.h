// Symbolic gradients (reverse mode): the gradient of every op is part of its OpDef.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace leat {

// What an op's gradient function sees: x are inputs, y outputs, dy the gradients that arrive, dx
// those it makes. New nodes go into the same graph, under the name scope "gradients/…", on the
// device of the op.
class Gradient {
 public:
  Gradient(Node& node, std::vector<Output> dy)
      : node_(node), dy_(std::move(dy)), dx_(node.inputs.size()) {}
  Graph& graph() const { return *node_.graph; }
  Node& node() const { return node_; }
  Output x(int i = 0) const { return node_.inputs[i]; }
  Output y(int i = 0) const { return node_.output(i); }
  Output dy(int i = 0) const { return dy_[i]; }  // none if nothing depends on that output
  Output dy_or_zeros(int i = 0) const;           // for ops that need all of them
  Output& dx(int i = 0) { return dx_[i]; }       // leave as none where no gradient flows
  int num_inputs() const { return static_cast<int>(dx_.size()); }
  template <class T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

 private:
  Node& node_;
  std::vector<Output> dy_;
  std::vector<Output> dx_;
};

// Floating-point and complex values: gradients end at all others.
bool has_gradients(DType dtype);

// d(sum of ys)/d(xs), weighted by grad_ys (ones where these are none or left out). Entries are none
// where no path leads from x to any y: paths end at ops that are not differentiable and at
// integers. Refs are read: no gradient is a ref. Nodes are called gradients/<node of the graph>/…,
// have the device, colocation and line of that node. INVALID_ARGUMENT (op, node, line) if a path
// crosses an op without gradient that is not marked not-differentiable.
std::vector<Output> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys = {});

}  // namespace leat
