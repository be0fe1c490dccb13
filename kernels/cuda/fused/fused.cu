// `_Fused` on the GPU (graph/fused.h). A product that a bias is added to is one call of the
// library; members that go by elements or by rows of one shape are one launch (fused_group.cuh);
// any other member runs its own kernel. What one launch leaves for another lies in an output, or in
// the workspace.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "graph/op_def.h"
#include "graph/passes/mixed_precision/mixed_precision.h"
#include "kernels/cuda/device/cuda_device.cuh"
#include "kernels/cuda/fused/fused_group.cuh"
#include "kernels/cuda/product.h"
#include "kernels/types.h"

namespace leat {
namespace {

using cuda::Step;
using Operand = FusedProgram::Operand;
using Member = FusedProgram::Member;
using Place = FusedPlace;

struct OwnKernel {
  BoundKernel kernel;
  std::vector<Place> inputs, outputs;
};
struct BiasedProduct {
  std::shared_ptr<const Product> product;
  Place a, b, bias, out;
};

// What runs, in order.
struct Work {
  enum class Kind : uint8_t { steps, own, product };
  std::vector<FusedLaunch> steps;
  std::vector<OwnKernel> own;
  std::vector<BiasedProduct> products;
  std::vector<std::pair<Kind, size_t>> order;
  size_t shared_workspace = 0;                  // where that of kernels begins
  std::shared_ptr<const FusedProgram> program;  // whose nodes kernels may refer to

  void run(const Arguments& a) const;
};

class Plan {
 public:
  explicit Plan(const KernelRequest& request)
      : request_(request),
        program_(FusedProgram::of(request.node)),
        specs_{*program_, request.inputs, program_->infer(request.inputs)},
        places_(specs_.made.size()),
        is_done_(specs_.made.size()) {
    for (size_t m = 0; m < places_.size(); ++m) places_[m].resize(specs_.made[m].size());
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
    BoundKernel out = BoundKernel::of([work = work_](const Arguments& a) { work->run(a); });
    out.may_share = std::move(may_share);
    out.workspace_bytes = workspace_ + most;
    return out;
  }

 private:
  // ---- Which members go into which launch ----

  bool is_output(const Operand& value) const {
    return places_[value.member][value.index].kind == Place::output;
  }

  std::vector<int> users_of(int member) const {
    std::vector<int> out;
    for (size_t m = 0; m < places_.size(); ++m) {
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
    const Shape &shape = specs_.of(other).shape, &out = specs_.made[product][0].shape;
    return other.member < 0 && shape.rank() == 1 && shape[0] == out[1] ? &other : nullptr;
  }

  void find_product() {
    const Member& head = program_->members()[0];
    if (!head.node->is("MatMul")) return;
    const TensorSpec& out = specs_.made[0][0];
    const bool transpose_a = head.node->attr<bool>("transpose_a");
    const Shape& a = specs_.of(head.operands[0]).shape;
    ProductShape shape{.dtype = out.dtype,
                       .m = out.shape[0],
                       .n = out.shape[1],
                       .k = a[transpose_a ? 0 : 1],
                       .transpose_a = transpose_a,
                       .transpose_b = head.node->attr<bool>("transpose_b"),
                       .takes_tf32 = head.node->attrs.contains(tensor_float_32_attr)};
    if (out.dtype == DType::f64 || out.shape.elements() == 0 || shape.k == 0) return;
    const int sum = only_user_of(0);
    const Operand* const bias = sum < 0 ? nullptr : bias_in(program_->members()[sum], 0);
    if (bias == nullptr) return;
    shape.has_bias = true;
    std::shared_ptr<const Product> product = make_product(request_.device, shape);
    if (product == nullptr) return;
    is_done_[0] = is_done_[static_cast<size_t>(sum)] = true;
    work_->products.push_back({std::move(product), place_of(head.operands[0]),
                               place_of(head.operands[1]), place_of(*bias), place_of({sum, 0})});
    work_->order.emplace_back(Work::Kind::product, 0);
  }

  void cut() {
    FusedGroup group(specs_);
    for (int m = 0; m < static_cast<int>(places_.size()); ++m) {
      if (is_done_[m] || program_->members()[m].node->is("Const") || group.add(m)) continue;
      launch(group);
      group = FusedGroup(specs_);
      if (!group.add(m)) run_alone(m);
    }
    launch(group);
  }

  // ---- Where values lie ----

  Place place_of(const Operand& value) {
    if (value.member < 0) return {Place::input, static_cast<size_t>(value.index)};
    if (program_->members()[value.member].node->is("Const")) return {};  // known when prepared
    Place& place = places_[value.member][value.index];
    if (place.kind == Place::nowhere) {
      constexpr size_t unit = 256;
      place = {Place::workspace, workspace_};
      const TensorSpec& spec = specs_.of(value);
      const auto bytes = static_cast<size_t>(spec.shape.elements()) * dtype_size(spec.dtype);
      workspace_ += (bytes + unit - 1) / unit * unit;
    }
    return place;
  }

  // ---- Launches ----

  void launch(const FusedGroup& group) {
    if (group.is_empty()) return;
    const auto is_result = [&](int m) {
      const std::vector<int> users = users_of(m);
      return is_output({m, 0}) || std::any_of(users.begin(), users.end(), [&](int user) {
               return std::find(group.members().begin(), group.members().end(), user) ==
                      group.members().end();
             });
    };
    work_->steps.push_back(
        group.launch(is_result, [&](const Operand& value) { return place_of(value); }));
    work_->order.emplace_back(Work::Kind::steps, work_->steps.size() - 1);
  }

  void run_alone(int m) {
    const Member& member = program_->members()[m];
    const Node& node = *member.node;
    const Kernel* kernel = find_kernel(*node.op, node.attrs, DeviceType::gpu);
    check_internal(kernel != nullptr && kernel->prepare, node.op->name, " has no kernel to fuse");
    OwnKernel own;
    std::vector<TensorSpec> inputs;
    for (const Operand& operand : member.operands) {
      inputs.push_back(specs_.of(operand));
      own.inputs.push_back(place_of(operand));
    }
    for (size_t o = 0; o < places_[m].size(); ++o)
      own.outputs.push_back(place_of({m, static_cast<int>(o)}));
    try {
      std::shared_ptr<void> no_state;
      own.kernel =
          kernel->prepare({node.view(), inputs, specs_.made[m], request_.device, no_state});
    } catch (const Error& error) {
      if (!error.node().empty()) throw;
      throw Error(with_node(error.status(), node.name));
    }
    check_internal(own.kernel.views.empty(), node.op->name, " makes a view where it is fused");
    if (own.kernel.function == nullptr) return;
    work_->own.push_back(std::move(own));
    work_->order.emplace_back(Work::Kind::own, work_->own.size() - 1);
  }

  // ---- Memory that an output may take over ----

  // A launch reads all operands of an element before it writes its results.
  std::vector<Alias> aliases() const {
    if (work_->steps.size() != 1 || !work_->own.empty()) return {};
    const FusedLaunch& only = work_->steps[0];
    const auto is_touched_once = [&](const Place& place) {
      return std::count(only.memory.begin(), only.memory.end(), place) == 1 &&
             !is_of_product(place);
    };
    std::vector<Alias> out;
    for (int s = 0; s < only.steps.count; ++s) {
      const Step& store = only.steps.list[s];
      if (store.code != Step::store) continue;
      const Place& to = only.memory[store.memory];
      if (to.kind != Place::output || is_of_product(to)) continue;
      for (int l = 0; l < s; ++l) {
        const Step& load = only.steps.list[l];
        if (load.code != Step::load || load.period != 0 ||
            size_of(load.format) != size_of(store.format))
          continue;
        const Place& from = only.memory[load.memory];
        if (from.kind == Place::input && is_touched_once(from))
          out.push_back({static_cast<int>(to.at), static_cast<int>(from.at)});
      }
    }
    return out;
  }
  static int size_of(cuda::Format format) {
    return format == cuda::Format::f32 ? 4 : format == cuda::Format::boolean ? 1 : 2;
  }
  bool is_of_product(const Place& place) const {
    return std::any_of(work_->products.begin(), work_->products.end(), [&](const auto& each) {
      return each.a == place || each.b == place || each.bias == place || each.out == place;
    });
  }

  const KernelRequest& request_;
  const std::shared_ptr<const FusedProgram> program_;
  const FusedSpecs specs_;
  std::vector<std::vector<Place>> places_;  // by member and output
  std::vector<bool> is_done_;               // by member: the product computes it
  size_t workspace_ = 0;
  const std::shared_ptr<Work> work_ = std::make_shared<Work>();
};

void Work::run(const Arguments& a) const {
  void* const workspace = static_cast<char*>(a.workspace) + shared_workspace;
  for (const auto& [kind, index] : order) {
    switch (kind) {
      case Kind::steps: {
        const FusedLaunch& launch = steps[index];
        cuda::Steps list = launch.steps;
        for (size_t i = 0; i < launch.memory.size(); ++i) list.memory[i] = launch.memory[i].in(a);
        cuda::run_steps(list, launch.rows, launch.columns, cuda_stream(a));
        break;
      }
      case Kind::own: {
        const OwnKernel& alone = own[index];
        std::vector<void*> inputs, outputs;
        for (const Place& place : alone.inputs) inputs.push_back(place.in(a));
        for (const Place& place : alone.outputs) outputs.push_back(place.in(a));
        alone.kernel.function(alone.kernel.bound.get(),
                              {inputs.data(), outputs.data(), workspace, a.stream});
        break;
      }
      case Kind::product: {
        const BiasedProduct& each = products[index];
        each.product->run({each.a.in(a), each.b.in(a), each.out.in(a), each.bias.in(a)}, workspace,
                          *a.stream);
        break;
      }
    }
  }
}

const OpKernels fused{"_Fused",
                      {{.device = DeviceType::gpu, .prepare = [](const KernelRequest& request) {
                          return Plan(request).bound();
                        }}}};

}  // namespace
}  // namespace leat
