// `_Fused` on the GPU (graph/fused.h). A product that a bias is added to is one call of the
// library; elementwise members of one shape are one launch (fused_steps.cuh); any other member runs
// its own kernel. What one launch leaves for another lies in an output, or in the workspace.
#include "graph/fused.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "kernels/cuda/cuda_device.cuh"
#include "kernels/cuda/fused_steps.cuh"
#include "kernels/cuda/product.h"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::Step;
using cuda::Steps;
using Operand = FusedProgram::Operand;
using Member = FusedProgram::Member;

std::optional<cuda::Format> format_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return cuda::Format::f32;
    case DType::f16:
      return cuda::Format::f16;
    case DType::bf16:
      return cuda::Format::bf16;
    case DType::boolean:
      return cuda::Format::boolean;
    default:
      return {};
  }
}

// Where element e of a result finds its operand: at e / inner % period; a period of 0 is e itself.
struct Access {
  uint32_t inner = 1, period = 0;
};

// None if the extents that the operand has are not next to each other in the result.
std::optional<Access> access_of(const Shape& operand, const Shape& result) {
  if (operand == result) return Access{};
  const int missing = result.rank() - operand.rank();
  if (missing < 0) return {};
  const auto extent = [&](int axis) { return axis < missing ? 1 : operand[axis - missing]; };
  int first = 0, last = result.rank();  // the axes that it has
  while (first < last && extent(first) == 1) ++first;
  while (last > first && extent(last - 1) == 1) --last;
  Access out{1, 1};
  for (int axis = first; axis < last; ++axis) {
    if (extent(axis) != result[axis]) return {};
    out.period *= static_cast<uint32_t>(result[axis]);
  }
  for (int axis = last; axis < result.rank(); ++axis)
    out.inner *= static_cast<uint32_t>(result[axis]);
  return out;
}

// Where a value lies while the node runs.
struct Place {
  enum Kind : uint8_t { nowhere, input, output, workspace } kind = nowhere;
  size_t at = 0;  // number, or bytes

  void* in(const Arguments& a) const {
    switch (kind) {
      case input:
        return a.inputs[at];
      case output:
        return a.outputs[at];
      case workspace:
        return static_cast<char*>(a.workspace) + at;
      default:
        return nullptr;
    }
  }
};

// One launch, or one call of a library.
struct StepsOfShape {
  Steps steps;
  std::vector<Place> memory;
  int64_t elements;
};
struct OwnKernel {
  BoundKernel kernel;
  std::vector<Place> inputs, outputs;
};
struct BiasedProduct {
  std::shared_ptr<const Product> product;
  Place a, b, bias, out;
};
struct Work {
  std::vector<StepsOfShape> steps;
  std::vector<OwnKernel> own;
  std::vector<BiasedProduct> products;
  enum class Kind : uint8_t { steps, own, product };
  std::vector<std::pair<Kind, size_t>> order;
  size_t shared_workspace = 0;                  // where that of kernels begins
  std::shared_ptr<const FusedProgram> program;  // whose nodes kernels may refer to
};

class Plan {
 public:
  explicit Plan(const KernelRequest& request)
      : request_(request),
        program_(FusedProgram::of(request.node)),
        specs_(program_->infer(request.inputs)),
        places_(specs_.size()),
        is_done_(specs_.size()) {
    for (size_t m = 0; m < specs_.size(); ++m) places_[m].resize(specs_[m].size());
    for (size_t r = 0; r < program_->outputs().size(); ++r) {
      const Operand& result = program_->outputs()[r];
      if (result.member >= 0) places_[result.member][result.index] = {Place::output, r};
    }
  }

  BoundKernel bound() && {
    find_product();
    cut();
    work_->shared_workspace = workspace_;
    work_->program = program_;
    size_t most = 0;
    for (const OwnKernel& own : work_->own) most = std::max(most, own.kernel.workspace_bytes);
    for (const BiasedProduct& each : work_->products)
      most = std::max(most, each.product->workspace_bytes());
    std::vector<Alias> may_share = aliases();
    BoundKernel out = BoundKernel::of([work = work_](const Arguments& a) { run(*work, a); });
    out.may_share = std::move(may_share);
    out.workspace_bytes = workspace_ + most;
    return out;
  }

 private:
  const TensorSpec& spec_of(const Operand& operand) const {
    return FusedProgram::spec_of(operand, request_.inputs, specs_);
  }

  // ---- Which members go into which launch ----

  bool is_output(const Operand& value) const {
    return places_[value.member][value.index].kind == Place::output;
  }

  std::vector<int> users_of(int member) const {
    std::vector<int> out;
    for (size_t m = 0; m < specs_.size(); ++m) {
      for (const Operand& operand : program_->members()[m].operands)
        if (operand.member == member) out.push_back(static_cast<int>(m));
    }
    return out;
  }
  // The only user of a value that nobody else sees; -1 if there is none.
  int only_user_of(int member) const {
    const std::vector<int> users = users_of(member);
    return users.size() == 1 && !is_output({member, 0}) ? users[0] : -1;
  }

  // A vector over the columns that is added to the product.
  const Operand* bias_in(const Member& sum, int product) const {
    const bool is_sum = sum.node->is("BiasAdd") || sum.node->is("BiasAddV1") ||
                        sum.node->is("Add") || sum.node->is("AddV2");
    if (!is_sum) return nullptr;
    const Operand& other = sum.operands[sum.operands[0].member == product ? 1 : 0];
    const Shape &shape = spec_of(other).shape, &out = specs_[product][0].shape;
    return other.member < 0 && shape.rank() == 1 && shape[0] == out[1] ? &other : nullptr;
  }

  void find_product() {
    const Member& head = program_->members()[0];
    if (!head.node->is("MatMul")) return;
    const TensorSpec& out = specs_[0][0];
    const bool transpose_a = head.node->attr<bool>("transpose_a");
    const Shape& a = spec_of(head.operands[0]).shape;
    ProductShape shape{.dtype = out.dtype,
                       .m = out.shape[0],
                       .n = out.shape[1],
                       .k = a[transpose_a ? 0 : 1],
                       .transpose_a = transpose_a,
                       .transpose_b = head.node->attr<bool>("transpose_b"),
                       .takes_tf32 = head.node->attrs.contains("_tf32")};
    if (!format_of(out.dtype) || out.shape.elements() == 0 || shape.k == 0) return;
    const int sum = only_user_of(0);
    const Operand* const bias = sum < 0 ? nullptr : bias_in(program_->members()[sum], 0);
    if (bias == nullptr) return;
    shape.has_bias = true;
    std::shared_ptr<const Product> product = make_product(request_.device, shape);
    if (product == nullptr) return;
    is_done_[0] = is_done_[static_cast<size_t>(sum)] = true;
    work_->products.push_back({std::move(product), place_of(head.operands[0]),
                               place_of(head.operands[1]), place_of(*bias), made_place({sum, 0})});
    work_->order.emplace_back(Work::Kind::product, 0);
  }

  // Members of one launch.
  struct Group {
    std::vector<int> members;
    Shape shape;
    int loads = 0, steps = 0;
  };

  // Whether the group, or a new one, can compute the member element by element.
  bool may_join(const Group& group, int m) const {
    const Member& member = program_->members()[m];
    const TensorSpec& out = specs_[m][0];
    const int64_t elements = out.shape.elements();
    if (specs_[m].size() != 1 || cuda::step_of(member.node->op->name) < 0 || elements == 0 ||
        elements > INT32_MAX || !format_of(out.dtype))
      return false;
    if (member.node->is("Cast") && member.node->attr<bool>("Truncate")) return false;
    if (!group.members.empty()) {
      const int more = static_cast<int>(member.operands.size()) + steps_of(member);
      if (!(group.shape == out.shape) || group.loads + group.steps + more > room) return false;
    }
    for (size_t i = 0; i < member.operands.size(); ++i) {
      const Operand& operand = member.operands[i];
      const TensorSpec& spec = spec_of(operand);
      if (!format_of(spec.dtype)) return false;
      const bool is_inside = std::find(group.members.begin(), group.members.end(),
                                       operand.member) != group.members.end();
      if (is_inside ? !(spec.shape == out.shape) : !access(member, i, out.shape)) return false;
    }
    return true;
  }
  // Each value may become a result, and need one more step, besides.
  static constexpr int room =
      std::min({cuda::most_steps / 2, cuda::most_registers, cuda::most_memory});
  static int steps_of(const Member& member) {
    return std::max(1, static_cast<int>(member.operands.size()) - 1);  // of AddN
  }

  std::optional<Access> access(const Member& member, size_t i, const Shape& result) const {
    Shape shape = spec_of(member.operands[i]).shape;
    // Select's condition, if it is a vector, goes with the first axis.
    if (member.node->is("Select") && i == 0 && shape.rank() == 1)
      while (shape.rank() < result.rank()) shape.push_back(1);
    return access_of(shape, result);
  }

  void cut() {
    Group group;
    for (size_t m = 0; m < specs_.size(); ++m) {
      const Member& member = program_->members()[m];
      if (is_done_[m] || member.node->is("Const")) continue;
      const int number = static_cast<int>(m);
      if (!may_join(group, number)) {
        launch(group);
        group = {};
        if (!may_join(group, number)) {
          run_alone(number);
          continue;
        }
      }
      group.members.push_back(number);
      group.shape = specs_[m][0].shape;
      group.loads += static_cast<int>(member.operands.size());
      group.steps += steps_of(member);
    }
    launch(group);
  }

  // ---- Where values lie ----

  Place place_of(const Operand& operand) {
    if (operand.member < 0) return {Place::input, static_cast<size_t>(operand.index)};
    return made_place(operand);
  }
  Place made_place(const Operand& value) {
    Place& place = places_[value.member][value.index];
    if (place.kind == Place::nowhere) {
      constexpr size_t unit = 256;
      place = {Place::workspace, workspace_};
      const TensorSpec& spec = spec_of(value);
      const auto bytes = static_cast<size_t>(spec.shape.elements()) * dtype_size(spec.dtype);
      workspace_ += (bytes + unit - 1) / unit * unit;
    }
    return place;
  }

  // ---- Launches ----

  void launch(const Group& group) {
    if (group.members.empty()) return;
    StepsOfShape out{{}, {}, group.shape.elements()};
    Steps& steps = out.steps;
    using Value =
        std::tuple<int, int, uint32_t, uint32_t>;  // member (-1: an input), number, access
    std::map<Value, uint8_t> registers;
    const auto next = [&] { return static_cast<uint8_t>(registers.size()); };
    const auto add = [&](Step step) { steps.list[steps.count++] = step; };
    const auto memory = [&](Place place) {
      out.memory.push_back(place);
      return static_cast<uint8_t>(out.memory.size() - 1);
    };
    const auto operand_of = [&](const Member& member, size_t i) {
      const Operand& operand = member.operands[i];
      const std::optional<Access> where = access(member, i, group.shape);
      const auto [known, is_new] = registers.try_emplace(
          {operand.member, operand.index, where->inner, where->period}, next());
      if (!is_new) return known->second;
      add({.code = Step::load,
           .out = known->second,
           .format = *format_of(spec_of(operand).dtype),
           .memory = memory(place_of(operand)),
           .inner = where->inner,
           .period = where->period});
      return known->second;
    };
    for (const int m : group.members) {
      const Member& member = program_->members()[m];
      std::vector<uint8_t> operands;
      for (size_t i = 0; i < member.operands.size(); ++i) operands.push_back(operand_of(member, i));
      Step step{.code = static_cast<uint8_t>(cuda::step_of(member.node->op->name)),
                .out = registers.emplace(Value(m, 0, 1, 0), next()).first->second};
      if (member.node->attrs.contains("alpha")) step.parameter = member.node->attr<float>("alpha");
      const cuda::Format format = *format_of(specs_[m][0].dtype);
      if (member.node->is("AddN")) {
        add_sum(step, operands, format, steps);
        continue;
      }
      uint8_t* const slots[] = {&step.a, &step.b, &step.c};
      for (size_t i = 0; i < operands.size(); ++i) *slots[i] = operands[i];
      step.format = format;
      add(step);
    }
    for (const int m : group.members) {
      if (!is_used_later(m, group)) continue;
      add({.code = Step::store,
           .out = registers.at({m, 0, 1, 0}),
           .format = *format_of(specs_[m][0].dtype),
           .memory = memory(made_place({m, 0}))});
    }
    work_->steps.push_back(std::move(out));
    work_->order.emplace_back(Work::Kind::steps, work_->steps.size() - 1);
    for (const int m : group.members) is_done_[m] = true;
  }

  // Rounded once, at the end.
  static void add_sum(Step step, const std::vector<uint8_t>& terms, cuda::Format format,
                      Steps& steps) {
    step.a = terms[0];
    if (terms.size() == 1) step.code = Step::move;
    for (size_t i = 1; i < std::max<size_t>(terms.size(), 2); ++i) {
      if (i < terms.size()) step.b = terms[i];
      if (i + 1 >= terms.size()) step.format = format;
      steps.list[steps.count++] = step;
      step.a = step.out;
    }
  }

  bool is_used_later(int member, const Group& group) const {
    if (is_output({member, 0})) return true;
    for (const int user : users_of(member)) {
      if (std::find(group.members.begin(), group.members.end(), user) == group.members.end())
        return true;
    }
    return false;
  }

  void run_alone(int m) {
    const Member& member = program_->members()[m];
    const Node& node = *member.node;
    const Kernel* kernel = find_kernel(*node.op, node.attrs, DeviceType::gpu);
    check_internal(kernel != nullptr && kernel->prepare && kernel->host_inputs.empty(),
                   node.op->name, " has no kernel to fuse");
    OwnKernel own;
    std::vector<TensorSpec> inputs;
    for (const Operand& operand : member.operands) {
      inputs.push_back(spec_of(operand));
      own.inputs.push_back(place_of(operand));
    }
    for (size_t o = 0; o < specs_[m].size(); ++o)
      own.outputs.push_back(made_place({m, static_cast<int>(o)}));
    try {
      std::shared_ptr<void> no_state;
      own.kernel = kernel->prepare({node.view(), inputs, specs_[m], request_.device, no_state});
    } catch (const Error& error) {
      if (!error.node().empty()) throw;
      throw Error(with_node(error.status(), node.name));
    }
    check_internal(own.kernel.views.empty(), node.op->name, " makes a view where it is fused");
    is_done_[m] = true;
    if (own.kernel.function == nullptr) return;
    work_->own.push_back(std::move(own));
    work_->order.emplace_back(Work::Kind::own, work_->own.size() - 1);
  }

  // ---- Memory that an output may take over ----

  // A launch reads all operands of an element before it writes its results.
  std::vector<Alias> aliases() const {
    if (work_->steps.size() != 1 || !work_->own.empty()) return {};
    const StepsOfShape& only = work_->steps[0];
    std::vector<Alias> out;
    for (int s = 0; s < only.steps.count; ++s) {
      const Step& store = only.steps.list[s];
      const Place& to = only.memory[store.memory];
      if (store.code != Step::store || to.kind != Place::output) continue;
      for (int l = 0; l < s; ++l) {
        const Step& load = only.steps.list[l];
        const Place& from = only.memory[load.memory];
        const bool fits = load.code == Step::load && from.kind == Place::input &&
                          load.period == 0 && size_of(load.format) == size_of(store.format);
        if (fits && !is_of_product(from) && !is_of_product(to) && has_one_access(only, from))
          out.push_back({static_cast<int>(to.at), static_cast<int>(from.at)});
      }
    }
    return out;
  }
  static int size_of(cuda::Format format) {
    return format == cuda::Format::f32 ? 4 : format == cuda::Format::boolean ? 1 : 2;
  }
  static bool is_same(const Place& a, const Place& b) { return a.kind == b.kind && a.at == b.at; }
  bool is_of_product(const Place& place) const {
    return std::any_of(work_->products.begin(), work_->products.end(),
                       [&](const BiasedProduct& each) {
                         return is_same(each.a, place) || is_same(each.b, place) ||
                                is_same(each.bias, place) || is_same(each.out, place);
                       });
  }
  static bool has_one_access(const StepsOfShape& launch, const Place& place) {
    return std::count_if(launch.memory.begin(), launch.memory.end(),
                         [&](const Place& each) { return is_same(each, place); }) == 1;
  }

  // ---- A step ----

  static void run(const Work& work, const Arguments& a) {
    void* const workspace = static_cast<char*>(a.workspace) + work.shared_workspace;
    for (const auto& [kind, index] : work.order) {
      switch (kind) {
        case Work::Kind::steps: {
          const StepsOfShape& launch = work.steps[index];
          Steps steps = launch.steps;
          for (size_t i = 0; i < launch.memory.size(); ++i)
            steps.memory[i] = launch.memory[i].in(a);
          cuda::run_steps(steps, launch.elements, cuda_stream(a));
          break;
        }
        case Work::Kind::own: {
          const OwnKernel& own = work.own[index];
          std::vector<void*> inputs, outputs;
          for (const Place& place : own.inputs) inputs.push_back(place.in(a));
          for (const Place& place : own.outputs) outputs.push_back(place.in(a));
          own.kernel.function(own.kernel.bound.get(),
                              {inputs.data(), outputs.data(), workspace, a.stream});
          break;
        }
        case Work::Kind::product: {
          const BiasedProduct& each = work.products[index];
          each.product->run({each.a.in(a), each.b.in(a), each.out.in(a), each.bias.in(a)},
                            workspace, *a.stream);
          break;
        }
      }
    }
  }

  const KernelRequest& request_;
  const std::shared_ptr<const FusedProgram> program_;
  const std::vector<std::vector<TensorSpec>> specs_;  // by member and output
  std::vector<std::vector<Place>> places_;
  std::vector<bool> is_done_;  // by member: some launch computes it
  size_t workspace_ = 0;
  const std::shared_ptr<Work> work_ = std::make_shared<Work>();
};

const OpKernels fused{"_Fused",
                      {{.device = DeviceType::gpu, .prepare = [](const KernelRequest& request) {
                          return Plan(request).bound();
                        }}}};

}  // namespace
}  // namespace leat
