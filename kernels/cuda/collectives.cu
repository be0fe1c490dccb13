// _CollectiveJoin and _CollectiveRun: collectives that a library computes. They run between
// segments: no recording holds them, because a communicator may be replaced after an error.
#include "core/byte_size.h"
#include "core/execution/side_stream.h"
#include "core/memory/memory_owner.h"
#include "core/variant.h"
#include "graph/op_def.h"
#include "kernels/control/collective_member.h"
#include "kernels/types.h"

namespace leat {
namespace {

// A step's part, as a value of the graph.
class PartVariant : public Variant {
 public:
  static constexpr const char* kind_name = "a part in collectives";

  explicit PartVariant(CollectiveMember::PartPointer part) : part_(std::move(part)) {}
  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override { return std::make_unique<PartVariant>(part_); }
  const CollectiveMember::PartPointer& part() const { return part_; }

 private:
  CollectiveMember::PartPointer part_;
};

void join(ExecuteContext& c, std::function<void(Status)> done) {
  auto* const member = dynamic_cast<CollectiveMember*>(c.resource(-1).get());
  check_internal(member != nullptr, "'", c.resource(-1)->name(), "' is no member of a group");
  const auto collectives = c.node().attr<int64_t>("collectives");
  CollectiveMember::PartPointer part;
  std::string ticket;
  if (c.num_inputs() == 0) {
    std::tie(part, ticket) =
        member->begin(*communicator_library(), c.device(), collectives, c.cancellation());
  } else {
    part = member->begin(*communicator_library(), c.device(), c.input(0).item<std::string>(),
                         collectives, c.cancellation());
  }
  c.set_output(0, variant_tensor(std::make_unique<PartVariant>(std::move(part))));
  c.set_output(1, Tensor::scalar(std::move(ticket)));
  done({});
}

// The extents of the result: those of the input, or with axis 0 cut or repeated.
Shape shape_of_result(CollectiveKind kind, Shape shape, int64_t members) {
  if (kind == CollectiveKind::all_reduce) return shape;
  check(shape.rank() > 0, collective_kind_name(kind), " of a scalar");
  const bool is_cut = kind == CollectiveKind::reduce_scatter;
  check(!is_cut || shape[0] % members == 0, "reduce_scatter of ", shape, " among ", members);
  shape.set(0, is_cut ? shape[0] / members : shape[0] * members);
  return shape;
}

Tensor memory_for(Device& device, DType dtype, const Shape& shape) {
  const MemoryOwner owner(MemoryUse::copy);
  return {dtype, shape, device.allocate(byte_size(dtype, shape))};
}

void run(ExecuteContext& c, std::function<void(Status)> done) {
  const NodeView& node = c.node();
  const CollectiveMember::PartPointer part = variant_as<PartVariant>(c.input(1)).part();
  Tensor in = c.input(0);
  const CollectiveCall call{.kind = collective_kind_from_name(node.attr<std::string>("kind")),
                            .dtype = in.dtype(),
                            .elements = in.elements(),
                            .is_mean = node.attr<bool>("is_mean")};
  const Shape shape = shape_of_result(call.kind, in.shape(), node.attr<int64_t>("members"));
  Tensor out = memory_for(c.device(), in.dtype(), shape);
  c.set_output(0, out);
  CollectiveMember::run(part, node.attr<int64_t>("position"), call, std::move(in),
                        dynamic_cast<HasMarks&>(c).mark(0), std::move(out), std::move(done));
}

std::vector<Kernel> if_there(ExecuteAsync execute, std::vector<TypeConstraint> types = {}) {
  if (communicator_library() == nullptr) return {};
  return {{.device = DeviceType::gpu, .types = std::move(types), .execute_async = execute}};
}

const OpKernels join_kernels{"_CollectiveJoin", if_there(join)};
const OpKernels run_kernels{"_CollectiveRun", if_there(run, {{"T", FloatTypes::list()}})};

}  // namespace
}  // namespace leat
