// Values of dtype variant in sessions: TensorLists behave as values, whichever op takes over their
// memory.
#include <gtest/gtest.h>

#include "graph/ops.h"
#include "kernels/control/tensor_list.h"
#include "runtime/local_session.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

// A graph of lists of floats.
struct Lists {
  Output add(const std::string& op, std::vector<Output> inputs, AttrMap attrs = {}) {
    if (!attrs.contains("element_dtype") && op_named(op).schema.attr("element_dtype") != nullptr)
      attrs.emplace("element_dtype", f32);
    return graph.add({.op = op, .inputs = std::move(inputs), .attrs = std::move(attrs)}).output();
  }
  Output empty() {
    return add("EmptyTensorList", {constant(graph, Tensor::of<int32_t>({0}, {})),
                                   constant(graph, Tensor::scalar(-1))});
  }
  Output push(Output list, Output value, DType dtype = f32) {
    return add("TensorListPushBack", {list, value}, {{"element_dtype", dtype}});
  }
  Output push(Output list, float value) {
    return push(list, constant(graph, Tensor::scalar(value)));
  }
  Output stack(Output list) {
    return add("TensorListStack", {list, constant(graph, Tensor::of<int32_t>({0}, {}))});
  }
  std::vector<Tensor> run(const std::vector<Output>& fetches) {
    LocalSession session{{.timeout = std::chrono::seconds(20)}, {.cpus = 1, .gpus = false}};
    session.extend(graph);
    std::vector<std::string> names;
    for (const Output& fetch : fetches) names.push_back(fetch.name());
    return session.run({}, names, {});
  }

  Graph graph;
};

std::vector<float> values(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

TEST(TensorLists, BehaveAsValues) {
  Lists lists;
  const Output one = lists.push(lists.empty(), 1), two = lists.push(one, 2),
               other = lists.push(one, 3);
  const Output changed = lists.add(
      "TensorListSetItem",
      {two, constant(lists.graph, Tensor::scalar(0)), constant(lists.graph, Tensor::scalar(9.0f))});
  const std::vector<Tensor> out =
      lists.run({lists.stack(one), lists.stack(two), lists.stack(other), lists.stack(changed)});
  EXPECT_EQ(values(out[0]), (std::vector<float>{1}));
  EXPECT_EQ(values(out[1]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values(out[2]), (std::vector<float>{1, 3}));
  EXPECT_EQ(values(out[3]), (std::vector<float>{9, 2}));
}

// A list without other owners is changed in place: otherwise n pushes would copy n² elements.
TEST(TensorLists, LastUserTakesOverTheElements) {
  Tensor list = variant_tensor(std::make_unique<TensorListVariant>());
  const void* before = list.raw();
  own_variant_as<TensorListVariant>(list).elements.emplace_back();
  EXPECT_EQ(list.raw(), before);
  const Tensor kept = list;
  own_variant_as<TensorListVariant>(list).elements.emplace_back();
  EXPECT_NE(list.raw(), before);
  EXPECT_EQ(variant_as<TensorListVariant>(kept).elements.size(), 1u);
  EXPECT_EQ(variant_as<TensorListVariant>(list).elements.size(), 2u);
}

TEST(TensorLists, MayBeNested) {
  Lists lists;
  const Output inner = lists.push(lists.empty(), 5);
  Output outer = lists.add(
      "EmptyTensorList",
      {constant(lists.graph, Tensor::scalar(-1)), constant(lists.graph, Tensor::scalar(-1))},
      {{"element_dtype", DType::variant}});
  outer = lists.push(outer, inner, DType::variant);
  const Output back = lists.add(
      "TensorListGetItem",
      {outer, constant(lists.graph, Tensor::scalar(0)), constant(lists.graph, Tensor::scalar(-1))},
      {{"element_dtype", DType::variant}});
  EXPECT_EQ(values(lists.run({lists.stack(back)})[0]), (std::vector<float>{5}));
}

// Their destruction recurses once per level.
TEST(TensorLists, LimitTheirNesting) {
  Lists lists;
  Output list = lists.empty();
  for (int i = 0; i < 1000; ++i) {
    const Output outer = lists.add(
        "EmptyTensorList",
        {constant(lists.graph, Tensor::scalar(-1)), constant(lists.graph, Tensor::scalar(-1))},
        {{"element_dtype", DType::variant}});
    list = lists.push(outer, list, DType::variant);
  }
  const Output length = lists.add("TensorListLength", {list});
  try {
    lists.run({length});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("are nested more than 1000 levels deep"), std::string::npos)
        << error.message();
  }
}

TEST(Optionals, LimitTheirNestingInOptionalsAndDatasets) {
  const AttrMap optional = {{"Toutput_types", std::vector<DType>{DType::variant}}};
  AttrMap dataset = optional;
  dataset.emplace("output_shapes", std::vector<Shape>{Shape{}});
  for (const auto& [op, attrs, asks] :
       {std::tuple("OptionalFromValue", optional, "OptionalHasValue"),
        std::tuple("TensorDataset", dataset, "DatasetCardinality")}) {
    Lists lists;
    Output value = lists.add("OptionalNone", {});
    for (int i = 0; i < 1000; ++i)
      value = lists.graph.add({.op = op, .inputs = {value}, .attrs = attrs}).output();
    const Output answer = lists.add(asks, {value});
    expect_error_with(Code::invalid_argument, "are nested more than 1000 levels deep",
                      [&] { lists.run({answer}); });
  }
}

TEST(TensorLists, UnsetElementsAreZeros) {
  Lists lists;
  const Output list =
      lists.add("TensorListReserve", {constant(lists.graph, Tensor::of<int32_t>({1}, {2})),
                                      constant(lists.graph, Tensor::scalar(2))});
  const Output stack =
      lists.add("TensorListStack", {list, constant(lists.graph, Tensor::scalar(-1))});
  EXPECT_EQ(values(lists.run({stack})[0]), (std::vector<float>{0, 0, 0, 0}));
}

TEST(TensorLists, RejectMoreElementsThanMemoryHolds) {
  Lists lists;
  const Output list =
      lists.add("TensorListReserve", {constant(lists.graph, Tensor::of<int32_t>({0}, {})),
                                      constant(lists.graph, Tensor::scalar(2'000'000'000))});
  try {
    lists.run({lists.add("TensorListLength", {list})});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted) << error.message();
  }
}

TEST(Variants, CannotBeFetched) {
  Lists lists;
  const Output list = lists.empty();
  expect_error([&] { lists.run({list}); }, Code::invalid_argument,
               "'EmptyTensorList:0' is a variant, such as a TensorList, which stays on its task: "
               "fetch what is computed from it");
}

TEST(Variants, RejectOtherKinds) {
  Lists lists;
  const Output none = lists.add("OptionalNone", {});
  expect_error([&] { lists.run({lists.add("TensorListLength", {none})}); }, Code::invalid_argument,
               "this is an Optional, not a TensorList (TensorListLength on "
               "/job:localhost/replica:0/task:0/device:CPU:0)\n\t [[{{node TensorListLength}}]]");
}

}  // namespace
}  // namespace leat
