// What builder functions take: values of the graph, numbers where a value is expected, lists where
// axes or a shape are.
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace leat {

// An Output, or a number that becomes a constant of the other operand's dtype. It remembers the
// line where it was converted, so that `a + b` can report it.
class Operand {
 public:
  Operand(Output output, Location at = here()) : output_(output), at_(at) {}  // NOLINT: converts
  template <std::floating_point T>
  Operand(T number, Location at = here())  // NOLINT
      : number_(static_cast<double>(number)), at_(at) {}
  template <std::signed_integral T>
  Operand(T number, Location at = here()) : number_(int64_t{number}), at_(at) {}  // NOLINT
  template <std::unsigned_integral T>
  Operand(T number, Location at = here()) : number_(uint64_t{number}), at_(at) {}  // NOLINT

  Location at() const { return at_; }
  bool is_number() const { return number_.index() != 0; }
  bool is_integer() const { return number_.index() > 1; }  // a number without fraction
  Output output() const { return output_; }                // none of a number
  // The Output, or the number as a constant like `other`, which must be one then.
  Output as(const Operand& other) const;
  // The Output, or the number as a constant of that dtype.
  Output as(Graph& graph, DType dtype) const;

 private:
  Output output_;
  std::variant<std::monostate, double, int64_t, uint64_t> number_;  // integers are kept exact
  Location at_;
};

// true or false, and no number that happens to be 0 or 1.
class Flag {
 public:
  template <std::same_as<bool> T>
  Flag(T value) : value_(value) {}          // NOLINT: converts
  operator bool() const { return value_; }  // NOLINT

 private:
  bool value_;
};

template <class T>
concept AxisNumber = std::integral<T> && !std::same_as<T, bool>;

// Which axes of a tensor: one, several, an int32 Output that holds them, or all of them: Axes().
// Negative ones count from the last: -1.
class Axes {
 public:
  Axes() = default;  // all
  // Not of bools: {.keep_dims = true} is no list of axes.
  template <AxisNumber T>
  Axes(T axis) : axes_(std::vector<int>{static_cast<int>(axis)}) {}  // NOLINT: converts
  template <AxisNumber T>
  Axes(std::initializer_list<T> axes)
      : axes_(std::vector<int>(axes.begin(), axes.end())) {}  // NOLINT
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}     // NOLINT
  Axes(Output axes) : axes_(axes) {}                          // NOLINT

  bool is_all() const { return axes_.index() == 0; }
  // The list, where it is one; null for all and for an Output.
  const std::vector<int>* list() const { return std::get_if<std::vector<int>>(&axes_); }
  // As an int32 vector; all are 0, 1, … of x's rank.
  Output of(Output x, Location at = here()) const;

 private:
  std::variant<std::monostate, std::vector<int>, Output> axes_;
};

// A shape to be made: extents, where -1 (any) means what is left, a Shape, or an integer Output.
class Dims {
 public:
  Dims(std::initializer_list<int64_t> dims) : dims_(std::vector<int64_t>(dims)) {}  // NOLINT
  Dims(std::vector<int64_t> dims) : dims_(std::move(dims)) {}                       // NOLINT
  Dims(const Shape& shape);                                                         // NOLINT
  Dims(Output dims) : dims_(dims) {}                                                // NOLINT

  const std::vector<int64_t>* list() const { return std::get_if<std::vector<int64_t>>(&dims_); }
  // As a vector of the graph: int32, or int64 where an extent needs it.
  Output in(Graph& graph, Location at = here()) const;

 private:
  std::variant<std::vector<int64_t>, Output> dims_;
};

// ---- Any op ----

// Any op by name: op("Relu", {x}). Attributes that follow from the inputs may be left out. The
// first output.
Output op(std::string_view name, const std::vector<Output>& inputs, AttrMap attrs = {},
          Location at = here());
Node& op_node(Graph& graph, std::string_view name, const std::vector<Output>& inputs,
              AttrMap attrs = {}, Location at = here());
// All outputs of an op that has inputs.
std::vector<Output> op_outputs(std::string_view name, const std::vector<Output>& inputs,
                               AttrMap attrs = {}, Location at = here());

// ---- Constants ----

// A value as it is written in C++: 1.5, true, "text", {1, 2}, {{1, 2}, {3, 4}}, a Tensor. Integers
// are int32 (int64 if their C++ type has 64 bits), floating-point numbers float32, double literals
// included, as in Keras: Tensor::scalar(1.5) is a double. Lists of one kind of numbers or of both
// make a rectangle; INVALID_ARGUMENT if rows differ in length.
class Literal {
 public:
  Literal(bool value) : values_({value}), kind_(DType::boolean) {}  // NOLINT: converts
  template <std::floating_point T>
  Literal(T value) : values_({static_cast<double>(value)}), kind_(DType::f32) {}  // NOLINT
  template <std::integral T>
  requires(!std::is_same_v<T, bool>) Literal(T value)  // NOLINT
      : values_({static_cast<int64_t>(value)}), kind_(sizeof(T) > 4 ? DType::i64 : DType::i32) {}
  Literal(const char* text) : values_({std::string(text)}), kind_(DType::string) {}  // NOLINT
  Literal(std::string text) : values_({std::move(text)}), kind_(DType::string) {}    // NOLINT
  Literal(Tensor value) : tensor_(std::move(value)) {}                               // NOLINT
  Literal(std::initializer_list<Literal> parts);                                     // NOLINT

  Tensor tensor(Location at = here()) const;
  // Its numbers as those of another dtype. INVALID_ARGUMENT if they do not fit.
  Tensor tensor(DType dtype, Location at = here()) const;

 private:
  using Value = std::variant<bool, int64_t, double, std::string>;
  std::vector<Value> values_;  // row-major
  std::vector<int64_t> extents_;
  DType kind_ = DType::f32;
  bool is_ragged_ = false;
  Tensor tensor_;
};

// constant(g, 1.0f), constant(g, {{1, 2}, {3, 4}}), constant(g, Tensor::of<double>({2}, {1, 2})).
Output constant(Graph& graph, const Literal& value, std::string_view name = "Const",
                Location at = here());
// The same of that dtype: constant(g, {1, 2}, i64). INVALID_ARGUMENT if a number does not fit.
Output constant(Graph& graph, const Literal& value, DType dtype, std::string_view name = "Const",
                Location at = here());

// A tensor as an argument: an Output, or what becomes a constant: 1, {0, 2}, "text", a Tensor.
class TensorLike {
 public:
  TensorLike(Output output, Location at = here()) : output_(output), at_(at) {}  // NOLINT: converts
  template <class T>
  requires(std::convertible_to<T, Literal> && !std::convertible_to<T, Output>)
      TensorLike(T&& literal, Location at = here())  // NOLINT
      : literal_(std::forward<T>(literal)), at_(at) {}
  TensorLike(std::initializer_list<Literal> parts, Location at = here())  // NOLINT
      : literal_(parts), at_(at) {}

  // The Output, which may be empty, or the constant as it is written.
  Output in(Graph& graph) const;
  // The same; a constant has that dtype and, if it is one number, that shape where this is known.
  Output like(Output other) const;

 private:
  Output output_;
  std::optional<Literal> literal_;
  Location at_;
};
// What each step feeds. Extents that differ from step to step are `any`.
Output placeholder(Graph& graph, std::string_view name, DType dtype,
                   const Shape& shape = Shape::unknown(), Location at = here());

// ---- Operators: elementwise, with NumPy's broadcasting, operands may be numbers ----

// Sums of strings join them.
Output operator+(const Operand& a, const Operand& b);
Output operator-(const Operand& a, const Operand& b);
Output operator*(const Operand& a, const Operand& b);
// Of floating-point and complex numbers. INVALID_ARGUMENT for integers: floor_div() or cast() says
// what is meant.
Output operator/(const Operand& a, const Operand& b);
// a - floor(a / b) * b, of the sign of b, as in Python.
Output operator%(const Operand& a, const Operand& b);
Output operator-(const Operand& x);
// Bitwise of integers, logical of bools.
Output operator&(const Operand& a, const Operand& b);
Output operator|(const Operand& a, const Operand& b);
Output operator^(const Operand& a, const Operand& b);
Output operator~(const Operand& x);

// x becomes another Output; the graph keeps both.
inline Output& operator+=(Output& x, const Operand& y) { return x = Operand(x, y.at()) + y; }
inline Output& operator-=(Output& x, const Operand& y) { return x = Operand(x, y.at()) - y; }
inline Output& operator*=(Output& x, const Operand& y) { return x = Operand(x, y.at()) * y; }
inline Output& operator/=(Output& x, const Operand& y) { return x = Operand(x, y.at()) / y; }

}  // namespace leat
