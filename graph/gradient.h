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
      : node_(node), dy_(std::move(dy)), dx_(node.inputs.size()), indices_(node.inputs.size()) {}
  Graph& graph() const { return *node_.graph; }
  Node& node() const { return node_; }
  Output x(int i = 0) const { return node_.inputs[i]; }
  Output y(int i = 0) const { return node_.output(i); }
  Output dy(int i = 0) const { return dy_[i]; }  // none if nothing depends on that output
  Output dy_or_zeros(int i = 0) const;           // for ops that need all of them
  Output& dx(int i = 0) { return dx_[i]; }       // leave as none where no gradient flows
  // Instead of dx(i), where the gradient of input i is zero except in some rows: values[j…] is
  // added to row indices[j…]. The shape of `values` is that of `indices`, then that of a row.
  void set_rows(int i, Output values, Output indices) {
    dx_[i] = std::move(values);
    indices_[i] = std::move(indices);
  }
  const Output& indices(int i) const { return indices_[i]; }  // none if dx(i) is the whole
  int num_inputs() const { return static_cast<int>(dx_.size()); }
  template <class T>
  const T& attr(std::string_view name) const {
    return node_.attr<T>(name);
  }

 private:
  Node& node_;
  std::vector<Output> dy_;
  std::vector<Output> dx_;
  std::vector<Output> indices_;  // of rows
};

// True for floating-point and complex dtypes; gradients end at all others.
bool has_gradients(DType dtype);

// d(sum of ys)/d(xs), weighted by grad_ys (ones where these are none or left out). Entries are none
// where no path leads from x to any y: paths end at ops that are not differentiable and at
// integers. Refs are read, so no gradient is a ref. New nodes are called gradients/<node of the
// graph>/… and have the device, colocation and line of that node. INVALID_ARGUMENT (op, node, line)
// if a path crosses an op without gradient that is not marked not-differentiable.
std::vector<Output> gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys = {});

// The same for one y, and for one x: gradients(loss, w)[0].
inline std::vector<Output> gradients(Output y, const std::vector<Output>& xs) {
  return gradients(std::vector<Output>{y}, xs);
}
inline std::vector<Output> gradients(Output y, Output x) {
  return gradients(std::vector<Output>{y}, std::vector<Output>{x});
}

// A gradient that may have only some rows, like TensorFlow's IndexedSlices.
struct IndexedSlices {
  Output values;  // [n, …], a row each; without indices the whole gradient; none if there is none
  Output indices;  // [n], int32 or int64: the row of each value; repeated rows add up
};
// Like gradients(), but if only rows of an x are read (take(), nn::embedding), the result has just
// these rows. It is dense for any other x, and for an x in a while loop or a branch of a condition.
std::vector<IndexedSlices> sparse_gradients(const std::vector<Output>& ys,
                                            const std::vector<Output>& xs,
                                            const std::vector<Output>& grad_ys = {});

}  // namespace leat
