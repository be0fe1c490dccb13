// From a segment and concrete shapes to a tape, in six passes: shapes and constants, what is
// needed, kernels, the order that keeps reads of variables before writes, memory, addresses.
#include <algorithm>
#include <map>
#include <queue>

#include "runtime/memory_plan.h"
#include "runtime/node_error.h"
#include "runtime/node_states.h"
#include "runtime/segment_values.h"
#include "runtime/tape.h"

namespace leat {
namespace {

class Compiler {
 public:
  Compiler(const ProgramPlan& program, const SegmentPlan& segment, NodeStates& node_states)
      : program_(program),
        segment_(segment),
        device_(*program.device),
        node_states_(node_states),
        is_host_(device_.type() == DeviceType::cpu),
        tape_(std::make_shared<Tape>()) {}

  std::shared_ptr<const Tape> compile(std::span<const Tensor* const> inputs) {
    values_ = infer_values(program_, segment_, inputs);
    name_sources();
    const size_t count = segment_.nodes.size();
    kernels_.resize(count);
    is_needed_.resize(count);
    is_copied_.resize(count);
    find_needed();
    for (size_t n = 0; n < count; ++n) {
      if (!is_needed_[n] || values_.is_folded[n]) continue;
      try {
        kernels_[n] = prepare(static_cast<int>(n));
      } catch (...) {
        throw Error(status_at(*segment_.nodes[n].node, device_));
      }
    }
    find_order();
    plan();
    return tape_;
  }

 private:
  // One piece of memory: values that are views of each other share it.
  struct Root {
    Address address;
    DType dtype = DType::invalid;
    Shape shape;
    size_t bytes = 0;
    bool on_host = true;
    int first = -1, last = -1;  // instructions
    bool is_result = false;
    int merged_into = -1;  // written over another's memory
  };

  // Inputs and variables: the tape's key, and memory that is not the tape's.
  void name_sources() {
    for (size_t i = 0; i < values_.inputs.size(); ++i) {
      SegmentValue& value = values_.inputs[i];
      tape_->key.inputs.push_back(value.shape);
      tape_->key.values.push_back(value.known);
      value.root = new_root({.address = {Address::Kind::input, static_cast<int>(i)}});
    }
    for (size_t v = 0; v < values_.variables.size(); ++v) {
      SegmentValue& value = values_.variables[v];
      tape_->key.variables.push_back(value.shape);
      tape_->variables.push_back(
          {.is_written = segment_.variables[v].is_written, .shape = value.shape});
      value.root = new_root({.address = {Address::Kind::variable, static_cast<int>(v)}});
    }
  }

  const SegmentValue& input_of(int n, int i) const {
    return values_.of(segment_.nodes[n].inputs[i]);
  }

  // ---- What is needed ----

  void find_needed() {
    for (const SegmentPlan::Result& result : segment_.results) is_needed_[result.node] = true;
    for (int n = static_cast<int>(segment_.nodes.size()) - 1; n >= 0; --n) {
      const SegmentNode& node = segment_.nodes[n];
      if (node.is_wanted || node.node->op->is_stateful || node.node->outputs.empty())
        is_needed_[n] = true;
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i].kind == SegmentSource::Kind::variable &&
            is_written(*node.node, static_cast<int>(i)))
          is_needed_[n] = true;
      }
      if (!is_needed_[n] || values_.is_folded[n]) continue;
      for (const SegmentSource& source : node.inputs) {
        if (source.kind == SegmentSource::Kind::local) is_needed_[source.index] = true;
      }
    }
  }

  BoundKernel prepare(int n) {
    const Node& node = *segment_.nodes[n].node;
    const std::vector<TensorSpec> inputs = values_.input_specs(segment_.nodes[n]);
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      check_internal(inputs[i].value != nullptr || !is_value_input(node, i), "input ", i,
                     " is not known before the step");
    }
    std::shared_ptr<void> no_state;
    return segment_.nodes[n].kernel.prepare(
        {node.view(), inputs, values_.output_specs(n), device_,
         node.op->is_stateful ? node_states_.of(node.name) : no_state});
  }

  // ---- Order ----

  // A read of a variable that is not ordered after a write goes before it. A view of a variable
  // whose user can only run after the write becomes a copy. What must not happen: that a value
  // changes after the node that read it.
  void find_order() {
    successors_.assign(segment_.nodes.size(), {});
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      for (int before : segment_.nodes[n].after) successors_[before].push_back(static_cast<int>(n));
    }
    do {
      find_views();
    } while (!order_variables());
    sort();
  }

  void find_views() {
    roots_.resize(values_.inputs.size() + values_.variables.size());
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      if (!is_needed_[n] || values_.is_folded[n]) continue;
      for (size_t o = 0; o < values_.nodes[n].size(); ++o) {
        SegmentValue& value = values_.nodes[n][o];
        value.root = -1;
        value.view_of_variable = -1;
        for (const Alias& view : kernels_[n].views) {
          if (view.output != static_cast<int>(o) || is_copied_[n]) continue;
          const SegmentValue& input = input_of(static_cast<int>(n), view.input);
          if (input.known.is_valid()) {
            value.known = input.known.reshaped(value.shape);
          } else {
            value.root = input.root;
            value.view_of_variable = input.view_of_variable;
            if (is_variable(input.root) && input.view_of_variable < 0)
              value.view_of_variable = static_cast<int>(n);
          }
        }
        if (value.root < 0 && !value.known.is_valid() &&
            segment_.nodes[n].node->outputs[o].is_handle()) {
          value.root = input_of(static_cast<int>(n), first_handle_input(n)).root;
        }
        if (value.root < 0 && !value.known.is_valid()) {
          value.root =
              new_root({.dtype = value.dtype,
                        .shape = value.shape,
                        .bytes = value.bytes(),
                        .on_host = is_host_ || contains(segment_.nodes[n].kernel.host_outputs,
                                                        static_cast<int>(o))});
        }
      }
    }
  }

  int first_handle_input(size_t n) const {
    int i = 0;
    while (!is_handle_input(*segment_.nodes[n].node, i)) ++i;
    return i;
  }

  bool is_variable(int root) const {
    return root >= 0 && roots_[root].address.kind == Address::Kind::variable;
  }

  // True if all is in order; false if a view had to become a copy, so that views must be found
  // again.
  bool order_variables() {
    struct Access {
      int node;
      int origin;  // the node at which the value was read
    };
    std::map<int, std::vector<Access>> reads;  // by root
    std::map<int, std::vector<int>> writers;
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      if (!is_needed_[n] || values_.is_folded[n]) continue;
      const int node = static_cast<int>(n);
      for (size_t i = 0; i < segment_.nodes[n].inputs.size(); ++i) {
        const SegmentValue& value = input_of(node, static_cast<int>(i));
        if (!is_variable(value.root) || value.known.is_valid()) continue;
        if (only_passes_handle(*segment_.nodes[n].node)) continue;
        if (is_written(*segment_.nodes[n].node, static_cast<int>(i))) {
          writers[value.root].push_back(node);
        } else {
          reads[value.root].push_back(
              {node, value.view_of_variable < 0 ? node : value.view_of_variable});
        }
      }
    }
    for (const SegmentPlan::Result& result : segment_.results) {
      const SegmentValue& value = values_.nodes[result.node][result.output];
      // A value that leaves is used after all that the tape does.
      if (is_variable(value.root) && !value.known.is_valid())
        reads[value.root].push_back({-1, value.view_of_variable});
    }
    bool is_in_order = true;
    for (const auto& [root, nodes] : writers) {
      for (int writer : nodes) {
        const std::vector<bool> later = reachable(writer);
        for (const Access& read : reads[root]) {
          if (read.node == writer || read.origin == writer ||
              (read.origin >= 0 && later[read.origin]))
            continue;
          if (read.node < 0 || later[read.node]) {
            is_copied_[read.origin] = true;
            is_in_order = false;
            successors_[read.origin].push_back(writer);
          } else {
            successors_[read.node].push_back(writer);
          }
        }
      }
    }
    return is_in_order;
  }

  std::vector<bool> reachable(int from) const {
    std::vector<bool> seen(segment_.nodes.size());
    std::vector<int> stack = {from};
    while (!stack.empty()) {
      const int n = stack.back();
      stack.pop_back();
      for (int next : successors_[n]) {
        if (!seen[next]) seen[next] = true, stack.push_back(next);
      }
    }
    return seen;
  }

  // The graph's order, as far as the edges allow.
  void sort() {
    std::vector<int> pending(segment_.nodes.size());
    for (const auto& successors : successors_) {
      for (int next : successors) ++pending[next];
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t n = 0; n < pending.size(); ++n) {
      if (pending[n] == 0) ready.push(static_cast<int>(n));
    }
    while (!ready.empty()) {
      const int n = ready.top();
      ready.pop();
      order_.push_back(n);
      for (int next : successors_[n]) {
        if (--pending[next] == 0) ready.push(next);
      }
    }
    check_internal(order_.size() == segment_.nodes.size(),
                   "reads and writes of variables form a cycle");
  }

  // ---- Memory ----

  int new_root(Root root) {
    roots_.push_back(std::move(root));
    return static_cast<int>(roots_.size()) - 1;
  }
  int resolved(int root) const {
    while (roots_[root].merged_into >= 0) root = roots_[root].merged_into;
    return root;
  }

  bool has_instruction(int n) const {
    return is_needed_[n] && !values_.is_folded[n] &&
           (kernels_[n].function != nullptr || is_copied_[n]);
  }

  void plan() {
    // Positions, and the last use of every root.
    std::vector<int> sequence;
    for (int n : order_) {
      if (!is_needed_[n] || values_.is_folded[n]) continue;
      const int at = static_cast<int>(sequence.size());
      for (size_t i = 0; i < segment_.nodes[n].inputs.size(); ++i) {
        const SegmentValue& value = input_of(n, static_cast<int>(i));
        if (!value.known.is_valid())
          roots_[value.root].last = std::max(roots_[value.root].last, at);
      }
      for (const SegmentValue& value : values_.nodes[n]) {
        if (value.known.is_valid()) continue;
        Root& root = roots_[value.root];
        if (root.first < 0) root.first = at;
        root.last = std::max(root.last, at);
      }
      sequence.push_back(n);
    }
    for (const SegmentPlan::Result& result : segment_.results) {
      const SegmentValue& value = values_.nodes[result.node][result.output];
      if (!value.known.is_valid() && roots_[value.root].address.kind == Address::Kind::none)
        roots_[value.root].is_result = true;
    }
    for (size_t at = 0; at < sequence.size(); ++at)
      share_memory(sequence[at], static_cast<int>(at));

    std::vector<MemoryBlock> blocks;
    std::vector<Address*> addresses;
    for (Root& root : roots_) {
      if (root.merged_into >= 0 || root.first < 0 || root.address.kind != Address::Kind::none)
        continue;
      if (root.is_result) {
        root.address = {Address::Kind::result, static_cast<int>(tape_->results_memory.size())};
        tape_->results_memory.push_back({root.dtype, root.shape, root.on_host});
      } else if (root.dtype == DType::string || root.on_host != is_host_) {
        root.address = {Address::Kind::owned, static_cast<int>(tape_->owned.size())};
        tape_->owned.push_back({root.dtype, root.shape, root.on_host});
      } else if (root.bytes > 0) {
        root.address.kind = Address::Kind::arena;
        blocks.push_back({root.bytes, root.first, root.last});
        addresses.push_back(&root.address);
      }
    }
    for (size_t at = 0; at < sequence.size(); ++at) {
      const size_t bytes = kernels_[sequence[at]].workspace_bytes;
      workspaces_.push_back({bytes > 0 ? Address::Kind::arena : Address::Kind::none});
      if (bytes > 0) blocks.push_back({bytes, static_cast<int>(at), static_cast<int>(at)});
    }
    const MemoryPlan memory = plan_memory(blocks, is_host_ ? 64 : 256);
    size_t block = 0;
    for (Address* address : addresses) address->offset = memory.offsets[block++];
    for (Address& workspace : workspaces_) {
      if (workspace.kind == Address::Kind::arena) workspace.offset = memory.offsets[block++];
    }
    tape_->arena_bytes = memory.bytes;
    tape_->max_live_bytes = memory.max_live;
    for (size_t at = 0; at < sequence.size(); ++at) {
      if (has_instruction(sequence[at])) emit(sequence[at], workspaces_[at]);
    }
    finish_variables(sequence);
    for (const SegmentPlan::Result& result : segment_.results) {
      const SegmentValue& value = values_.nodes[result.node][result.output];
      const bool on_host =
          is_host_ || contains(segment_.nodes[result.node].kernel.host_outputs, result.output);
      tape_->results.push_back({address_of(value, on_host), value.shape});
    }
  }

  // An output takes over the memory of an input that nobody needs any more. Not one that leaves the
  // segment: its buffer changes from run to run, so the fewer instructions know it the better.
  void share_memory(int n, int at) {
    for (const Alias& share : kernels_[n].may_share) {
      const SegmentValue& input = input_of(n, share.input);
      const SegmentValue& output = values_.nodes[n][share.output];
      if (input.known.is_valid() || output.known.is_valid() || output.dtype == DType::string ||
          is_copied_[n])
        continue;
      const int from = resolved(input.root);
      const int to = output.root;
      Root& memory = roots_[from];
      const bool is_ours = memory.address.kind == Address::Kind::none && memory.first >= 0 &&
                           memory.last == at && memory.first < at;
      if (!is_ours || memory.is_result || roots_[to].is_result || roots_[to].merged_into >= 0 ||
          roots_[to].first != at || memory.bytes != roots_[to].bytes ||
          memory.on_host != roots_[to].on_host || memory.dtype == DType::string ||
          is_read_otherwise(n, share, from)) {
        continue;
      }
      roots_[to].merged_into = from;
      memory.last = roots_[to].last;
    }
  }

  // Another input of this node lies in the same memory and may not be overwritten by this output.
  bool is_read_otherwise(int n, const Alias& share, int root) const {
    for (int i = 0; i < static_cast<int>(segment_.nodes[n].inputs.size()); ++i) {
      if (i == share.input) continue;
      const SegmentValue& other = input_of(n, i);
      if (other.known.is_valid() || resolved(other.root) != root) continue;
      const bool is_allowed =
          std::any_of(kernels_[n].may_share.begin(), kernels_[n].may_share.end(),
                      [&](const Alias& a) { return a.output == share.output && a.input == i; });
      if (!is_allowed) return true;
    }
    return false;
  }

  // ---- Addresses ----

  Address address_of(const SegmentValue& value, bool on_host) {
    if (value.known.is_valid()) return constant_address(value.known, on_host);
    return roots_[resolved(value.root)].address;
  }

  Address constant_address(const Tensor& tensor, bool on_host) {
    auto [it, is_new] = constant_addresses_.try_emplace(
        {tensor.raw(), tensor.dtype(), tensor.shape().to_string(), on_host},
        static_cast<int>(tape_->constants.size()));
    if (is_new) tape_->constants.push_back(on_host ? tensor : uploaded(tensor));
    return {Address::Kind::constant, it->second};
  }

  Tensor uploaded(const Tensor& tensor) {
    check(tensor.dtype() != DType::string, "strings cannot lie in the memory of ", device_.name());
    Tensor copy(tensor.dtype(), tensor.shape(), device_.allocate(tensor.bytes()));
    if (tensor.bytes() > 0)
      device_.copy_from_host(tensor.raw(), copy.raw(), tensor.bytes(),
                             [tensor, copy](const Status&) {});
    return copy;
  }

  void emit(int n, const Address& workspace) {
    const SegmentNode& node = segment_.nodes[n];
    BoundKernel kernel = is_copied_[n] ? copy_kernel(n) : kernels_[n];
    Tape::Instruction instruction{kernel.function, node.node, {}, {}, workspace};
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int input = static_cast<int>(i);
      const bool on_host =
          is_host_ || is_value_input(*node.node, input) || contains(node.kernel.host_inputs, input);
      instruction.inputs.push_back(address_of(input_of(n, input), on_host));
    }
    for (size_t o = 0; o < values_.nodes[n].size(); ++o) {
      instruction.outputs.push_back(
          address_of(values_.nodes[n][o],
                     is_host_ || contains(node.kernel.host_outputs, static_cast<int>(o))));
      if (!node.node->outputs[o].is_ref) {
        instruction.output_bytes += static_cast<int64_t>(values_.nodes[n][o].bytes());
      }
    }
    tape_->instructions.push_back(std::move(instruction));
    tape_->arguments.push_back(kernel.bound.get());
    tape_->bound.push_back(std::move(kernel.bound));
  }

  // A view that had to become a copy.
  BoundKernel copy_kernel(int n) {
    struct Copy {
      Alias alias;
      int64_t strings;
      size_t bytes;
    };
    std::vector<Copy> copies;
    for (const Alias& alias : kernels_[n].views) {
      const SegmentValue& value = values_.nodes[n][alias.output];
      if (value.known.is_valid()) continue;
      const bool is_string = value.dtype == DType::string;
      copies.push_back(
          {alias, is_string ? value.shape.elements() : -1, is_string ? 0 : value.bytes()});
    }
    return BoundKernel::of([device = &device_, copies = std::move(copies)](const Arguments& a) {
      for (const Copy& copy : copies) {
        if (copy.strings >= 0) {
          std::copy_n(a.input<std::string>(copy.alias.input), copy.strings,
                      a.output<std::string>(copy.alias.output));
        } else if (copy.bytes > 0) {
          device->copy_within(a.inputs[copy.alias.input], a.outputs[copy.alias.output], copy.bytes);
        }
      }
    });
  }

  // Which variables must have a value when the tape starts, and for whom.
  void finish_variables(const std::vector<int>& sequence) {
    for (int n : sequence) {
      const Node& node = *segment_.nodes[n].node;
      if (only_passes_handle(node)) continue;
      const auto visit = [&](bool only_assigned) {
        for (int i = 0; i < static_cast<int>(segment_.nodes[n].inputs.size()); ++i) {
          const SegmentValue& value = input_of(n, i);
          if (value.known.is_valid() || !is_variable(value.root) || value.view_of_variable >= 0)
            continue;
          Tape::VariableUse& use = tape_->variables[roots_[value.root].address.index];
          const bool is_assigned = node.op->allows_uninitialized && is_written(node, i);
          if (use.is_assigned || use.reader != nullptr || is_assigned != only_assigned) continue;
          if (is_assigned) {
            use.is_assigned = true;
            use.assigner = &node;
          } else {
            use.reader = &node;
          }
        }
      };
      visit(false);  // what a node reads, it reads before it assigns
      visit(true);
    }
    // Of some, only the shape was needed, and that is known; TensorFlow asks for a value all the
    // same.
    for (size_t n = 0; n < segment_.nodes.size(); ++n) {
      const Node& node = *segment_.nodes[n].node;
      if (only_passes_handle(node) || node.op->allows_uninitialized) continue;
      for (size_t i = 0; i < segment_.nodes[n].inputs.size(); ++i) {
        const int root = input_of(static_cast<int>(n), static_cast<int>(i)).root;
        if (!is_variable(root)) continue;
        Tape::VariableUse& use = tape_->variables[roots_[root].address.index];
        if (!use.is_assigned && use.reader == nullptr) use.reader = &node;
      }
    }
  }

  const ProgramPlan& program_;
  const SegmentPlan& segment_;
  Device& device_;
  NodeStates& node_states_;
  const bool is_host_;
  std::shared_ptr<Tape> tape_;
  SegmentValues values_;
  std::vector<BoundKernel> kernels_;
  std::vector<bool> is_needed_, is_copied_;
  std::vector<std::vector<int>> successors_;
  std::vector<int> order_;
  std::vector<Root> roots_;
  std::vector<Address> workspaces_;
  std::map<std::tuple<const void*, DType, std::string, bool>, int> constant_addresses_;
};

}  // namespace

std::shared_ptr<const Tape> compile_tape(const ProgramPlan& program, const SegmentPlan& segment,
                                         std::span<const Tensor* const> inputs,
                                         NodeStates& node_states) {
  const std::lock_guard one_at_a_time(node_states.mutex());
  return Compiler(program, segment, node_states).compile(inputs);
}

}  // namespace leat
