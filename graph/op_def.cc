// The registry. Static objects register ops (and the plug-in's when it is loaded); any thread may
// read.
#include "graph/op_def.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <shared_mutex>

#include "graph/kernel_lookup.h"
#include "graph/near_misses.h"
#include "graph/op_schema.h"

namespace leat {
namespace {

struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, std::unique_ptr<OpDef>, std::less<>> ops;
  absl::flat_hash_map<std::string_view, const OpDef*> by_name;  // the same: asked for often
  // Kernel lists that grew: a `const Kernel*` handed out before stays valid.
  std::vector<std::vector<Kernel>> outgrown;

  void add_kernels(OpDef& op, const std::vector<Kernel>& more) {
    std::vector<Kernel> kernels = op.kernels;
    kernels.insert(kernels.end(), more.begin(), more.end());
    outgrown.push_back(std::move(op.kernels));
    op.kernels = std::move(kernels);
  }
};

Registry& registry() {
  static Registry& only =
      *new Registry;  // never destroyed: static objects of a plug-in may outlive ours
  return only;
}

// Everything that two definitions of one op must agree on.
std::string fingerprint(const OpDef& op) {
  std::string out = op.schema.to_string(op.name);
  for (const AttrDef& attr : op.schema.attrs) {
    out += "; " + attr.name + ": " + attr.kind;
    if (!attr.allowed_types.empty()) out += " in " + print_attr_value(attr.allowed_types);
    if (!attr.allowed_strings.empty()) out += " in " + print_attr_value(attr.allowed_strings);
    if (attr.minimum) out += concat(" >= ", *attr.minimum);
    if (attr.default_value) out += " = " + print_attr_value(*attr.default_value);
  }
  return out;
}

bool fits(const std::vector<TypeConstraint>& types, const AttrMap& attrs) {
  const auto allows = [](const TypeConstraint& constraint, DType dtype) {
    return std::find(constraint.allowed.begin(), constraint.allowed.end(), dtype) !=
           constraint.allowed.end();
  };
  return std::all_of(types.begin(), types.end(), [&](const TypeConstraint& constraint) {
    const auto found = attrs.find(constraint.attr);
    if (found == attrs.end()) return false;
    if (found->second.is<DType>()) return allows(constraint, found->second.get<DType>());
    if (!found->second.is<std::vector<DType>>()) return false;
    const auto& dtypes = found->second.get<std::vector<DType>>();
    return std::all_of(dtypes.begin(), dtypes.end(),
                       [&](DType dtype) { return allows(constraint, dtype); });
  });
}

void add(OpDef def) {
  try {
    def.schema = parse_schema(def.inputs, def.outputs, def.attrs);
  } catch (const Error& error) {
    fail(error.code(), "definition of op ", def.name, ": ", error.message());
  }
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  std::unique_ptr<OpDef>& known = all.ops[def.name];
  if (!known) {
    known = std::make_unique<OpDef>(std::move(def));
    all.by_name.emplace(known->name, known.get());
    return;
  }
  check(fingerprint(*known) == fingerprint(def), "op ", def.name,
        " is defined twice with different signatures: '", fingerprint(*known), "' and '",
        fingerprint(def), "'");
  all.add_kernels(*known, def.kernels);
}

void add(std::string_view op, const std::vector<Kernel>& kernels) {
  Registry& all = registry();
  const std::unique_lock lock(all.mutex);
  const auto found = all.ops.find(op);
  if (found == all.ops.end()) fail(Code::not_found, "Op type not registered '", op, "'");
  all.add_kernels(*found->second, kernels);
}

thread_local constinit Registrations* registrations = nullptr;

void register_now(const auto& add) {
  Status outcome;
  try {
    add();
  } catch (const Error& error) {
    if (registrations == nullptr) throw;
    outcome = error.status();
  }
  if (registrations != nullptr) registrations->note(outcome);
}

}  // namespace

Op::Op(OpDef def) {
  register_now([&] { add(std::move(def)); });
}
OpKernels::OpKernels(std::string_view op, std::vector<Kernel> kernels) {
  register_now([&] { add(op, kernels); });
}

Registrations::Registrations() : outer_(std::exchange(registrations, this)) {}
Registrations::~Registrations() { registrations = outer_; }
void Registrations::note(const Status& outcome) {
  if (outcome.is_ok()) {
    ++count_;
  } else if (first_error_.is_ok()) {
    first_error_ = outcome;
  }
}

const OpDef* find_op(std::string_view name) {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  const auto found = all.by_name.find(name);
  return found == all.by_name.end() ? nullptr : found->second;
}

const OpDef& op_named(std::string_view name) {
  const OpDef* op = find_op(name);
  if (op != nullptr) return *op;
  std::vector<std::string_view> names;
  for (const OpDef* known : all_ops()) names.push_back(known->name);
  fail(Code::not_found, "Op type not registered '", name, "'", did_you_mean(name, names));
}

std::vector<const OpDef*> all_ops() {
  Registry& all = registry();
  const std::shared_lock lock(all.mutex);
  std::vector<const OpDef*> out;
  for (const auto& [name, op] : all.ops) out.push_back(op.get());
  return out;
}

const Kernel* find_kernel(const OpDef& op, const AttrMap& attrs, DeviceType device) {
  const std::shared_lock lock(registry().mutex);
  for (const Kernel& kernel : op.kernels) {
    if (kernel.device == device && fits(kernel.types, attrs)) return &kernel;
  }
  return nullptr;
}

KernelTable kernel_table(DeviceType device) {
  KernelTable out;
  const std::shared_lock lock(registry().mutex);
  for (const auto& [name, op] : registry().ops) {
    for (const Kernel& kernel : op->kernels) {
      if (kernel.device == device) out[name].push_back(kernel.types);
    }
  }
  return out;
}

bool are_equal(const KernelTable& a, const KernelTable& b) {
  const auto same_constraint = [](const TypeConstraint& x, const TypeConstraint& y) {
    return x.attr == y.attr && x.allowed == y.allowed;
  };
  const auto same_types = [&](const KernelTypes& x, const KernelTypes& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_constraint);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return x.first == y.first && std::equal(x.second.begin(), x.second.end(), y.second.begin(),
                                            y.second.end(), same_types);
  });
}

const KernelTypes* find_kernel(const KernelTable& table, const Node& node) {
  const auto found = table.find(node.op->name);
  if (found == table.end()) return nullptr;
  const auto first =
      std::find_if(found->second.begin(), found->second.end(),
                   [&](const KernelTypes& types) { return fits(types, node.attrs); });
  return first == found->second.end() ? nullptr : &*first;
}

std::string describe_kernels(const OpDef& op) {
  const std::shared_lock lock(registry().mutex);
  std::string out;
  for (const Kernel& kernel : op.kernels) {
    if (!out.empty()) out += "; ";
    out += device_type_name(kernel.device);
    for (size_t i = 0; i < kernel.types.size(); ++i) {
      out += concat(i == 0 ? ": " : ", ", kernel.types[i].attr, " in ",
                    print_attr_value(kernel.types[i].allowed));
    }
  }
  return out.empty() ? "none" : out;
}

}  // namespace leat
