// Compiles a segment for concrete shapes to a tape, in six passes: shapes and constants, needed
// nodes, kernels, the order that keeps reads of variables before writes (tape_order.cc), memory
// (tape_memory.cc), addresses.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "core/memory/memory_owner.h"
#include "runtime/node_error.h"
#include "runtime/node_states.h"
#include "runtime/tapes/tape_draft.h"

namespace leat {
namespace {

class Compiler {
 public:
  Compiler(const ProgramPlan& program, const SegmentPlan& segment, NodeStates& node_states,
           std::span<const Tensor* const> inputs, TapeHints& hints)
      : program_(program),
        draft_{segment, *program.device, infer_values(program, segment, inputs)},
        node_states_(node_states),
        hints_(hints),
        tape_(std::make_shared<Tape>()) {}

  std::shared_ptr<const Tape> compile() {
    name_sources();
    find_needed();
    prepare_kernels();
    find_order(draft_, hints_);
    const std::vector<Address> workspaces = place_memory(draft_, *tape_, hints_);
    tape_->instructions.reserve(draft_.sequence.size());
    tape_->arguments.reserve(draft_.sequence.size());
    tape_->bound.reserve(draft_.sequence.size());
    run_after_.resize(static_cast<size_t>(draft_.count()));
    for (size_t at = 0; at < draft_.sequence.size(); ++at) {
      const int n = draft_.sequence[at];
      if (draft_.has_instruction(n)) emit(n, workspaces[at]);
      run_after_[static_cast<size_t>(n)] = tape_->instructions.size();
    }
    note_uses_of_variables();
    for (const SegmentPlan::Result& result : draft_.segment.results) {
      const SegmentValue& value = draft_.result(result);
      const bool on_host = draft_.is_output_on_host(result.node, result.output);
      tape_->results.push_back({address_of(value, on_host), value.shape});
    }
    find_early_results();
    return tape_;
  }

 private:
  // Inputs and variables: the tape's key, and memory that is not the tape's.
  void name_sources() {
    SegmentValues& values = draft_.values;
    for (size_t i = 0; i < values.inputs.size(); ++i) {
      SegmentValue& value = values.inputs[i];
      tape_->key.dtypes.push_back(value.dtype);
      tape_->key.inputs.push_back(value.shape);
      tape_->key.values.push_back(value.known);
      value.root = draft_.new_root({.address = {Address::Kind::input, static_cast<int>(i)}});
    }
    for (size_t v = 0; v < values.variables.size(); ++v) {
      SegmentValue& value = values.variables[v];
      tape_->key.variables.push_back(value.shape);
      tape_->variables.push_back(
          {.is_written = draft_.segment.variables[v].is_written, .shape = value.shape});
      value.root = draft_.new_root({.address = {Address::Kind::variable, static_cast<int>(v)}});
    }
  }

  void find_needed() {
    std::vector<bool>& is_needed = draft_.is_needed;
    is_needed.resize(draft_.count());
    for (const SegmentPlan::Result& result : draft_.segment.results) is_needed[result.node] = true;
    for (int n = draft_.count() - 1; n >= 0; --n) {
      const SegmentNode& node = draft_.segment.nodes[n];
      if (node.is_wanted || node.node->op->is_stateful || node.node->outputs.empty())
        is_needed[n] = true;
      for (int i = 0; i < draft_.num_inputs(n); ++i) {
        if (node.inputs[i].kind == SegmentSource::Kind::variable && is_written(*node.node, i))
          is_needed[n] = true;
      }
      if (!draft_.is_live(n)) continue;
      for (const SegmentSource& source : node.inputs) {
        if (source.kind == SegmentSource::Kind::local) is_needed[source.index] = true;
      }
    }
  }

  void prepare_kernels() {
    draft_.kernels.resize(draft_.count());
    draft_.is_copied.resize(draft_.count());
    for (int n = 0; n < draft_.count(); ++n) {
      if (!draft_.is_live(n)) continue;
      try {
        draft_.kernels[n] = prepare(n);
      } catch (...) {
        throw Error(status_at(draft_.node(n), draft_.device));
      }
    }
  }

  BoundKernel prepare(int n) {
    const Node& node = draft_.node(n);
    std::vector<TensorSpec>& inputs = inputs_;
    draft_.values.find_specs(draft_.segment.nodes[n], inputs);
    draft_.values.find_output_specs(n, outputs_);
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      check_internal(inputs[i].value != nullptr || !is_value_input(node, i), "input ", i,
                     " is not known before the step");
      // Of a node of the segment it is what that node declares; of a resource the planner has
      // checked it.
      if (draft_.segment.nodes[n].inputs[i].kind == SegmentSource::Kind::local) continue;
      const DType declared = node.inputs[i].dtype();
      check(declared == DType::resource || declared == inputs[i].dtype, "input ", i,
            " is declared as ", declared, ", but is a tensor of ", inputs[i].dtype);
    }
    std::shared_ptr<void> no_state;
    const Kernel& kernel = *draft_.segment.nodes[n].kernel;
    Device& device = kernel.device == DeviceType::cpu ? *program_.host : draft_.device;
    return kernel.prepare({node.view(), inputs, outputs_, device,
                           node.op->is_stateful ? node_states_.of(node.name) : no_state});
  }

  // ---- Addresses ----

  Address address_of(const SegmentValue& value, bool on_host) {
    Address out = value.known.is_valid() ? constant_address(value.known, on_host)
                                         : draft_.roots[draft_.resolved(value.root)].address;
    if (!value.known.is_valid()) out.offset += value.offset;
    out.bytes = value.bytes();
    return out;
  }

  Address constant_address(const Tensor& tensor, bool on_host) {
    std::vector<PlacedConstant>& placed = constants_[tensor.raw()];
    const auto same = std::ranges::find_if(placed, [&](const PlacedConstant& other) {
      return other.on_host == on_host && other.tensor.dtype() == tensor.dtype() &&
             other.tensor.shape() == tensor.shape();
    });
    if (same != placed.end()) return {Address::Kind::constant, same->index};
    const int index = static_cast<int>(tape_->constants.size());
    tape_->constants.push_back(on_host ? tensor : uploaded(tensor));
    placed.push_back({tensor, on_host, index});
    return {Address::Kind::constant, index};
  }

  Tensor uploaded(const Tensor& tensor) {
    check(tensor.dtype() != DType::string, "strings cannot be stored in the memory of ",
          draft_.device.name());
    const MemoryOwner owner(MemoryUse::constant);
    Tensor copy(tensor.dtype(), tensor.shape(), draft_.device.allocate(tensor.bytes()));
    if (tensor.bytes() > 0)
      draft_.device.copy_from_host(tensor.raw(), copy.raw(), tensor.bytes(),
                                   [tensor, copy](const Status&) {});
    return copy;
  }

  void emit(int n, const Address& workspace) {
    const SegmentNode& node = draft_.segment.nodes[n];
    BoundKernel kernel = draft_.is_copied[n] ? copy_kernel(n) : std::move(draft_.kernels[n]);
    Tape::Instruction instruction{.function = kernel.function,
                                  .node = node.node,
                                  .inputs = draft_.num_inputs(n),
                                  .outputs = static_cast<int>(draft_.values.of_node(n).size()),
                                  .workspace = workspace};
    for (int i = 0; i < draft_.num_inputs(n); ++i) {
      const bool on_host = draft_.is_on_host() || is_value_input(*node.node, i) ||
                           contains(node.kernel->host_inputs, i);
      tape_->addresses.push_back(address_of(draft_.input(n, i), on_host));
      if (tape_->addresses.back().kind == Address::Kind::variable && is_written(*node.node, i))
        instruction.is_update = true;
    }
    for (int o = 0; o < instruction.outputs; ++o) {
      const SegmentValue& value = draft_.values.of_node(n)[o];
      tape_->addresses.push_back(address_of(value, draft_.is_output_on_host(n, o)));
      if (!node.node->outputs[o].is_ref)
        instruction.output_bytes += static_cast<int64_t>(value.bytes());
    }
    tape_->instructions.push_back(std::move(instruction));
    tape_->arguments.push_back(kernel.bound.get());
    tape_->bound.push_back(std::move(kernel.bound));
  }

  // Those that leave while the tape runs on. A result is complete when its node has run.
  void find_early_results() {
    for (size_t r = 0; r < tape_->results.size(); ++r) {
      const SegmentPlan::Result& result = draft_.segment.results[r];
      const size_t run = run_after_[static_cast<size_t>(result.node)];
      if (draft_.leaves_early(result) && run > 0 && run < tape_->instructions.size() &&
          tape_->results[r].address.kind == Address::Kind::result)
        tape_->early_results.push_back({run - 1, static_cast<int>(r)});
    }
    std::stable_sort(tape_->early_results.begin(), tape_->early_results.end(),
                     [](const auto& a, const auto& b) { return a.instruction < b.instruction; });
  }

  // A view that had to become a copy.
  BoundKernel copy_kernel(int n) {
    struct Copy {
      View view;
      int64_t strings;
      size_t bytes;
      bool on_host;  // of a GPU's tape
    };
    std::vector<Copy> copies;
    for (const View& view : draft_.kernels[n].views) {
      const SegmentValue& value = draft_.values.of_node(n)[view.output];
      if (value.known.is_valid()) continue;
      const bool is_string = value.dtype == DType::string;
      const bool on_host = !draft_.is_on_host() && draft_.is_output_on_host(n, view.output);
      copies.push_back(
          {view, is_string ? value.shape.elements() : -1, is_string ? 0 : value.bytes(), on_host});
    }
    return BoundKernel::of(
        [device = &draft_.device, copies = std::move(copies)](const Arguments& a) {
          for (const Copy& copy : copies) {
            const auto [output, input, offset] = copy.view;
            if (copy.strings >= 0) {
              std::copy_n(a.input<std::string>(input) + offset / sizeof(std::string), copy.strings,
                          a.output<std::string>(output));
            } else if (copy.bytes > 0) {
              const char* const from = static_cast<char*>(a.inputs[input]) + offset;
              if (copy.on_host) {
                std::memcpy(a.outputs[output], from, copy.bytes);
              } else {
                device->copy_within(from, a.outputs[output], copy.bytes);
              }
            }
          }
        });
  }

  bool reads_variables(int n) const {
    for (int i = 0; i < draft_.num_inputs(n); ++i) {
      if (draft_.is_variable(draft_.input(n, i).root)) return true;
    }
    return false;
  }

  // Which variables must have a value when the tape starts, and for whom.
  void note_uses_of_variables() {
    for (const int n : draft_.sequence) {
      const Node& node = draft_.node(n);
      if (!reads_variables(n) || only_passes_handle(node)) continue;
      const auto visit = [&](bool only_assigned) {
        for (int i = 0; i < draft_.num_inputs(n); ++i) {
          const SegmentValue& value = draft_.input(n, i);
          if (value.known.is_valid() || !draft_.is_variable(value.root) ||
              value.view_of_variable >= 0)
            continue;
          Tape::VariableUse& use = tape_->variables[draft_.roots[value.root].address.index];
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
    for (int n = 0; n < draft_.count(); ++n) {
      if (!reads_variables(n)) continue;
      const Node& node = draft_.node(n);
      if (only_passes_handle(node) || node.op->allows_uninitialized) continue;
      for (int i = 0; i < draft_.num_inputs(n); ++i) {
        const int root = draft_.input(n, i).root;
        if (!draft_.is_variable(root)) continue;
        Tape::VariableUse& use = tape_->variables[draft_.roots[root].address.index];
        if (!use.is_assigned && use.reader == nullptr) use.reader = &node;
      }
    }
  }

  const ProgramPlan& program_;
  TapeDraft draft_;
  NodeStates& node_states_;
  TapeHints& hints_;
  const std::shared_ptr<Tape> tape_;
  struct PlacedConstant {
    Tensor tensor;
    bool on_host;
    int index;  // in the tape's constants
  };
  std::unordered_map<const void*, std::vector<PlacedConstant>> constants_;  // by their elements
  std::vector<TensorSpec> inputs_, outputs_;  // of the node that is being prepared
  std::vector<size_t> run_after_;             // by node: how many instructions have run then
};

}  // namespace

std::shared_ptr<const Tape> compile_tape(const ProgramPlan& program, const SegmentPlan& segment,
                                         std::span<const Tensor* const> inputs,
                                         NodeStates& node_states, TapeHints& hints) {
  const std::lock_guard one_at_a_time(node_states.mutex());
  return Compiler(program, segment, node_states, inputs, hints).compile();
}

}  // namespace leat
