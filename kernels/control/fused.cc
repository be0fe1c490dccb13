// `_Fused`: see graph/fused.h. A product or a convolution at its head runs for a block of rows that
// stays in the second-level cache until the other members (fused_tiles.h) have used it.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/execution/step_end.h"
#include "graph/fused.h"
#include "graph/shape_inference.h"
#include "kernels/control/fused_tiles.h"
#include "kernels/control/row_cut.h"
#include "kernels/control/tile_program.h"
#include "kernels/cpu.h"
#include "kernels/linear_algebra/matmul.h"
#include "kernels/one_thread.h"

namespace leat {
namespace {

// Of what the head makes.
constexpr int64_t block_bytes = 512 << 10;
// A head prepares its other operand for each block: it computes so many times with each byte of it.
constexpr int64_t least_uses = 500;
constexpr double least_block_flops = 4e6;  // some tens of microseconds

constexpr size_t most_values = 64;  // inputs, and results

class Headed {
 public:
  Headed(const KernelRequest& request, std::shared_ptr<const FusedProgram> program)
      : program_(std::move(program)),
        head_(*program_->members()[0].node),
        tail_(program_, program_->tail()),
        device_(request.device) {
    inputs_.assign(request.inputs.begin(), request.inputs.end());
    const MemberSpecs made = program_->infer(inputs_);
    head_output_ = made[0][0];
    tail_inputs_ = inputs_;
    tail_inputs_.push_back(head_output_);
    for (const Operand& operand : program_->members()[0].operands)
      head_inputs_.push_back(operand.index);
    find_rows();
    choose_blocks();
    bind(block_, full_);
    if (last_ != block_) bind(last_, last_part_);
    place_head();
  }

  BoundKernel bound() && {
    std::vector<Alias> may_share;
    for (const Alias& alias : full_.tail.may_share) {
      const bool is_read_by_head =
          std::find(head_inputs_.begin(), head_inputs_.end(), alias.input) != head_inputs_.end();
      // The head's values lie in that output before the tail reads its inputs.
      const bool is_taken = alias.output == head_place_;
      if (alias.input < head_number() && !is_read_by_head && !is_taken && shares(alias))
        may_share.push_back(alias);
    }
    const double cost =
        (full_.head.cost_ns + full_.tail.cost_ns) * static_cast<double>(batch_) / block_;
    const size_t workspace = lane_bytes_ * static_cast<size_t>(lanes_);
    BoundKernel out =
        BoundKernel::of([self = std::move(*this)](const Arguments& a) { self.run(a); });
    out.may_share = std::move(may_share);
    out.cost_ns = cost;
    out.workspace_bytes = workspace;
    return out;
  }

 private:
  using Operand = FusedProgram::Operand;
  struct Part {
    BoundKernel head, tail;
  };

  int head_number() const { return static_cast<int>(inputs_.size()); }  // among the tail's inputs

  // ---- What differs from block to block ----

  // Blocks are indices of the first axis of what the head makes.
  void find_rows() {
    is_row_.assign(tail_inputs_.size(), false);
    batch_ = 1;
    const MemberSpecs made = tail_->infer(tail_inputs_);
    for (const Operand& result : tail_->outputs())
      result_bytes_.push_back(bytes_of(made[result.member][result.index]));
    if (head_output_.shape.rank() < 1 || head_output_.shape.elements() == 0) return;
    if (head_.is("MatMul") && head_.attr<bool>("transpose_a")) return;  // it has no rows
    const RowCut cut = find_row_cut(*tail_, tail_inputs_, made);
    const int64_t batch = head_output_.shape[0];
    const RowCut first{1, batch};
    if (cut.axes == 0) return;
    for (size_t m = 0; m < made.size(); ++m) {
      const FusedProgram::Member& member = tail_->members()[m];
      if (member.node->is("Const")) continue;
      // Sums of all rows are not made block by block.
      if (sums_all_rows(member, tail_inputs_, made, cut) || made[m][0].shape[0] != batch) return;
    }
    std::vector<int> uses(tail_inputs_.size(), -1);  // 1: row by row, 0: the same for all
    for (size_t m = 0; m < tail_->members().size(); ++m) {
      const FusedProgram::Member& member = tail_->members()[m];
      for (size_t i = 0; i < member.operands.size(); ++i) {
        const Operand& operand = member.operands[i];
        if (operand.member >= 0) continue;
        const int use = is_row_operand(member, static_cast<int>(i), tail_inputs_[operand.index],
                                       made[m][0].shape, first);
        int& known = uses[static_cast<size_t>(operand.index)];
        if (known >= 0 && known != use) return;  // both ways
        known = use;
      }
    }
    // The head reads rows of its first operand, and the others whole.
    for (size_t i = 0; i < head_inputs_.size(); ++i) {
      int& known = uses[static_cast<size_t>(head_inputs_[i])];
      const int use = i == 0;
      if (known >= 0 && known != use) return;
      known = use;
    }
    if (uses.back() != 1) return;
    batch_ = batch;
    for (size_t i = 0; i < uses.size(); ++i) is_row_[i] = uses[i] == 1;
  }

  void choose_blocks() {
    block_ = batch_;
    if (batch_ > 1) {
      const double output = static_cast<double>(head_output_.shape.elements()) / batch_;
      const Shape& other = inputs_[static_cast<size_t>(head_inputs_[1])].shape;
      const double terms = static_cast<double>(other.elements()) / other[other.rank() - 1];
      const double flops = 2 * output * terms;  // of a row
      const double bytes = static_cast<double>(bytes_of(head_output_)) / batch_;
      const double other_bytes = static_cast<double>(bytes_of(inputs_[head_inputs_[1]]));
      const double rows = std::max(
          {1.0, block_bytes / bytes, least_block_flops / flops, least_uses * other_bytes / flops});
      if (rows < static_cast<double>(batch_)) {
        const auto blocks = static_cast<int64_t>(static_cast<double>(batch_) / rows);
        block_ = (batch_ + blocks - 1) / blocks;
      }
    }
    blocks_ = (batch_ + block_ - 1) / block_;
    last_ = batch_ - (blocks_ - 1) * block_;
    // Several blocks per thread: a thread without a core holds up one of them. With fewer blocks,
    // the kernels themselves use the threads.
    const ThreadPool* pool = device_.stream().pool();
    const int64_t threads = pool == nullptr ? 1 : pool->threads();
    if (threads > 1 && blocks_ >= 2 * threads) lanes_ = std::min(blocks_, 4 * threads);
  }

  TensorSpec of_block(TensorSpec spec, int64_t rows) const {
    if (blocks_ > 1) spec.shape.set(0, rows);
    return spec;
  }

  void bind(int64_t rows, Part& part) {
    std::vector<TensorSpec> tail_inputs = tail_inputs_, head_inputs;
    for (size_t i = 0; i < tail_inputs.size(); ++i) {
      if (is_row_[i]) tail_inputs[i] = of_block(tail_inputs[i], rows);
    }
    for (const int i : head_inputs_) head_inputs.push_back(tail_inputs[static_cast<size_t>(i)]);
    const TensorSpec made[] = {tail_inputs.back()};
    const Kernel* kernel = find_kernel(*head_.op, head_.attrs, device_.type());
    check_internal(kernel != nullptr && kernel->prepare, head_.op->name, " has no kernel to fuse");
    try {
      std::shared_ptr<void> no_state;
      part.head = kernel->prepare({head_.view(), head_inputs, made, device_, no_state});
    } catch (const Error& error) {
      if (!error.node().empty()) throw;
      throw Error(with_node(error.status(), head_.name));
    }
    part.tail = bind_tiles(tail_, tail_inputs, device_);
  }

  // ---- Memory ----

  static bool shares(const BoundKernel& kernel, const Alias& wanted) {
    return std::any_of(kernel.may_share.begin(), kernel.may_share.end(), [&](const Alias& alias) {
      return alias.output == wanted.output && alias.input == wanted.input;
    });
  }
  bool shares(const Alias& wanted) const {
    return shares(full_.tail, wanted) && (last_ == block_ || shares(last_part_.tail, wanted));
  }

  // The head writes into the output that may take the place of its values, if there is one.
  void place_head() {
    for (size_t r = 0; r < result_bytes_.size(); ++r) {
      if (shares({static_cast<int>(r), head_number()})) head_place_ = static_cast<int>(r);
    }
    for (size_t i = 0; i < tail_inputs_.size(); ++i)
      strides_.push_back(is_row_[i] ? stride_of(bytes_of(tail_inputs_[i])) : 0);
    head_bytes_ = head_place_ >= 0 ? 0 : stride_of(bytes_of(head_output_));
    head_bytes_ = TileProgram::aligned(head_bytes_);
    lane_bytes_ = TileProgram::aligned(
        head_bytes_ + std::max({full_.head.workspace_bytes, full_.tail.workspace_bytes,
                                last_part_.head.workspace_bytes, last_part_.tail.workspace_bytes}));
  }

  size_t stride_of(size_t whole) const {
    return blocks_ == 1 ? whole : whole / static_cast<size_t>(batch_) * static_cast<size_t>(block_);
  }

  // ---- A step ----

  void run(const Arguments& a) const {
    auto* const workspace = static_cast<std::byte*>(a.workspace);
    if (lanes_ == 1) {
      for (int64_t block = 0; block < blocks_; ++block) run_block(a, block, workspace, *a.stream);
      return;
    }
    a.stream->parallel_for(lanes_, 1, [&](int64_t begin, int64_t end) {
      OneThread stream;
      for (int64_t lane = begin; lane < end; ++lane) {
        std::byte* const own = workspace + static_cast<size_t>(lane) * lane_bytes_;
        for (int64_t block = lane; block < blocks_; block += lanes_)
          run_block(a, block, own, stream);
      }
    });
  }

  void run_block(const Arguments& a, int64_t block, std::byte* workspace, Stream& stream) const {
    StepEnd::ask();
    void* inputs[most_values + 1];
    void* outputs[most_values];
    void* of_head[2];
    const auto at = static_cast<size_t>(block);
    const Part& part = block + 1 == blocks_ && last_ != block_ ? last_part_ : full_;
    for (size_t i = 0; i < inputs_.size(); ++i)
      inputs[i] = static_cast<std::byte*>(a.inputs[i]) + at * strides_[i];
    for (size_t r = 0; r < result_bytes_.size(); ++r) {
      outputs[r] = static_cast<std::byte*>(a.outputs[r]) +
                   (blocks_ == 1 ? 0 : at * stride_of(result_bytes_[r]));
    }
    void* const made = head_place_ >= 0 ? outputs[head_place_] : workspace;
    inputs[inputs_.size()] = made;
    for (size_t i = 0; i < head_inputs_.size(); ++i)
      of_head[i] = inputs[static_cast<size_t>(head_inputs_[i])];
    void* const rest = workspace + head_bytes_;
    if (part.head.function != nullptr)
      part.head.function(part.head.bound.get(), {of_head, &made, rest, &stream});
    if (part.tail.function != nullptr)
      part.tail.function(part.tail.bound.get(), {inputs, outputs, rest, &stream});
  }

  std::shared_ptr<const FusedProgram> program_;
  const Node& head_;
  std::shared_ptr<const FusedProgram> tail_;
  Device& device_;
  std::vector<TensorSpec> inputs_, tail_inputs_;
  TensorSpec head_output_;
  std::vector<int> head_inputs_;
  std::vector<bool> is_row_;  // of the tail's inputs
  std::vector<size_t> strides_, result_bytes_;
  int64_t batch_ = 1, block_ = 1, blocks_ = 1, last_ = 1;
  Part full_, last_part_;
  int head_place_ = -1;
  size_t head_bytes_ = 0;  // for its values, if they have no place in an output
  int64_t lanes_ = 1;      // blocks at the same time, each with its own workspace
  size_t lane_bytes_ = 0;
};

// A product that is added to a value: the product's kernel adds to what lies in the output.
std::optional<BoundKernel> bind_sum_with_product(const KernelRequest& request,
                                                 const FusedProgram& program) {
  const std::vector<FusedProgram::Member>& members = program.members();
  const DType dtype = request.outputs[0].dtype;
  if (members.size() != 2 || !members[0].node->is("MatMul") || members[1].operands.size() != 2 ||
      program.outputs().size() != 1 || (dtype != DType::f32 && dtype != DType::f64))
    return {};
  const Node &product = *members[0].node, &sum = *members[1].node;
  if (!sum.is("Add") && !sum.is("AddV2") && !sum.is("AddN")) return {};
  const std::vector<FusedProgram::Operand>& terms = members[1].operands;
  const int term = terms[terms[0].member < 0 ? 0 : 1].index;
  if (terms[0].member == terms[1].member ||
      request.inputs[static_cast<size_t>(term)].shape != request.outputs[0].shape)
    return {};
  const int of_a = members[0].operands[0].index, of_b = members[0].operands[1].index;
  const bool turns_a = product.attr<bool>("transpose_a"),
             turns_b = product.attr<bool>("transpose_b");
  const Shape &a = request.inputs[static_cast<size_t>(of_a)].shape, &out = request.outputs[0].shape;
  if (out.rank() != 2) return {};
  const MatMul extents{.m = out[0],
                       .n = out[1],
                       .k = a[turns_a ? 0 : 1],
                       .transpose_a = turns_a,
                       .transpose_b = turns_b,
                       .adds = true};
  BoundKernel adds = bind_matmul(dtype, extents);
  const size_t bytes = bytes_of(request.outputs[0]);
  const double cost = adds.cost_ns;
  const size_t workspace = adds.workspace_bytes;
  BoundKernel kernel = BoundKernel::of([=, adds = std::move(adds)](const Arguments& args) {
    void* const to = args.outputs[0];
    if (to != args.inputs[term]) std::memcpy(to, args.inputs[term], bytes);
    void* const operands[] = {args.inputs[of_a], args.inputs[of_b]};
    if (adds.function != nullptr)
      adds.function(adds.bound.get(), {operands, args.outputs, args.workspace, args.stream});
  });
  kernel.cost_ns = cost;
  kernel.workspace_bytes = workspace;
  if (term != of_a && term != of_b) kernel.may_share = {{0, term}};
  return kernel;
}

BoundKernel prepare(const KernelRequest& request) {
  std::shared_ptr<const FusedProgram> program = FusedProgram::of(request.node);
  if (program->tail() != nullptr) {
    check_internal(std::max(request.inputs.size(), request.outputs.size()) <= most_values,
                   "too many nodes are fused behind a product");
    if (auto sum = bind_sum_with_product(request, *program)) return std::move(*sum);
    return Headed(request, std::move(program)).bound();
  }
  return bind_tiles(std::move(program), request.inputs, request.device);
}

void infer(ShapeContext& c) {
  const std::shared_ptr<const FusedProgram> program = FusedProgram::of(c.node());
  std::vector<TensorSpec> inputs;
  for (int i = 0; i < c.num_inputs(); ++i)
    inputs.push_back({c.input_dtype(i), c.input(i), c.value(i)});
  const MemberSpecs made = program->infer(inputs);
  for (size_t i = 0; i < program->outputs().size(); ++i) {
    c.set_output(static_cast<int>(i),
                 FusedProgram::spec_of(program->outputs()[i], inputs, made).shape);
  }
}

const Op fused_op{{
    .name = "_Fused",
    .doc = "results = what the nodes of `body`, a GraphDef, make of the inputs; its feeds are "
           "called \"0\", \"1\", … as the inputs are. `ops` says what they are.",
    .inputs = {"inputs: Tinputs"},
    .outputs = {"outputs: Tresults"},
    .attrs = {"Tinputs: list(type)", "Tresults: list(type)", "body: string",
              "results: list(string)", "ops: list(string)"},
    .shape = infer,
    .kernels = {cpu_kernel(prepare)},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
