// rewrite_arithmetic: which nodes become which, and that no value changes.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>

#include "graph/evaluate.h"
#include "tests/graph/simplified.h"

namespace leat {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
const float nan = std::numeric_limits<float>::quiet_NaN();

// Of the test graphs: floats, integers, their logical values, and a matrix.
const std::string feeds =
    "x = _Feed(dtype=float, name='x:0', shape=[8]); y = _Feed(dtype=float, name='y:0', shape=[8]);"
    "i = _Feed(dtype=int32, name='i:0', shape=[8]); b = _Feed(dtype=bool, name='b:0', shape=[8]);"
    "m = _Feed(dtype=float, name='m:0', shape=[2,4]); u = _Feed(dtype=float, name='u:0');"
    "c = _Feed(dtype=complex64, name='c:0', shape=[8]); ";

std::map<std::string, Tensor> feed_values() {
  const std::vector<float> x = {0.0F, -0.0F, inf, -inf, nan, 2.5F, -3.0F, 1e-30F};
  const std::vector<float> y = {-0.0F, 0.0F, 1.0F, -inf, 2.0F, -7.25F, nan, 3e30F};
  std::vector<std::complex<float>> c;
  for (size_t i = 0; i < x.size(); ++i) c.emplace_back(x[i], y[i]);
  Tensor b(DType::boolean, {8});
  for (int i = 0; i < 8; ++i) b.data<bool>()[i] = i % 3 == 0;
  return {{"x", Tensor::of(x)},
          {"y", Tensor::of(y)},
          {"i", Tensor::of<int32_t>({0, 1, -1, INT32_MAX, INT32_MIN, 7, -12, 1000003})},
          {"b", b},
          {"m", Tensor::of<float>({2, 4}, x)},
          {"u", Tensor::of<float>({2, 1, 4}, y)},
          {"c", Tensor::of(c)}};
}

// The value of `fetch`, computed node by node.
Tensor value_of(const Graph& graph, const std::string& fetch) {
  const std::map<std::string, Tensor> fed = feed_values();
  std::map<const Node*, std::vector<Tensor>> values;
  for (const auto& node : graph.nodes()) {
    if (node->is("_Feed")) {
      values[node.get()] = {fed.at(node->name)};
    } else if (node->num_outputs() > 0) {
      std::vector<Tensor> inputs;
      for (const Output& input : node->inputs)
        inputs.push_back(values.at(input.node).at(input.index));
      values[node.get()] = evaluate(*node, inputs);
    }
  }
  return values.at(graph.find(fetch)).at(0);
}

// To the bit, but any NaN is as good as another.
template <class T>
void expect_equal_elements(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.elements(); ++i) {
    const T p = a.data<T>()[i], q = b.data<T>()[i];
    if (p != p && q != q) continue;
    EXPECT_EQ(std::memcmp(&p, &q, sizeof(T)), 0)
        << "element " << i << ": " << double(p) << " and " << double(q);
  }
}

void expect_equal(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.shape(), b.shape());
  if (a.dtype() == f32) return expect_equal_elements<float>(a, b);
  if (a.dtype() == f64) return expect_equal_elements<double>(a, b);
  if (a.dtype() == DType::complex64) {
    return expect_equal_elements<float>(Tensor(f32, {2 * a.elements()}, a.buffer()),
                                        Tensor(f32, {2 * b.elements()}, b.buffer()));
  }
  EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << a << " and " << b;
}

Graph simplified(const std::string& text, Simplify extent = Simplify::all) {
  return leat::simplified(parse(feeds + text), {.fetches = {"z:0"}}, extent);
}

// Without the feeds and constants.
std::string rewritten(const std::string& text) {
  std::string out, line;
  for (std::istringstream lines(dump(simplified(text), {.attrs = false}));
       std::getline(lines, line);) {
    if (line.find("_Feed()") == std::string::npos && line.find("Const()") == std::string::npos)
      out += (out.empty() ? "" : "; ") + line;
  }
  return out;
}

// `z` of the graph becomes `wanted` and keeps its value to the bit.
void expect_rewritten(const std::string& text, const std::string& wanted) {
  SCOPED_TRACE(text);
  EXPECT_EQ(rewritten(text), wanted);
  expect_equal(value_of(simplified(text), "z"), value_of(parse(feeds + text), "z"));
}

void expect_kept(const std::string& text) {
  SCOPED_TRACE(text);
  EXPECT_EQ(dump(simplified(text), {.attrs = false}),
            dump(simplified(text, Simplify::structure), {.attrs = false}));
}

std::string constant(const std::string& name, const std::string& value) {
  return name + " = Const(dtype=" + value.substr(0, value.find('[')) + ", value=" + value + "); ";
}
std::string number(const std::string& value) { return constant("k", "float[] [" + value + "]"); }

// ---- Neutral elements ----

TEST(Arithmetic, PassesOnWhatANeutralElementLeaves) {
  for (const char* op :
       {"Mul(x, k)", "Mul(k, x)", "RealDiv(x, k)", "Div(x, k)", "DivNoNan(x, k)", "MulNoNan(x, k)"})
    expect_rewritten(number("1") + "z = " + op, "z = Identity(x)");
  for (const char* op : {"AddV2(x, k)", "Add(k, x)"})
    expect_rewritten(number("-0.0") + "z = " + op, "z = Identity(x)");
  expect_rewritten(number("0") + "z = Sub(x, k)", "z = Identity(x)");
  expect_rewritten(number("-0.0") + "z = Sub(k, x)", "z = Neg(x)");
  expect_rewritten(constant("k", "int32[] [1]") + "z = Mul(i, k)", "z = Identity(i)");
  expect_rewritten(constant("k", "int32[] [1]") + "z = FloorDiv(i, k)", "z = Identity(i)");
  expect_rewritten(constant("k", "int32[] [0]") + "z = AddV2(i, k)", "z = Identity(i)");
  expect_rewritten(constant("k", "int32[] [0]") + "z = Sub(k, i)", "z = Neg(i)");
  expect_rewritten(constant("k", "bool[] [true]") + "z = LogicalAnd(b, k)", "z = Identity(b)");
  expect_rewritten(constant("k", "bool[] [false]") + "z = LogicalOr(k, b)", "z = Identity(b)");
  expect_rewritten(constant("k", "complex64[] [(0,0)]") + "z = Sub(c, k)", "z = Identity(c)");
}

TEST(Arithmetic, KeepsWhatHasAnotherSignOfZero) {
  expect_kept(number("0") + "z = AddV2(x, k)");
  expect_kept(number("-0.0") + "z = Sub(x, k)");
  expect_kept(number("0") + "z = Sub(k, x)");
  expect_kept(constant("k", "complex64[] [(1,0)]") + "z = Mul(c, k)");
  expect_kept(constant("k", "complex64[] [(0,0)]") + "z = AddV2(c, k)");
}

TEST(Arithmetic, KeepsWhatABroadcastGivesAnotherShape) {
  const std::string column = constant("k", "float[3,1] [1, 1, 1]");
  expect_kept(column + "z = Mul(x, k)");
  expect_kept(column + "z = Pow(x, k)");
  expect_kept(constant("k", "float[1] [1]") + "z = Mul(u, k)");  // of unknown rank, may be a scalar
  expect_rewritten(constant("k", "float[1,1] [1]") + "z = Mul(m, k)", "z = Identity(m)");
  expect_rewritten(constant("k", "float[4] [1, 1, 1, 1]") + "z = Mul(m, k)", "z = Identity(m)");
  expect_rewritten(number("1") + "z = Mul(u, k)", "z = Identity(u)");
}

// ---- Powers ----

TEST(Arithmetic, ComputesPowersAsTensorFlowDoes) {
  expect_rewritten(number("2") + "z = Pow(x, k)", "z = Square(x)");
  expect_rewritten(number("1") + "z = Pow(x, k)", "z = Identity(x)");
  expect_rewritten(number("0") + "z = Pow(x, k)", "z = OnesLike(x)");
  expect_rewritten(number("-1") + "z = Pow(x, k)", "z = Reciprocal(x)");
  expect_rewritten(number("3") + "z = Pow(m, k)", "z/square = Square(m); z = Mul(m, z/square)");
  for (const auto& [power, op] : {std::pair("2", "Square"), {"0", "OnesLike"}, {"1", "Identity"}})
    expect_rewritten(constant("k", concat("int32[] [", power, "]")) + "z = Pow(i, k)",
                     concat("z = ", op, "(i)"));
}

// √ is not the power ½ of -0.0 and -∞, but TensorFlow takes it for that.
TEST(Arithmetic, TakesRootsForHalfPowers) {
  for (const auto& [power, op] : {std::pair("0.5", "Sqrt"), {"-0.5", "Rsqrt"}}) {
    const std::string text = number(power) + "z = Pow(x, k)";
    EXPECT_EQ(rewritten(text), concat("z = ", op, "(x)"));
    const Tensor power_value = value_of(parse(feeds + text), "z");
    const Tensor root = value_of(simplified(text), "z");
    for (const int i : {0, 2, 4, 5, 6, 7}) {  // all but -0.0 and -∞
      const float a = power_value.data<float>()[i], b = root.data<float>()[i];
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || a == b ||
                  std::abs(a - b) <= 2e-7F * std::abs(a))
          << power << ", element " << i << ": " << a << " and " << b;
    }
    EXPECT_TRUE(std::isnan(root.data<float>()[3]));
    EXPECT_TRUE(std::signbit(root.data<float>()[1]));
  }
}

TEST(Arithmetic, KeepsOtherPowers) {
  for (const char* power : {"4", "-2", "0.25", "nan"}) expect_kept(number(power) + "z = Pow(x, k)");
  expect_kept(constant("k", "float[8] [2, 2, 2, 2, 2, 2, 2, 3]") + "z = Pow(x, k)");
  expect_kept(constant("k", "int32[] [-1]") + "z = Pow(i, k)");  // it is an error
}

// ---- Quotients ----

TEST(Arithmetic, MultipliesByAnExactReciprocal) {
  for (const char* divisor : {"2", "0.25", "-1024"})
    expect_rewritten(number(divisor) + "z = RealDiv(x, k)", "z = Mul(x, z/reciprocal)");
  expect_rewritten(constant("k", "float[1] [4]") + "z = DivNoNan(m, k)",
                   "z = Mul(m, z/reciprocal)");
  for (const char* divisor : {"3", "10", "0", "inf", "nan", "1e38"})
    expect_kept(number(divisor) + "z = RealDiv(x, k)");
  expect_kept(constant("k", "int32[] [2]") + "z = FloorDiv(i, k)");
  expect_kept(constant("k", "float[8] [2, 2, 2, 2, 4, 4, 4, 4]") + "z = RealDiv(x, k)");
}

// ---- Sums and differences ----

TEST(Arithmetic, AddsFromTheLeftInOnePass) {
  expect_rewritten("s = AddV2(x, y); z = AddV2(s, x)", "z = AddN(x, y, x)");
  expect_rewritten("s = AddV2(x, y); z = Add(x, s)", "z = AddN(x, y, x)");
  expect_rewritten("s = AddN(x, y); t = AddV2(s, y); z = AddN(x, t, y)", "z = AddN(x, y, y, x, y)");
  expect_rewritten("s = AddV2(i, i); t = AddV2(s, i); z = Neg(t)", "t = AddN(i, i, i); z = Neg(t)");
  expect_rewritten("s = AddN(x); z = Neg(s)", "z = Neg(x)");
}

TEST(Arithmetic, KeepsSumsThatOthersNeedOrThatAddInAnotherOrder) {
  expect_kept("s = AddV2(x, y); t = AddV2(s, x); z = Mul(s, t)");
  expect_kept("s = AddV2(x, y); z = AddN(x, y, s)");
  expect_kept(constant("k", "float[1] [5]") + "s = AddV2(x, y); z = AddV2(s, k)");
  expect_kept("s = AddV2(u, u); z = AddV2(s, u)");  // of unknown shape
  expect_kept("s = AddV2(x, y) @A; z = AddV2(s, x) @B");
  expect_kept("n = CheckNumerics(y, message='m'); s = AddV2(x, y), ^n; z = AddV2(s, x)");
  EXPECT_EQ(rewritten("s = AddN(x, x, x, x, y, y, y, y); z = AddV2(s, x)"),
            "s = AddN(x, x, x, x, y, y, y, y); z = AddV2(s, x)")
      << "too many terms";
}

TEST(Arithmetic, SubtractsTheNegated) {
  expect_rewritten("n = Neg(y); z = AddV2(x, n)", "z = Sub(x, y)");
  expect_rewritten("n = Neg(y); z = AddV2(n, x)", "z = Sub(x, y)");
  expect_rewritten("n = Neg(y); z = Sub(x, n)", "z = AddV2(x, y)");
  expect_rewritten("n = Neg(i); z = Sub(i, n)", "z = AddV2(i, i)");
}

TEST(Arithmetic, SquaresDifferences) {
  expect_rewritten("d = Sub(x, y); z = Square(d)", "z = SquaredDifference(x, y)");
  expect_rewritten(number("2") + "d = Sub(u, m); z = Pow(d, k)", "z = SquaredDifference(u, m)");
  expect_kept("d = Sub(c, c); z = Square(d)");
  EXPECT_EQ(rewritten("d = Sub(x, y); s = Square(d); z = Mul(d, s)"),
            "d = Sub(x, y); s = Square(d); z = Mul(d, s)");
}

// ---- What undoes itself ----

TEST(Arithmetic, RemovesWhatUndoesItself) {
  expect_rewritten("n = Neg(x); z = Neg(n)", "z = Identity(x)");
  expect_rewritten("n = Neg(x); o = Neg(n); p = Neg(o); q = Neg(p); z = Exp(q)", "z = Exp(x)");
  expect_rewritten("n = Invert(i); z = Invert(n)", "z = Identity(i)");
  expect_rewritten("n = Conj(c); z = Conj(n)", "z = Identity(c)");
  expect_rewritten("n = LogicalNot(b); z = LogicalNot(n)", "z = Identity(b)");
  expect_rewritten("e = Equal(x, y); z = LogicalNot(e)", "z = NotEqual(x, y)");
  expect_rewritten("e = NotEqual(x, x); z = LogicalNot(e)", "z = Equal(x, x)");
  expect_kept("e = Less(x, y); z = LogicalNot(e)");     // NaN
  expect_kept("r = Reciprocal(x); z = Reciprocal(r)");  // rounds
}

// ---- Gradients ----

TEST(Arithmetic, JoinsGradientsOfReluAndPool) {
  const auto images =
      "f = Const(dtype=int32, value=int32[4] [1,2,4,1]); a = Reshape(x, f);"
      "q = MaxPool(a, ksize=[1,2,2,1], strides=[1,2,2,1], padding='VALID');"
      "g = Exp(q); ";
  const auto pool = [](const std::string& windows) {
    return "p = MaxPoolGrad(a, q, g, ksize=[1,2,2,1], " + windows + "); ";
  };
  const std::string square = "strides=[1,2,2,1], padding='VALID'";
  expect_rewritten(images + pool(square) + "z = ReluGrad(p, a)",
                   "a = Reshape(x, f); q = MaxPool(a); g = Exp(q); z = _MaxPoolReluGrad(a, q, g)");
  expect_kept(images + pool(square) + "z = ReluGrad(p, p)");  // of another value
  expect_kept(images + pool(square) +
              "r = ReluGrad(p, a); z = AddV2(r, p)");  // the pool's is needed
  const auto wide =
      "l = Const(dtype=int32, value=int32[4] [1,1,3,1]); e = Const(dtype=float, "
      "value=float[1,1,3,1] [1,2,3]); q = Identity(e); f = Const(dtype=int32, "
      "value=int32[4] [1,2,4,1]); a = Reshape(x, f); g = Exp(e); ";
  expect_kept(std::string(wide) + pool("strides=[1,1,1,1], padding='VALID'") +
              "z = ReluGrad(p, a)");  // overlapping windows
}

// ---- Names, branches and devices ----

TEST(Arithmetic, KeepsFetchesWithTheirValues) {
  Graph graph = parse(feeds + number("1") + "a = Mul(x, k); d = Sub(a, y); s = Square(d)");
  simplify(graph, {.fetches = {"a:0", "d:0", "s:0"}});
  EXPECT_EQ(dump(graph, {.attrs = false}),
            "x = _Feed()\na = Identity(x)\ny = _Feed()\nd = Sub(x, y)\ns = Square(d)\n");
}

// Whoever read a constant of a branch lives and dies with the branch.
TEST(Arithmetic, StaysInItsBranch) {
  EXPECT_EQ(rewritten("p = _Feed(dtype=bool, name='p:0'); s = Switch(p, p); pivot = Identity(s:1);"
                      "k = Const(dtype=float, value=float[] [1]), ^pivot; z = Mul(x, k)"),
            "s = Switch(p, p); pivot = Identity(s:1); z = Identity(x), ^pivot");
}

TEST(Arithmetic, LooksThroughNodesOfOneDevice) {
  expect_kept("n = Neg(x) @A; z = Neg(n) @B");
  EXPECT_EQ(rewritten("n = Neg(x) @A; z = Neg(n) @A"), "z = Identity(x) @A");
}

TEST(Arithmetic, KeepsErrorsOfTheLine) {
  Graph graph = parse(feeds + number("2") + "z = Pow(x, k)");
  const Location before = graph.find("z")->location;
  simplify(graph, {.fetches = {"z:0"}});
  EXPECT_EQ(graph.find("z")->location.line, before.line);
}

// ---- Movement ----

std::string axes(const std::string& values, int count) {
  return constant("k", concat("int32[", count, "] [", values, "]"));
}

TEST(Movement, PassesOnWhatStaysInPlace) {
  expect_rewritten(axes("0, 1", 2) + "z = Transpose(m, k)", "z = Identity(m)");
  expect_rewritten(axes("2, 4", 2) + "z = Reshape(m, k)", "z = Identity(m)");
  expect_rewritten(axes("-1, 4", 2) + "z = Reshape(m, k)", "z = Identity(m)");
  expect_rewritten(axes("1, 1", 2) + "z = Tile(m, k)", "z = Identity(m)");
  expect_rewritten(axes("2, 4", 2) + "z = BroadcastTo(m, k)", "z = Identity(m)");
  expect_rewritten("z = EnsureShape(m, shape=[?,4])", "z = Identity(m)");
  expect_rewritten("z = Squeeze(m)", "z = Identity(m)");
  expect_rewritten(constant("k", "int32[2,2] [0, 0, 0, 0]") + "z = Pad(m, k)", "z = Identity(m)");
  expect_rewritten(axes("0, 0", 2) +
                       "l = Const(dtype=int32, value=int32[2] [-1, 4]);"
                       "z = Slice(m, k, l)",
                   "z = Identity(m)");
  const std::string slice = axes("0, 0", 2) +
                            "e = Const(dtype=int32, value=int32[2] [2, 4]);"
                            "f = Const(dtype=int32, value=int32[2] [1, 1]);"
                            "g = Const(dtype=int32, value=int32[2] [1, -1]);";
  expect_rewritten(slice + "z = StridedSlice(m, k, e, f)", "z = Identity(m)");
  expect_kept(slice + "z = StridedSlice(m, k, e, g, begin_mask=3, end_mask=3)");
  expect_rewritten(constant("k", "int32[] [0]") + "z = Split(k, m, num_split=1)",
                   "z = Identity(m)");
}

TEST(Movement, KeepsReshapesThatMayFailOrChange) {
  expect_kept(axes("-1, 4", 2) + "z = Reshape(u, k)");
  expect_kept(axes("4, 2", 2) + "z = Reshape(m, k)");
  expect_kept("k = _Feed(dtype=int32, name='k:0', shape=[2]); z = Slice(m, k, k)");
  expect_kept(axes("2, 4", 2) +
              "l = Const(dtype=int32, value=int32[1] [-1]);"
              "r = Reshape(u, k); z = Reshape(r, l)");
}

TEST(Movement, JoinsReshapes) {
  const std::string both = axes("8", 1) +
                           "l = Const(dtype=int32, value=int32[2] [4, 2]);"
                           "n = Const(dtype=int32, value=int32[2] [2, 4]);"
                           "o = Const(dtype=int32, value=int32[] [0]);";
  expect_rewritten(both + "r = Reshape(m, k); z = Reshape(r, l)", "z = Reshape(m, l)");
  expect_rewritten(both + "r = Reshape(m, k); z = Reshape(r, n)", "z = Identity(m)");
  expect_rewritten(both + "e = ExpandDims(m, o); z = Squeeze(e)", "z = Identity(m)");
}

TEST(Movement, CancelsAndJoinsTransposes) {
  const std::string perms =
      "a = Const(dtype=int32, value=int32[3] [1, 2, 0]);"
      "d = Const(dtype=int32, value=int32[3] [2, 0, 1]);"
      "l = Const(dtype=int32, value=int32[3] [2, 2, 2]); r = Reshape(x, l);";
  expect_rewritten(perms + "s = Transpose(r, a); t = Transpose(s, d); z = Exp(t)",
                   "r = Reshape(x, l); z = Exp(r)");
  expect_rewritten(perms + "s = Transpose(r, a); z = Transpose(s, a)",
                   "r = Reshape(x, l); z = Transpose(r, d)");
  expect_kept(perms + "s = Transpose(r, a); t = Transpose(s, a); z = Mul(s, t)");
}

TEST(Movement, LetsProductsTranspose) {
  const std::string start = axes("1, 0", 2) + "w = Sigmoid(m); t = Transpose(w, k);";
  for (const auto& [product, attr] :
       {std::pair("MatMul(t, w)", "transpose_a"), {"MatMul(w, t)", "transpose_b"}}) {
    const std::string text = concat(start, "z = ", product);
    const Graph graph = simplified(text);
    EXPECT_EQ(graph.find("t"), nullptr);
    for (const char* name : {"transpose_a", "transpose_b"})
      EXPECT_EQ(graph.find("z")->attr<bool>(name), name == std::string_view(attr)) << product;
    const Tensor now = value_of(graph, "z"), before = value_of(parse(feeds + text), "z");
    ASSERT_EQ(now.shape(), before.shape());
    for (int64_t i = 0; i < now.elements(); ++i) {
      const float a = now.data<float>()[i], b = before.data<float>()[i];
      EXPECT_TRUE((std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-6F) << product;
    }
  }
  const Graph twice = simplified(start + "z = MatMul(w, t, transpose_a=true, transpose_b=true)");
  EXPECT_TRUE(twice.find("z")->attr<bool>("transpose_a"));
  EXPECT_FALSE(twice.find("z")->attr<bool>("transpose_b"));
  expect_kept(start + "p = MatMul(w, t); q = MatMul(p, w); r = Exp(t); z = MatMul(q, r)");
}

TEST(Movement, LetsBatchesOfProductsTranspose) {
  const std::string text =
      "l = Const(dtype=int32, value=int32[3] [2, 1, 4]); r = Reshape(y, l); w = Sigmoid(r);"
      "k = Const(dtype=int32, value=int32[3] [0, 2, 1]); t = Transpose(w, k);";
  const Graph graph = simplified(text + "z = BatchMatMulV2(w, t)");
  EXPECT_EQ(graph.find("t"), nullptr);
  EXPECT_TRUE(graph.find("z")->attr<bool>("adj_y"));
  // It would conjugate.
  expect_kept(
      "l = Const(dtype=int32, value=int32[3] [2, 1, 4]); r = Reshape(c, l);"
      "k = Const(dtype=int32, value=int32[3] [0, 2, 1]); t = Transpose(r, k);"
      "z = BatchMatMulV2(r, t)");
}

TEST(Movement, CancelsCastsThroughWiderTypes) {
  for (const auto& [value, wide] : {std::pair("x", "double"),
                                    {"i", "int64"},
                                    {"i", "double"},
                                    {"b", "float"},
                                    {"b", "uint8"}}) {
    const std::string own = value == std::string("x")   ? "float"
                            : value == std::string("i") ? "int32"
                                                        : "bool";
    expect_rewritten(concat("w = Cast(", value, ", DstT=", wide, "); z = Cast(w, DstT=", own, ")"),
                     concat("z = Identity(", value, ")"));
  }
  expect_rewritten("z = Cast(x, DstT=float)", "z = Identity(x)");
  expect_kept("w = Cast(x, DstT=half); z = Cast(w, DstT=float)");
  expect_kept("w = Cast(i, DstT=float); z = Cast(w, DstT=int32)");
  expect_kept("w = Cast(x, DstT=bfloat16); z = Cast(w, DstT=float)");
  expect_kept("h = Cast(x, DstT=half); w = Cast(h, DstT=bfloat16); z = Cast(w, DstT=half)");
}

TEST(Movement, TakesTheOnlyPartThatIsNotEmpty) {
  expect_rewritten(
      constant("k", "int32[] [0]") + constant("e", "float[0,4] []") + "z = ConcatV2(e, m, e, k)",
      "z = Identity(m)");
  expect_kept(constant("k", "int32[] [0]") + "z = ConcatV2(m, m, k)");
}

TEST(Movement, RemovesReductionsOverNothing) {
  for (const char* op : {"Sum", "Mean", "Max", "Min", "Prod"}) {
    expect_rewritten(axes("", 0) + "z = " + op + "(m, k)", "z = Identity(m)");
    expect_rewritten(axes("0", 1) +
                         "l = Const(dtype=int32, value=int32[2] [1, 8]);"
                         "r = Reshape(y, l); z = " +
                         op + "(r, k, keep_dims=true)",
                     "r = Reshape(y, l); z = Identity(r)");
  }
  expect_kept(axes("0", 1) + "z = Sum(m, k, keep_dims=true)");
}

}  // namespace
}  // namespace leat
