// `_Fused`: nodes that run as one. Each element, or each row, passes through all of them while it
// is in the cache, so that values between them never reach memory. The pass `fuse` makes such
// nodes; kernels/control/fused.cc runs them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/kernel.h"
#include "graph/graph.h"

namespace leat {

// How an op treats the rows of its operands: the parts that belong to one index of the leading
// axes.
enum class RowRule {
  none,         // it is never fused
  elementwise,  // operands are broadcast: element by element
  last_axis,    // along the last axis, such as Softmax: row by row
  reduction,    // over a constant's axes: row by row if all lie behind the leading axes
  sum,          // of all rows: BiasAddGrad; a Sum over leading axes, too, is one
  head,         // a product or a convolution: makes rows of the rows of its first operand
};

// How the node may be fused, by its op, its types and its attributes alone. Values are numbers with
// a fraction or bools: their kernels find no fault in any of them.
RowRule row_rule(const Node& node);
// Whether it pays on a GPU to fuse the node: it goes by elements, reduces the last axis, or is a
// softmax or a MatMul, of at most 32 bits.
bool gains_on_gpus(const Node& node);
// Is the value a sum over rows of the operand, as far as shapes are known? No member may use it.
bool sums_rows(const Node& node);
// One of a reduction's axes, counted from the first.
int64_t axis_at(const Tensor& axes, int64_t i, int rank);
// Are these the first axes of the shape, but not all?
bool sums_leading_axes(const Tensor& axes, const Shape& shape);

// What a `_Fused` node computes, parsed from its attributes once for all steps.
class FusedProgram {
 public:
  // An output of a member; member -1: the node's own input `index`.
  struct Operand {
    int member = -1;
    int index = 0;
  };
  struct Member {
    const Node* node;
    RowRule rule;
    std::vector<Operand> operands;
  };

  explicit FusedProgram(const NodeView& fused);

  // The program of a node, from a cache of this process. Thread-safe.
  static std::shared_ptr<const FusedProgram> of(const NodeView& fused);

  const std::vector<Member>& members() const { return members_; }  // in order
  const std::vector<Operand>& outputs() const { return outputs_; }
  // If the first member is a head: the others, to which what it makes is one more input. Lives as
  // long as the program. Else null.
  const FusedProgram* tail() const { return tail_.get(); }

  // What each member makes of these inputs, whose shapes may be partial. A constant has its value.
  // Throws what a member's shape function throws.
  std::vector<std::vector<TensorSpec>> infer(std::span<const TensorSpec> inputs) const;
  static const TensorSpec& spec_of(const Operand& operand, std::span<const TensorSpec> inputs,
                                   const std::vector<std::vector<TensorSpec>>& made);

 private:
  explicit FusedProgram(const FusedProgram& whole);  // its tail, which needs its nodes

  Graph graph_;  // of a tail: empty; the nodes are those of the whole
  int num_inputs_ = 0;
  std::vector<Member> members_;
  std::vector<Operand> outputs_;
  std::unique_ptr<const FusedProgram> tail_;
};

// The attributes of a `_Fused` node that computes `results` of `body`, a graph whose `_Feed` nodes
// are named "0", "1", …, as the inputs are.
AttrMap fused_attrs(const Graph& body, const std::vector<Output>& inputs,
                    const std::vector<Output>& results);
// What a picture calls the op of a node: its name, or, of a `_Fused` node, those of its members:
// "BiasAdd + Relu". Long lists are cut.
std::string op_title(const NodeView& node);

}  // namespace leat
