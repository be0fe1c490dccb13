// Collectives that a library computes on GPUs: the ops that lower_collectives (in graph/passes/)
// makes. Their kernels are in kernels/cuda/collectives.cu.
#include "graph/gradient.h"
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/control/collective_member.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const Op collective_result_op{{
    .name = "CollectiveResult",
    .doc = "y = by_messages. `own` is what this member of the group brings: "
           "graph/ops/collective_result.h. Leat's own op.",
    .inputs = {"by_messages: T", "own: T", "ticket: N * string"},
    .outputs = {"result: T"},
    .attrs = {"T: type", "kind: {'all_reduce', 'reduce_scatter', 'all_gather'}", "is_mean: bool",
              "group: string", "rank: int >= 0", "members: int >= 1", "N: int >= 0 = 0",
              "programs: string = ''", "tasks: list(string) = []"},
    .shape = shapes::same_as(0),
    .gradient = [](Gradient& g) { g.dx(0) = g.dy(); },
    .kernels = kernels_for_any_device([](const KernelRequest&) { return BoundKernel::view(); }),
    .examples = {{.inputs = {floats({1, 2}), floats({3, 4})},
                  .attrs = {{"kind", "all_reduce"},
                            {"is_mean", false},
                            {"group", "g"},
                            {"rank", 0},
                            {"members", 2}},
                  .outputs = {floats({1, 2})}}},
}};

const Op collective_ticket_op{{
    .name = "CollectiveTicket",
    .doc = "ticket = what the other programs need to take part in the collectives of a step, where "
           "a library runs them: graph/ops/collective_result.h. Leat's own op.",
    .outputs = {"ticket: string"},
    .attrs = {"programs: string"},
    .shape = shapes::scalar(),
    .kernels = {{.execute =
                     [](ExecuteContext& c) { c.set_output(0, Tensor::scalar(std::string())); }}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op collective_signal_op{{
    .name = "CollectiveSignal",
    .doc = "Waits for what programs tell each other where a library runs their collectives, or "
           "where none does: graph/ops/collective_result.h. Leat's own op.",
    .attrs = {"programs: string", "by_library: bool"},
    .shape = shapes::none(),
    .kernels = {{.execute = [](ExecuteContext&) {}}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

const Op collective_join_op{{
    .name = "_CollectiveJoin",
    .doc = "A GPU's part in the collectives of a step. Rank 0 takes no ticket; it gives out one, "
           "which names the group and numbers its steps, and which the other members take. "
           "`collectives` is how many _CollectiveRun nodes use the part.",
    .inputs = {"ticket: N * string"},
    .outputs = {"part: variant", "next_ticket: string"},
    .attrs = {"N: int >= 0", "rank: int >= 0", "members: int >= 2", "collectives: int >= 1",
              "devices: string", "shared_name: string = ''"},
    .shape = shapes::scalar(),
    .is_stateful = true,
    .make_resource = [](const NodeView& node) { return std::make_shared<CollectiveMember>(node); },
    .is_private_resource = true,
    .is_not_differentiable = true,
}};

const Op collective_run_op{{
    .name = "_CollectiveRun",
    .doc = "One collective of the step: that of the same position on all members. All of them run "
           "in the order of their positions. See graph/ops/collective_result.h for the kinds.",
    .inputs = {"value: T", "part: variant"},
    .outputs = {"result: T"},
    .attrs = {"T: {bfloat16, float, float16, float64}",
              "kind: {'all_reduce', 'reduce_scatter', 'all_gather'}", "is_mean: bool",
              "members: int >= 2", "position: int >= 0"},
    .shape =
        [](ShapeContext& c) {
          Shape out = c.input(0);
          const auto& kind = c.attr<std::string>("kind");
          const auto members = c.attr<int64_t>("members");
          if (kind != "all_reduce" && out.has_rank() && out.rank() > 0 && out[0] >= 0)
            out.set(0, kind == "all_gather" ? out[0] * members : out[0] / members);
          c.set_output(0, out);
        },
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
