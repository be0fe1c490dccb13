#include "runtime/plan/node_roles.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/state/variable.h"
#include "graph/host_values.h"
#include "graph/kernel_lookup.h"
#include "graph/passes/colocation.h"
#include "graph/passes/variable_accesses.h"
#include "graph/signature.h"

namespace leat {
namespace {

// State behind handles; not state that an op finds by name alone (Stage).
bool is_state(const Node& node) {
  return node.op->is_variable ||
         (node.op->make_resource && !node.outputs.empty() && node.outputs[0].is_handle());
}

Shape declared_shape(Output ref) {
  while (ref.node != nullptr) {
    if (ref.node->op->is_variable) return ref.shape();
    ref = passed_handle(*ref.node);
  }
  return Shape::unknown();
}

// Assign to a variable without a fixed shape. AssignVariableOp keeps to the declared one only if it
// is asked to; where the value is known to have it, nothing changes.
bool may_change_shape(const Node& node) {
  if (node.inputs.empty() || !is_handle_input(node, 0)) return false;
  const Shape declared = declared_shape(node.inputs[0]);
  if (!declared.is_complete()) return true;
  if (node.is("AssignVariableOp") && node.inputs[1].shape() == declared) return false;
  return (node.is("Assign") || node.is("AssignVariableOp")) && !node.attr<bool>("validate_shape");
}

// `assign`, with a note on the variable if the value has another shape than the declared one, which
// readers would rely on. Before the value is there: a note too many harms nobody.
Execute noting_other_shape(Execute assign, const Shape& declared) {
  return [assign = std::move(assign), declared](ExecuteContext& c) {
    if (!(c.input(1).shape() == declared)) c.variable(0).note_other_shape();
    assign(c);
  };
}

using KernelCopies = std::unordered_map<const Kernel*, KernelCopy>;

// Of a loop on a GPU.
KernelCopy places_of_loop(const Node& loop) {
  const std::vector<bool> on_host = loop_inputs_on_host(loop);
  auto out = std::make_shared<Kernel>();
  for (int i = 0; i < static_cast<int>(on_host.size()); ++i) {
    if (!on_host[static_cast<size_t>(i)]) continue;
    out->host_inputs.push_back(i);
    if (i < loop.num_outputs()) out->host_outputs.push_back(i);
  }
  return out;
}

// False if no kernel fits.
bool find_role(const Node& node, const Device& device, KernelLookup& find_kernel,
               KernelCopies& copies, NodeRole& out) {
  const auto is_boundary = [&](ItemKind kind) {
    out.role = Role::boundary;
    out.kind = kind;
    return true;
  };
  if (node.is("_Send")) return is_boundary(ItemKind::send);
  if (node.is("_Recv")) return is_boundary(ItemKind::receive);
  if (node.is("Switch") || node.is("RefSwitch")) return is_boundary(ItemKind::switch_);
  if (node.is("Merge")) return is_boundary(ItemKind::merge);
  if (node.is("_Loop")) {
    if (device.type() != DeviceType::cpu) out.kernel = places_of_loop(node);
    return is_boundary(ItemKind::loop);
  }
  if (node.is("_Feed")) return out.role = Role::feed, true;
  if (node.is("Const")) return out.role = Role::constant, true;
  if (is_state(node)) return out.role = Role::state, true;

  const Kernel* kernel = find_kernel(node, device.type());
  const bool is_gpu = device.type() != DeviceType::cpu;
  if (is_gpu && (kernel == nullptr || !takes_objects(kernel->types, node))) {
    out.kernel = host_kernel(node);
    kernel = out.kernel.get();
  }
  if (kernel == nullptr) return false;
  if (kernel != out.kernel.get()) {
    KernelCopy& copy = copies[kernel];
    if (copy == nullptr) copy = std::make_shared<const Kernel>(*kernel);
    out.kernel = copy;
  }
  // A tape knows memory, not objects: a variant is none of its values.
  const bool needs_execute =
      node.op->has_data_dependent_shape ||
      (kernel->execute && (may_change_shape(node) || Colocation::has_variant(node)));
  if (kernel->prepare && !needs_execute) return true;
  if (kernel->execute) {
    if (node.is("Assign") || node.is("AssignVariableOp")) {
      const Shape declared = declared_shape(node.inputs[0]);
      if (declared.is_complete()) {
        Kernel noting = *kernel;
        noting.execute = noting_other_shape(std::move(noting.execute), declared);
        out.kernel = std::make_shared<const Kernel>(std::move(noting));
      }
    }
    return is_boundary(ItemKind::execute);
  }
  if (kernel->execute_async) return is_boundary(ItemKind::execute_async);
  return static_cast<bool>(kernel->prepare);
}

Node& insert(NodeSpec spec, Graph& partition, std::vector<NodeRole>& roles, const Device& device) {
  Node& node = partition.insert(std::move(spec), device.name());
  roles.resize(partition.size());
  KernelLookup find_kernel;
  KernelCopies copies;
  check_internal(find_role(node, device, find_kernel, copies, roles[node.id]), node.op->name,
                 " has no kernel on ", device.name());
  return node;
}

std::vector<Node*> in_order(std::vector<Node*> nodes) {
  std::sort(nodes.begin(), nodes.end(), [](Node* a, Node* b) { return a->id < b->id; });
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Output read_of(Output ref, std::vector<Node*> after, Graph& partition, std::vector<NodeRole>& roles,
               const Device& device) {
  return insert({.op = "Identity",
                 .name = partition.unique_name(ref.node->name + "/_read"),
                 .inputs = {ref},
                 .attrs = {{"T", ref.dtype()}},
                 .control_inputs = in_order(std::move(after)),
                 .location = ref.node->location},
                partition, roles, device)
      .output();
}

// TensorFlow fetches a reference, and the Identity of one that nothing orders, as the variable's
// own memory: the client sees what the step has made of it, whatever ran first. So such a fetch
// reads after all that writes to the variable; and after loops, which write to their own copy of
// its node. Where partition() knows that TensorFlow's cluster has sent it before, what it has read.
class FetchedReads {
 public:
  FetchedReads(Graph& partition, std::vector<NodeRole>& roles, const Device& device)
      : partition_(partition), roles_(roles), device_(device), accesses_(partition) {
    for (const auto& node : partition.nodes()) {
      const bool is_read = node->is("Identity") && node->inputs[0].is_ref();
      if (!is_read || !node->view().has(early_fetches_attr)) continue;
      for (const std::string& fetch : node->attr<std::vector<std::string>>(early_fetches_attr))
        early_.emplace(fetch, node->output());
    }
  }

  Output of(const std::string& name, const Output& fetched) {
    if (const auto early = early_.find(name); early != early_.end()) return early->second;
    const Output ref = reference_behind(fetched);
    if (!ref) return fetched;
    std::vector<Node*> after = accesses_.writers(accesses_.variable_of(*ref.node));
    for (const auto& node : partition_.nodes()) {
      if (node->is("_Loop")) after.push_back(node.get());
    }
    if (after.empty() && !fetched.is_ref()) return fetched;
    if (!after.empty()) {
      // Runs also if one of them is dead, in a branch that was not taken.
      after = {&insert({.op = "ControlTrigger",
                        .name = partition_.unique_name(ref.node->name + "/_written"),
                        .control_inputs = in_order(std::move(after)),
                        .location = ref.node->location},
                       partition_, roles_, device_)};
    }
    return read_of(ref, std::move(after), partition_, roles_, device_);
  }

 private:
  Graph& partition_;
  std::vector<NodeRole>& roles_;
  const Device& device_;
  const VariableAccesses accesses_;
  std::map<std::string, Output> early_;  // by fetch
};

}  // namespace

KernelCopy host_kernel(const Node& node) {
  if (!is_for_host(node)) return nullptr;
  const Kernel* kernel = find_kernel(*node.op, node.attrs, DeviceType::cpu);
  if (kernel == nullptr) return nullptr;
  auto out = std::make_shared<Kernel>(*kernel);
  for (size_t i = 0; i < node.inputs.size(); ++i) out->host_inputs.push_back(static_cast<int>(i));
  for (size_t o = 0; o < node.outputs.size(); ++o) out->host_outputs.push_back(static_cast<int>(o));
  return out;
}

KernelCopy no_kernel() {
  static const KernelCopy none = std::make_shared<const Kernel>();
  return none;
}

std::vector<NodeRole> find_roles(const Graph& partition, const Device& device) {
  std::vector<NodeRole> roles(partition.size());
  KernelLookup find_kernel;
  KernelCopies copies;
  std::string missing, first;
  for (const auto& node : partition.nodes()) {
    if (find_role(*node, device, find_kernel, copies, roles[node->id])) continue;
    if (missing.empty()) first = node->name;
    missing += concat("\n  ", node->op->name, " node '", node->name, "'");
    if (node->location.is_known()) {
      missing += concat(" (made at ", node->location, ")");
    }
    missing += "; kernels exist for " + describe_kernels(*node->op);
  }
  if (!missing.empty()) {
    fail_at(first, Code::unimplemented, "no kernel fits on ", device.name(), " for:", missing);
  }
  return roles;
}

std::vector<FetchedOutput> make_reads_explicit(Graph& partition, std::vector<NodeRole>& roles,
                                               const std::vector<std::string>& fetches,
                                               const Device& device) {
  const size_t count = partition.size();
  for (size_t n = 0; n < count; ++n) {
    Node& node = *partition.nodes()[n];
    if (roles[node.id].role != Role::boundary) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].is_ref() || is_handle_input(node, static_cast<int>(i))) continue;
      std::vector<Node*> after = node.control_inputs;
      for (size_t j = 0; j < node.inputs.size(); ++j) {
        if (j != i) after.push_back(node.inputs[j].node);
      }
      node.inputs[i] = read_of(node.inputs[i], std::move(after), partition, roles, device);
    }
  }
  FetchedReads reads(partition, roles, device);
  std::vector<FetchedOutput> out;
  std::set<std::string> seen;
  for (const std::string& name : fetches) {
    if (!seen.insert(name).second) continue;
    Output source = partition.output(name);
    const Node* node = source.node;
    check(source.dtype() != DType::resource, "'", name,
          "' is a handle to a variable or other state and has no value to fetch: fetch the output "
          "of a node that reads it");
    source = reads.of(name, source);
    out.push_back({name, source, node});
  }
  return out;
}

bool is_handle_input(const Node& node, int input) {
  if (node.inputs[input].dtype() == DType::resource) return true;
  if (!node.inputs[input].is_ref()) return false;
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    if (input >= range.begin && input < range.end) return range.arg->is_ref;
  }
  return false;
}

bool is_written(const Node& node, int input) {
  for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
    if (input < range.begin || input >= range.end) continue;
    // Not where any type fits: Identity and Switch pass a resource on.
    return (range.arg->is_ref || range.arg->dtype == DType::resource) && !node.op->only_reads_state;
  }
  return false;
}

Output passed_handle(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (is_handle_input(node, static_cast<int>(i))) return node.inputs[i];
  }
  return {};
}

bool only_passes_handle(const Node& node) {
  return node.is("Identity") && node.outputs[0].dtype == DType::resource;
}

bool is_value_input(const Node& node, int input) {
  return node.op->is_value_input(input, static_cast<int>(node.inputs.size()));
}

}  // namespace leat
