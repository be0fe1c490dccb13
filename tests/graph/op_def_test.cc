// The signature grammar, the registry, the choice of a kernel.
#include "graph/op_def.h"

#include <gtest/gtest.h>

#include "graph/op_schema.h"
#include "tests/support/expect_error.h"

namespace leat {
namespace {

AttrDef attr(const std::string& text) { return parse_schema({}, {}, {text}).attrs.at(0); }

TEST(Schema, ParsesArguments) {
  const OpSchema schema = parse_schema(
      {"a: T", "shape: int32", "values: N * T", "ref: Ref(T)", "indices: N * int64", "rest: L"},
      {"out: float32", "names: N * string"}, {"N: int >= 1", "T: type", "L: list(type)"});
  ASSERT_EQ(schema.inputs.size(), 6u);
  EXPECT_EQ(schema.inputs[0].type_attr, "T");
  EXPECT_EQ(schema.inputs[1].dtype, i32);
  EXPECT_EQ(schema.inputs[2].number_attr, "N");
  EXPECT_EQ(schema.inputs[2].type_attr, "T");
  EXPECT_TRUE(schema.inputs[2].is_list());
  EXPECT_TRUE(schema.inputs[3].is_ref);
  EXPECT_EQ(schema.inputs[3].type_attr, "T");
  EXPECT_EQ(schema.inputs[4].dtype, i64);
  EXPECT_EQ(schema.inputs[5].type_list_attr, "L");
  EXPECT_TRUE(schema.inputs[5].is_list());
  EXPECT_EQ(schema.to_string("Op"),
            "Op(a: T, shape: int32, values: N * T, ref: Ref(T), indices: N * int64, rest: L) -> "
            "(out: float, names: N * string)");
}

TEST(Schema, ParsesAllowedTypes) {
  EXPECT_EQ(attr("T: {float, double}").allowed_types, (std::vector<DType>{f32, f64}));
  EXPECT_EQ(attr("T: {float, double}").kind, "type");
  EXPECT_TRUE(attr("T: type").allowed_types.empty());
  EXPECT_EQ(attr("T: realnumbertype").allowed_types.size(), 12u);
  const AttrDef index = attr("Tidx: {int32, int64} = int32");
  EXPECT_EQ(*index.default_value, AttrValue(i32));
  EXPECT_EQ(*attr("T: type = DT_FLOAT").default_value, AttrValue(f32));
  const AttrDef list = attr("T: list({int32, int64}) >= 1");
  EXPECT_EQ(list.kind, "list(type)");
  EXPECT_EQ(list.allowed_types, (std::vector<DType>{i32, i64}));
  EXPECT_EQ(list.minimum, 1);
}

TEST(Schema, ParsesDefaultsOfEveryKind) {
  EXPECT_EQ(*attr("a: bool = false").default_value, AttrValue(false));
  EXPECT_EQ(*attr("a: int = -1").default_value, AttrValue(-1));
  EXPECT_EQ(*attr("a: float = 0.0001").default_value, AttrValue(0.0001));
  EXPECT_EQ(*attr("a: float = 1").default_value, AttrValue(1.0));
  EXPECT_EQ(*attr("a: string = ''").default_value, AttrValue(""));
  EXPECT_EQ(*attr("a: string = \"it's = x\"").default_value, AttrValue("it's = x"));
  EXPECT_EQ(*attr("a: {'SAME', 'VALID'} = 'SAME'").default_value, AttrValue("SAME"));
  EXPECT_EQ(attr("a: {'SAME', 'VALID'}").allowed_strings,
            (std::vector<std::string>{"SAME", "VALID"}));
  EXPECT_EQ(*attr("a: shape = <unknown>").default_value, AttrValue(Shape::unknown()));
  EXPECT_EQ(*attr("a: shape = [2,?]").default_value, AttrValue(Shape{2, any}));
  EXPECT_EQ(*attr("a: shape = []").default_value, AttrValue(Shape{}));
  EXPECT_EQ(*attr("a: list(string) = []").default_value, AttrValue(std::vector<std::string>{}));
  EXPECT_EQ(*attr("a: list(int) = [1, 2]").default_value, AttrValue(std::vector<int64_t>{1, 2}));
  EXPECT_EQ(*attr("a: list(bool) = {true}").default_value, AttrValue(std::vector<bool>{true}));
  EXPECT_EQ(*attr("a: list(shape) = [[1], <unknown>]").default_value,
            AttrValue(std::vector<Shape>{Shape{1}, Shape::unknown()}));
  EXPECT_EQ(*attr("a: tensor = float[2] [1, 2.5]").default_value,
            AttrValue(Tensor::of<float>({2}, {1, 2.5})));
  const AttrDef with_minimum = attr("N: int >= 2 = 3");
  EXPECT_EQ(with_minimum.minimum, 2);
  EXPECT_EQ(*with_minimum.default_value, AttrValue(3));
}

TEST(Schema, ReportsMistakes) {
  const auto parse_one = [](const std::string& text) {
    return [text] { parse_schema({}, {}, {text}); };
  };
  expect_error(parse_one("T {float}"), Code::invalid_argument,
               "'T {float}' must have the form 'name: type'");
  expect_error(parse_one("T: number"), Code::invalid_argument,
               "'T: number': 'number' is not a kind of attribute");
  expect_error(parse_one("T: {float"), Code::invalid_argument, "'T: {float': '{' without '}'");
  expect_error(parse_one("a: int = x"), Code::invalid_argument,
               "'a: int = x': expected an int before 'x'");
  expect_error(parse_one("a: int = 1 2"), Code::invalid_argument,
               "'a: int = 1 2': '2' is left over");
  expect_error(parse_one("a: int >= 2 = 1"), Code::invalid_argument,
               "'a: int >= 2 = 1': the default 1 is less than 2");
  expect_error(parse_one("a: {'A'} = 'B'"), Code::invalid_argument,
               "'a: {'A'} = 'B'': the default 'B' is not one of {'A'}");
  expect_error([] { parse_schema({"x: T"}, {}, {}); }, Code::invalid_argument,
               "'x: T': 'T' is neither a dtype nor an attribute");
  expect_error([] { parse_schema({"x: N * float"}, {}, {"N: float"}); }, Code::invalid_argument,
               "'x: N * float': attribute 'N' counts the list, so it must be an int");
}

TEST(Schema, ReadsPrintedValuesBack) {
  const std::vector<AttrValue> values = {"a \"quoted\"\n\x01 text",
                                         7,
                                         0.1,
                                         1.0,
                                         true,
                                         f32,
                                         Shape{2, any},
                                         Shape::unknown(),
                                         Tensor::of<float>({2}, {0.1f, 3}),
                                         Tensor::scalar("s"),
                                         Tensor::of<bool>({2}, {true, false}),
                                         Tensor::of<bfloat16>({1}, {bfloat16(0.5f)}),
                                         std::vector<int64_t>{1, -2},
                                         std::vector<float>{0.5f},
                                         std::vector<std::string>{"a", "b, c"},
                                         std::vector<DType>{f32, DType::string},
                                         std::vector<Shape>{Shape{}}};
  for (const AttrValue& value : values) {
    const std::string text = print_attr_value(value);
    std::string_view rest = text;
    EXPECT_EQ(parse_attr_value(value.kind(), rest), value) << text;
    EXPECT_EQ(rest, "") << text;
  }
}

BoundKernel nothing(const KernelRequest&) { return {}; }

const Op chosen_op{{
    .name = "TestChosen",
    .doc = "For the choice of kernels.",
    .inputs = {"x: T"},
    .attrs = {"T: {float, double, int32}", "L: list(type) = []"},
    .kernels = {{.types = {{"T", {f32, f64}}}, .prepare = nothing}},
}};
// The plug-in does this when it is loaded.
const Op chosen_again{{
    .name = "TestChosen",
    .doc = "For the choice of kernels.",
    .inputs = {"x: T"},
    .attrs = {"T: {float, double, int32}", "L: list(type) = []"},
    .kernels = {{.device = DeviceType::gpu, .types = {{"T", {f32}}}, .prepare = nothing},
                {.types = {{"T", {i32}}, {"L", {f32}}}, .prepare = nothing}},
}};

TEST(Registry, SecondDefinitionAddsKernels) {
  const OpDef& op = op_named("TestChosen");
  EXPECT_EQ(op.kernels.size(), 3u);
  EXPECT_EQ(describe_kernels(op),
            "CPU: T in {float, double}; GPU: T in {float}; CPU: T in {int32}, L in {float}");
  EXPECT_EQ(describe_kernels(op_named("_Feed")), "none");
}

TEST(Registry, KernelMustAllowAllTypes) {
  const OpDef& op = op_named("TestChosen");
  const auto attrs = [](DType t, std::vector<DType> l) {
    return AttrMap{{"T", t}, {"L", std::move(l)}};
  };
  EXPECT_EQ(find_kernel(op, attrs(f64, {}), DeviceType::cpu), &op.kernels[0]);
  EXPECT_EQ(find_kernel(op, attrs(f32, {}), DeviceType::gpu), &op.kernels[1]);
  EXPECT_EQ(find_kernel(op, attrs(f64, {}), DeviceType::gpu), nullptr);
  EXPECT_EQ(find_kernel(op, attrs(i32, {f32, f32}), DeviceType::cpu), &op.kernels[2]);
  EXPECT_EQ(find_kernel(op, attrs(i32, {f32, f64}), DeviceType::cpu), nullptr);
}

TEST(Registry, RejectsAnotherSignatureOfAKnownOp) {
  expect_error(
      [] { const Op op{{.name = "TestChosen", .inputs = {"x: T"}, .attrs = {"T: {float}"}}}; },
      Code::invalid_argument,
      "op TestChosen is defined twice with different signatures: 'TestChosen(x: T) -> (); T: type "
      "in "
      "{float, double, int32}; L: list(type) = {}' and 'TestChosen(x: T) -> (); T: type in "
      "{float}'");
}

TEST(Registry, SuggestsNeighboursOfUnknownOps) {
  EXPECT_EQ(find_op("TestMatmul"), nullptr);
  expect_error([] { op_named("TestMatmul"); }, Code::not_found,
               "Op type not registered 'TestMatmul'; did you mean 'TestMatMul'?");
  expect_error([] { op_named("Qqqqqqqqqqqqqqq"); }, Code::not_found,
               "Op type not registered 'Qqqqqqqqqqqqqqq'");
}

TEST(Registry, SortsAllOpsByName) {
  const std::vector<const OpDef*> ops = all_ops();
  EXPECT_TRUE(
      std::is_sorted(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->name < b->name; }));
}

}  // namespace
}  // namespace leat
