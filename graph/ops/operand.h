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

// Its name, dtype and shape: "MatMul:0 float[?,10]"; "none" if it is empty. The value is what a
// session returns, or what print() logs.
std::ostream& operator<<(std::ostream& out, const Output& x);

// An Output, or a number or text that becomes a constant of the other operand's dtype, or a Tensor.
// It remembers the line where it was converted, so that `a + b` can report it.
class Operand {
 public:
  Operand(Output output, Location at = here());  // NOLINT: converts
  // A bool is not a number: !x and x && y of Outputs are C++ bools, not nodes.
  template <std::same_as<bool> T>
  Operand(T, Location = here()) = delete;
  template <std::floating_point T>
  Operand(T number, Location at = here()) : Operand(at, static_cast<double>(number)) {}  // NOLINT
  template <std::signed_integral T>
  Operand(T number, Location at = here()) : Operand(at, int64_t{number}) {}  // NOLINT
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Operand(T number, Location at = here())  // NOLINT
      : Operand(at, uint64_t{number}) {}
  Operand(const char* text, Location at = here());  // NOLINT
  Operand(std::string text, Location at = here());  // NOLINT
  Operand(Tensor value, Location at = here());      // NOLINT
  Operand(const Operand&);
  Operand(Operand&&) noexcept;
  Operand& operator=(const Operand&);
  Operand& operator=(Operand&&) noexcept;
  ~Operand();

  Location at() const { return at_; }
  bool is_constant() const { return constant_.index() != 0; }  // a number, a text or a Tensor
  bool is_number() const { return constant_.index() > 0 && constant_.index() < 4; }
  // A number without fraction.
  bool is_integer() const { return constant_.index() == 2 || constant_.index() == 3; }
  Output output() const { return output_; }  // none of a number
  // The Output, or the number as a constant like `other`, which must be an Output then.
  Output as(const Operand& other) const;
  // The Output, or the number as a constant of that dtype.
  Output as(Graph& graph, DType dtype) const;
  // The Output, or the constant by itself: integers are int32, other numbers float32.
  Output in(Graph& graph) const;
  // For two values of which either may be given: as(other), or in(graph) if `other` is a constant
  // too. Of two numbers both become float32 if one is.
  Output beside(const Operand& other, Graph& graph) const;

 private:
  Operand(Location at, double number);
  Operand(Location at, int64_t number);
  Operand(Location at, uint64_t number);

  Output output_;
  // Integers are kept exact.
  std::variant<std::monostate, double, int64_t, uint64_t, std::string, Tensor> constant_;
  Location at_;
};

// true or false, not a number that happens to be 0 or 1.
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
// Negative axes count from the last: -1.
class Axes {
 public:
  Axes();  // all
  // Not of bools: {.keep_dims = true} is no list of axes.
  template <AxisNumber T>
  Axes(T axis) : Axes(std::vector<int>{static_cast<int>(axis)}) {}  // NOLINT: converts
  template <AxisNumber T>
  Axes(std::initializer_list<T> axes)
      : Axes(std::vector<int>(axes.begin(), axes.end())) {}  // NOLINT
  Axes(std::vector<int> axes);                               // NOLINT
  Axes(Output axes);                                         // NOLINT
  Axes(const Axes&);
  Axes(Axes&&) noexcept;
  Axes& operator=(const Axes&);
  Axes& operator=(Axes&&) noexcept;
  ~Axes();

  bool is_all() const { return axes_.index() == 0; }
  // The list, where it is one; null for all and for an Output.
  const std::vector<int>* list() const { return std::get_if<std::vector<int>>(&axes_); }
  // As an int32 vector; all are 0, 1, … of x's rank.
  Output of(Output x, Location at = here()) const;

 private:
  std::variant<std::monostate, std::vector<int>, Output> axes_;
};

// One extent of a shape: a number, or a scalar of the graph.
class Extent {
 public:
  template <AxisNumber T>
  Extent(T number) : number_(static_cast<int64_t>(number)) {}  // NOLINT: converts
  Extent(const AnyExtent&) : number_(-1) {}                    // NOLINT
  Extent(Output scalar) : scalar_(scalar) {}                   // NOLINT

  int64_t number() const { return number_; }  // of what is no Output
  Output scalar() const { return scalar_; }   // none of a number

 private:
  int64_t number_ = 0;
  Output scalar_;
};

// A shape to make: one extent or several, where -1 (any) means what is left and some may be
// Outputs; a Shape; or an integer Output that holds all of them.
class Dims {
 public:
  template <AxisNumber T>
  Dims(T extent) : Dims(std::vector<int64_t>{static_cast<int64_t>(extent)}) {}  // NOLINT: converts
  Dims(std::initializer_list<Extent> dims);                                     // NOLINT
  Dims(std::vector<int64_t> dims);                                              // NOLINT
  Dims(const std::vector<int>& dims);                                           // NOLINT
  Dims(const Shape& shape);                                                     // NOLINT
  Dims(Output dims);                                                            // NOLINT
  Dims(const Dims&);
  Dims(Dims&&) noexcept;
  Dims& operator=(const Dims&);
  Dims& operator=(Dims&&) noexcept;
  ~Dims();

  // Null where Outputs are among them.
  const std::vector<int64_t>* list() const { return std::get_if<std::vector<int64_t>>(&dims_); }
  // As a vector of the graph: int32, or int64 where an extent needs it.
  Output in(Graph& graph, Location at = here()) const;

 private:
  std::variant<std::vector<int64_t>, Output, std::vector<Extent>> dims_;
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

template <class T>
concept ElementOfLiteral =
    (std::is_arithmetic_v<T> && !std::same_as<T, bool>) || std::same_as<T, std::string>;

// A value as it is written in C++: 1.5, true, "text", {1, 2}, {{1, 2}, {3, 4}}, a Tensor. Integers
// are int32 (int64 if their C++ type has 64 bits), floating-point numbers float32, double literals
// included, as in Keras: Tensor::scalar(1.5) is a double. Lists of one kind of numbers or of both
// make a rectangle; INVALID_ARGUMENT if rows differ in length.
class Literal {
 public:
  Literal(bool value);  // NOLINT: converts
  template <std::floating_point T>
  Literal(T value) : Literal(static_cast<double>(value), DType::f32) {}  // NOLINT
  template <std::integral T>
  requires(!std::is_same_v<T, bool>) Literal(T value)  // NOLINT
      : Literal(static_cast<int64_t>(value), sizeof(T) > 4 ? DType::i64 : DType::i32) {}
  Literal(const char* text);  // NOLINT
  Literal(std::string text);  // NOLINT
  Literal(Tensor value);      // NOLINT
  Literal(const Literal&);
  Literal(Literal&&) noexcept;
  Literal& operator=(const Literal&);
  Literal& operator=(Literal&&) noexcept;
  ~Literal();
  // A vector or a matrix of that dtype.
  template <ElementOfLiteral T>
  Literal(const std::vector<T>& values) : Literal(Tensor::of(values)) {}  // NOLINT
  template <ElementOfLiteral T>
  Literal(const std::vector<std::vector<T>>& rows) : Literal(Tensor()) {  // NOLINT
    const size_t columns = rows.empty() ? 0 : rows[0].size();
    std::vector<T> values;
    values.reserve(rows.size() * columns);
    for (const std::vector<T>& row : rows) {
      is_ragged_ |= row.size() != columns;
      values.insert(values.end(), row.begin(), row.end());
    }
    if (!is_ragged_)
      tensor_ = Tensor::of(Shape{std::ssize(rows), static_cast<int64_t>(columns)}, values);
  }
  Literal(std::initializer_list<Literal> parts);  // NOLINT

  Tensor tensor(Location at = here()) const;
  // Its numbers as those of another dtype. INVALID_ARGUMENT if they do not fit.
  Tensor tensor(DType dtype, Location at = here()) const;

 private:
  using Value = std::variant<bool, int64_t, double, std::string>;
  Literal(double number, DType kind);
  Literal(int64_t number, DType kind);

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
  TensorLike(Output output, Location at = here());  // NOLINT: converts
  template <class T>
  requires(std::convertible_to<T, Literal> && !std::convertible_to<T, Output>)
      TensorLike(T&& literal, Location at = here())  // NOLINT
      : TensorLike(at, Literal(std::forward<T>(literal))) {}
  TensorLike(std::initializer_list<Literal> parts, Location at = here())  // NOLINT
      : TensorLike(at, Literal(parts)) {}
  TensorLike(const TensorLike&);
  TensorLike(TensorLike&&) noexcept;
  TensorLike& operator=(const TensorLike&);
  TensorLike& operator=(TensorLike&&) noexcept;
  ~TensorLike();

  // The Output, which may be empty, or the constant as it is written.
  Output in(Graph& graph) const;
  // The same; a constant has that dtype and, if it is one number, that shape where this is known.
  Output like(Output other) const;

 private:
  TensorLike(Location at, Literal literal);

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
