// Collectives as TensorFlow spells them: a node for each member of a group. A step that has all
// members computes them with plain ops (expand_collectives, in graph/passes/); these kernels are
// for groups of one.
#include "graph/shape_inference.h"
#include "kernels/any_device.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// `first`: the first of the inputs group_size, group_key and instance_key.
std::vector<Kernel> kernels_of_one(int first, bool has_input) {
  return kernels_for_any_device([=](const KernelRequest& request) {
    const auto number = [&](int i) {
      const Tensor* const value = request.inputs[static_cast<size_t>(first + i)].value;
      return value == nullptr ? 0 : value->item<int32_t>();
    };
    check(has_input && number(0) == 1, "member of the group ", number(1), ", instance ", number(2),
          ": a collective of ", number(0), " members needs all of them in one step, outside of ",
          "loops, with group_size, group_key and instance_key as constants");
    BoundKernel out;
    out.views.push_back({0, 0});
    return out;
  });
}

// The same with the key as attributes.
std::vector<Kernel> first_kernels_of_one(bool has_input) {
  return kernels_for_any_device([=](const KernelRequest& request) {
    const auto size = request.attr<int64_t>("group_size");
    check(has_input && size == 1, "member of the group ", request.attr<int64_t>("group_key"),
          ", instance ", request.attr<int64_t>("instance_key"), ": a collective of ", size,
          " members needs all of them in one step, outside of loops");
    return BoundKernel::view();
  });
}

constexpr const char* numbers = "T: {bfloat16, float, float16, float64, int32, int64}";

const Op collective_reduce_op{{
    .name = "CollectiveReduceV2",
    .doc =
        "data = final_op(merge_op of the inputs of all group_size members): Min, Max, Mul or Add; "
        "Div divides by group_size. The members are the nodes of a step with the same group_key "
        "and instance_key; the order of their devices is that of their ranks.",
    .inputs = {"input: T", "group_size: int32", "group_key: int32", "instance_key: int32",
               "ordering_token: Nordering_token * resource"},
    .outputs = {"data: T"},
    .attrs = {numbers, "merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}",
              "communication_hint: string = 'auto'", "timeout_seconds: float = 0",
              "is_stateless: bool = false", "Nordering_token: int >= 0 = 0",
              "max_subdivs_per_device: int = -1"},
    .shape = shapes::same_as(0),
    .kernels = kernels_of_one(1, true),
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar(1), Tensor::scalar(1),
                             Tensor::scalar(1)},
                  .attrs = {{"merge_op", "Add"}, {"final_op", "Div"}, {"Nordering_token", 0}},
                  .outputs = {floats({1, 2})}}},
    .value_inputs = {1, 2, 3},
    .is_stateful = true,
}};

const Op collective_gather_op{{
    .name = "CollectiveGatherV2",
    .doc = "data = the inputs of all group_size members, one after the other along axis 0.",
    .inputs = {"input: T", "group_size: int32", "group_key: int32", "instance_key: int32",
               "ordering_token: Nordering_token * resource"},
    .outputs = {"data: T"},
    .attrs = {numbers, "communication_hint: string = 'auto'", "timeout_seconds: float = 0",
              "is_stateless: bool = false", "Nordering_token: int >= 0 = 0"},
    .shape =
        [](ShapeContext& c) {
          Shape out = c.with_rank_at_least(0, 1);
          const Tensor* const size = c.value(1);
          if (!out.has_rank()) return c.set_output(0, out);
          const bool is_known = size != nullptr && out[0] >= 0;
          out.set(0, is_known ? out[0] * size->item<int32_t>() : -1);
          c.set_output(0, out);
        },
    .kernels = kernels_of_one(1, true),
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar(1), Tensor::scalar(1),
                             Tensor::scalar(2)},
                  .attrs = {{"Nordering_token", 0}},
                  .outputs = {floats({1, 2})}}},
    .value_inputs = {1, 2, 3},
    .is_stateful = true,
}};

constexpr const char* all_numbers = "T: {bool, float, float16, float64, int32, int64}";

const Op collective_send_op{{
    .name = "CollectiveBcastSendV2",
    .doc = "data = input, which the other members of the group receive (CollectiveBcastRecvV2).",
    .inputs = {"input: T", "group_size: int32", "group_key: int32", "instance_key: int32"},
    .outputs = {"data: T"},
    .attrs = {all_numbers, "communication_hint: string = 'auto'", "timeout_seconds: float = 0"},
    .shape = shapes::same_as(0),
    .kernels = kernels_of_one(1, true),
    .examples = {{.inputs = {floats({1, 2}), Tensor::scalar(1), Tensor::scalar(1),
                             Tensor::scalar(3)},
                  .outputs = {floats({1, 2})}}},
    .value_inputs = {1, 2, 3},
    .is_stateful = true,
}};

const Op collective_receive_op{{
    .name = "CollectiveBcastRecvV2",
    .doc = "data = what a member of the group sends (CollectiveBcastSendV2), of that shape.",
    .inputs = {"group_size: int32", "group_key: int32", "instance_key: int32", "shape: Tshape"},
    .outputs = {"data: T"},
    .attrs = {all_numbers, "Tshape: {int32, int64} = int32", "communication_hint: string = 'auto'",
              "timeout_seconds: float = 0"},
    .shape = [](ShapeContext& c) { c.set_output(0, c.shape_from_value(3)); },
    .kernels = kernels_of_one(0, false),
    .value_inputs = {0, 1, 2, 3},
    .is_stateful = true,
}};

// ---- The first versions: MultiWorkerMirroredStrategy sends initial values with them

std::vector<std::string> first_attrs(const char* types, std::vector<std::string> more) {
  std::vector<std::string> out = {types, "group_size: int", "group_key: int", "instance_key: int"};
  out.insert(out.end(), more.begin(), more.end());
  out.insert(out.end(), {"communication_hint: string = 'auto'", "timeout_seconds: float = 0"});
  return out;
}

AttrMap of_one(AttrMap attrs) {
  attrs["group_size"] = attrs["group_key"] = 1;
  attrs["instance_key"] = 5;
  return attrs;
}

const Op first_reduce_op{{
    .name = "CollectiveReduce",
    .doc = "CollectiveReduceV2 with the key as attributes.",
    .inputs = {"input: T"},
    .outputs = {"data: T"},
    .attrs =
        first_attrs(numbers, {"merge_op: {'Min', 'Max', 'Mul', 'Add'}", "final_op: {'Id', 'Div'}",
                              "subdiv_offsets: list(int)", "wait_for: list(int) = []"}),
    .shape = shapes::same_as(0),
    .kernels = first_kernels_of_one(true),
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = of_one({{"merge_op", "Add"},
                                   {"final_op", "Div"},
                                   {"subdiv_offsets", std::vector<int64_t>{}}}),
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

const Op first_gather_op{{
    .name = "CollectiveGather",
    .doc = "CollectiveGatherV2 with the key as attributes; `shape` is that of the result.",
    .inputs = {"input: T"},
    .outputs = {"data: T"},
    .attrs = first_attrs(numbers, {"shape: shape"}),
    .shape = shapes::from_attr("shape"),
    .kernels = first_kernels_of_one(true),
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = of_one({{"shape", Shape{2}}}),
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

const Op first_send_op{{
    .name = "CollectiveBcastSend",
    .doc = "CollectiveBcastSendV2 with the key as attributes.",
    .inputs = {"input: T"},
    .outputs = {"data: T"},
    .attrs = first_attrs(all_numbers, {"shape: shape"}),
    .shape = shapes::same_as(0),
    .kernels = first_kernels_of_one(true),
    .examples = {{.inputs = {floats({1, 2})},
                  .attrs = of_one({{"shape", Shape{2}}}),
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

const Op first_receive_op{{
    .name = "CollectiveBcastRecv",
    .doc = "CollectiveBcastRecvV2 with key and shape as attributes.",
    .outputs = {"data: T"},
    .attrs = first_attrs(all_numbers, {"shape: shape"}),
    .shape = shapes::from_attr("shape"),
    .kernels = first_kernels_of_one(false),
    .is_stateful = true,
}};

}  // namespace
}  // namespace leat
