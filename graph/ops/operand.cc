#include "graph/ops/operand.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "core/visit_dtype.h"
#include "graph/ops/graph_of.h"

namespace leat {
namespace {

template <class Number>
[[noreturn]] void fail_to_fit(Number number, const Location& at, DType dtype) {
  fail(Code::invalid_argument, "the number ", number, " (", at, ") cannot be a constant of dtype ",
       dtype);
}

template <class T>
Tensor scalar_of(double number, const Location& at) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // 2^63 is a double and max() of int64 is not: compare with the power of two above.
    const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    const bool fits = number == std::trunc(number) && number < end &&
                      number >= static_cast<double>(std::numeric_limits<T>::min());
    if (!fits) fail_to_fit(number, at, dtype_of<T>);
  }
  return Tensor::scalar<T>(static_cast<T>(number));
}

template <class T, std::integral Number>
Tensor scalar_of(Number number, const Location& at) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!std::in_range<T>(number)) fail_to_fit(number, at, dtype_of<T>);
    return Tensor::scalar<T>(static_cast<T>(number));
  } else {
    return scalar_of<T>(static_cast<double>(number), at);
  }
}

template <class To>
To element_of(const Tensor& values, int64_t i, const Location& at) {
  To out{};
  const auto read = [&]<class From>(TypeTag<From>) {
    if constexpr (std::is_same_v<From, int32_t> || std::is_same_v<From, int64_t>) {
      out = *scalar_of<To>(int64_t{values.data<From>()[i]}, at).template data<To>();
    } else if constexpr (std::is_same_v<From, float> || std::is_same_v<From, double>) {
      out = *scalar_of<To>(static_cast<double>(values.data<From>()[i]), at).template data<To>();
    }
  };
  visit_dtype(values.dtype(), read);
  return out;
}

// What numbers are in another dtype.
Tensor converted(const Tensor& values, DType dtype, const Location& at) {
  if (values.dtype() == dtype) return values;
  Tensor out;
  const auto convert = [&]<class To>(TypeTag<To>) {
    if constexpr (std::is_arithmetic_v<To> && !std::is_same_v<To, bool>) {
      out = Tensor(dtype, values.shape());
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<To>()[i] = element_of<To>(values, i, at);
    } else if constexpr (std::is_same_v<To, half> || std::is_same_v<To, bfloat16>) {
      out = Tensor(dtype, values.shape());
      for (int64_t i = 0; i < out.elements(); ++i)
        out.data<To>()[i] = To(element_of<float>(values, i, at));
    }
  };
  const bool are_numbers = values.dtype() == DType::i32 || values.dtype() == DType::i64 ||
                           values.dtype() == DType::f32 || values.dtype() == DType::f64;
  if (are_numbers) visit_dtype(dtype, convert);
  check(out.is_valid(), "a constant (", at, ") of dtype ", values.dtype(), " cannot be a ", dtype);
  return out;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Output& x) {
  return x ? out << x.name() << ' ' << x.dtype() << x.shape() : out << "none";
}

// ---- Operand ----

Operand::Operand(Output output, Location at) : output_(output), at_(at) {}
Operand::Operand(const char* text, Location at) : constant_(std::string(text)), at_(at) {}
Operand::Operand(std::string text, Location at) : constant_(std::move(text)), at_(at) {}
Operand::Operand(Tensor value, Location at) : constant_(std::move(value)), at_(at) {}
Operand::Operand(Location at, double number) : constant_(number), at_(at) {}
Operand::Operand(Location at, int64_t number) : constant_(number), at_(at) {}
Operand::Operand(Location at, uint64_t number) : constant_(number), at_(at) {}
Operand::Operand(const Operand&) = default;
Operand::Operand(Operand&&) noexcept = default;
Operand& Operand::operator=(const Operand&) = default;
Operand& Operand::operator=(Operand&&) noexcept = default;
Operand::~Operand() = default;

Output Operand::as(Graph& graph, DType dtype) const {
  check(is_constant() || output_, "an operand (", at_, ") ", empty_output);
  if (output_) return output_;
  Tensor value;
  const auto convert = [&]<class Number>(const Number& number) {
    if constexpr (std::is_same_v<Number, Tensor>) {
      value = converted(number, dtype, at_);
    } else if constexpr (std::is_same_v<Number, std::string>) {
      check(dtype == DType::string, "the text \"", number, "\" (", at_, ") cannot be a ", dtype);
      value = Tensor::scalar(number);
    } else if constexpr (!std::is_same_v<Number, std::monostate>) {
      visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
          value = Tensor::scalar<T>(T(static_cast<float>(number)));
        } else if constexpr (!std::is_same_v<T, std::string>) {
          value = scalar_of<T>(number, at_);
        }
      });
      check(value.is_valid(), "the number ", number, " (", at_, ") cannot be a ", dtype);
    }
  };
  std::visit(convert, constant_);
  return constant(graph, std::move(value), "Const", at_);
}

Output Operand::in(Graph& graph) const {
  if (const auto* text = std::get_if<std::string>(&constant_))
    return constant(graph, *text, "Const", at_);
  if (const auto* value = std::get_if<Tensor>(&constant_))
    return constant(graph, *value, "Const", at_);
  return as(graph, is_integer() ? i32 : f32);
}

Output Operand::beside(const Operand& other, Graph& graph) const {
  if (!other.is_constant()) return as(other);
  if (!is_number() || !other.is_number()) return in(graph);
  return as(graph, is_integer() && other.is_integer() ? i32 : f32);
}

Output Operand::as(const Operand& other) const {
  for (const Operand* operand : {this, &other})
    check(operand->is_constant() || operand->output_, "an operand (", operand->at_, ") ",
          empty_output);
  if (output_) return output_;
  check(!other.is_constant(), "an operator needs an Output on one side at least (", at_, ")");
  const DType dtype = other.output_.dtype();
  if (dtype == DType::string || dtype == DType::resource || dtype == DType::variant) {
    const auto refuse = [&](const auto& number) {
      if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(number)>>)
        fail(Code::invalid_argument, "the number ", number, " (", at_,
             ") cannot be combined with '", other.output_.name(), "', whose dtype is ", dtype);
    };
    std::visit(refuse, constant_);
  }
  try {
    return as(other.output_.graph(), dtype);
  } catch (const Error& error) {
    fail(error.code(), error.message(), ", the dtype of the other operand");
  }
}

// ---- Axes and Dims ----

Axes::Axes() = default;
Axes::Axes(std::vector<int> axes) : axes_(std::move(axes)) {}
Axes::Axes(Output axes) : axes_(axes) {}
Axes::Axes(const Axes&) = default;
Axes::Axes(Axes&&) noexcept = default;
Axes& Axes::operator=(const Axes&) = default;
Axes& Axes::operator=(Axes&&) noexcept = default;
Axes::~Axes() = default;

Output Axes::of(Output x, Location at) const {
  if (const Output* given = std::get_if<Output>(&axes_)) return *given;
  Graph& graph = graph_of(x, at);
  std::vector<int32_t> axes;
  if (const std::vector<int>* given = list()) {
    axes.assign(given->begin(), given->end());
  } else if (x.shape().has_rank()) {
    axes.resize(x.shape().rank());
    std::iota(axes.begin(), axes.end(), 0);
  } else {
    const auto number = [&](int32_t value) {
      return constant(graph, Tensor::scalar(value), "Const", at);
    };
    return op("Range", {number(0), op("Rank", {x}, {}, at), number(1)}, {}, at);
  }
  const auto n = static_cast<int64_t>(axes.size());
  return constant(graph, Tensor::of<int32_t>({n}, std::span<const int32_t>(axes)), "axes", at);
}

Dims::Dims(const Dims&) = default;
Dims::Dims(Dims&&) noexcept = default;
Dims& Dims::operator=(const Dims&) = default;
Dims& Dims::operator=(Dims&&) noexcept = default;
Dims::~Dims() = default;

Dims::Dims(std::vector<int64_t> dims) : dims_(std::move(dims)) {}
Dims::Dims(const std::vector<int>& dims) : dims_(std::vector<int64_t>(dims.begin(), dims.end())) {}
Dims::Dims(Output dims) : dims_(dims) {}
Dims::Dims(std::initializer_list<Extent> dims) {
  const bool are_numbers =
      std::none_of(dims.begin(), dims.end(), [](const Extent& e) { return bool{e.scalar()}; });
  if (are_numbers) {
    std::vector<int64_t> numbers;
    for (const Extent& extent : dims) numbers.push_back(extent.number());
    dims_ = std::move(numbers);
  } else if (dims.size() == 1 && dims.begin()->scalar().shape().rank() == 1) {
    dims_ = dims.begin()->scalar();  // {shape_of(x)} holds all extents
  } else {
    dims_ = std::vector<Extent>(dims);
  }
}

Dims::Dims(const Shape& shape)
    : dims_(std::vector<int64_t>(shape.dims().begin(), shape.dims().end())) {
  check(shape.has_rank(), "dims need a shape of known rank");
}

Output Dims::in(Graph& graph, Location at) const {
  if (const Output* given = std::get_if<Output>(&dims_)) return *given;
  if (const auto* extents = std::get_if<std::vector<Extent>>(&dims_)) {
    std::vector<Output> parts;
    for (const Extent& extent : *extents) {
      const Output scalar = extent.scalar();
      if (!scalar) {
        parts.push_back(Operand(extent.number(), at).as(graph, i64));
      } else {
        parts.push_back(scalar.dtype() == i64 ? scalar : op("Cast", {scalar}, {{"DstT", i64}}, at));
      }
    }
    return op("Pack", parts, {}, at);
  }
  const std::vector<int64_t>& dims = *list();
  const auto n = static_cast<int64_t>(dims.size());
  const bool fits = std::all_of(dims.begin(), dims.end(),
                                [](int64_t extent) { return std::in_range<int32_t>(extent); });
  if (!fits)
    return constant(graph, Tensor::of<int64_t>({n}, std::span<const int64_t>(dims)), "shape", at);
  const std::vector<int32_t> narrow(dims.begin(), dims.end());
  return constant(graph, Tensor::of<int32_t>({n}, std::span<const int32_t>(narrow)), "shape", at);
}

// ---- Any op ----

Node& op_node(Graph& graph, std::string_view name, const std::vector<Output>& inputs, AttrMap attrs,
              Location at) {
  return graph.add(
      {.op = std::string(name), .inputs = inputs, .attrs = std::move(attrs), .location = at});
}

Output op(std::string_view name, const std::vector<Output>& inputs, AttrMap attrs, Location at) {
  Graph* graph = nullptr;
  for (const Output& input : inputs) {
    if (input) graph = input.node->graph;
  }
  check(graph != nullptr, "op '", name, "' (", at, ") ",
        inputs.empty() ? "has no input to take the graph from: use op_node(graph, …)"
                       : "is given an empty Output: it was never set to a result of the graph");
  Node& node = op_node(*graph, name, inputs, std::move(attrs), at);
  return node.outputs.empty() ? Output{} : node.output();
}

std::vector<Output> op_outputs(std::string_view name, const std::vector<Output>& inputs,
                               AttrMap attrs, Location at) {
  check(!inputs.empty(), "op '", name, "' (", at, ") has no inputs");
  check(bool{inputs.front()}, "op '", name, "' (", at,
        ") is given an empty Output: it was never set to a result of the graph");
  Node& node = op_node(inputs.front().graph(), name, inputs, std::move(attrs), at);
  std::vector<Output> outputs;
  for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) outputs.push_back(node.output(i));
  return outputs;
}

// ---- Constants ----

Literal::Literal(const Literal&) = default;
Literal::Literal(Literal&&) noexcept = default;
Literal& Literal::operator=(const Literal&) = default;
Literal& Literal::operator=(Literal&&) noexcept = default;
Literal::~Literal() = default;

Literal::Literal(bool value) : values_(1, value), kind_(DType::boolean) {}
Literal::Literal(const char* text) : Literal(std::string(text)) {}
Literal::Literal(std::string text) : values_(1, std::move(text)), kind_(DType::string) {}
Literal::Literal(Tensor value) : tensor_(std::move(value)) {}
Literal::Literal(double number, DType kind) : values_(1, number), kind_(kind) {}
Literal::Literal(int64_t number, DType kind) : values_(1, number), kind_(kind) {}
Literal::Literal(std::initializer_list<Literal> parts)
    : extents_{static_cast<int64_t>(parts.size())} {
  if (parts.size() == 0) return;
  const Literal& first = *parts.begin();
  kind_ = first.kind_;
  extents_.insert(extents_.end(), first.extents_.begin(), first.extents_.end());
  for (const Literal& part : parts) {
    check(!part.tensor_.is_valid(), "a list of values cannot hold a Tensor: use stack()");
    is_ragged_ |= part.is_ragged_ || part.extents_ != first.extents_;
    const bool are_numbers = kind_ != DType::boolean && kind_ != DType::string &&
                             part.kind_ != DType::boolean && part.kind_ != DType::string;
    check(kind_ == part.kind_ || are_numbers, "a list mixes a ", kind_, " and a ", part.kind_);
    if (part.kind_ == DType::f32 || (part.kind_ == DType::i64 && kind_ == DType::i32))
      kind_ = part.kind_;
    values_.insert(values_.end(), part.values_.begin(), part.values_.end());
  }
}

Tensor Literal::tensor(Location at) const {
  if (tensor_.is_valid()) return tensor_;
  check(!is_ragged_, "a list (", at, ") has rows of different lengths");
  Tensor out(kind_, Shape(std::span<const int64_t>(extents_)));
  const auto write = [&]<class T>(T* to) {
    for (const Value& value : values_) {
      std::visit(
          [&](const auto& given) {
            if constexpr (std::is_convertible_v<decltype(given), T>) *to = static_cast<T>(given);
          },
          value);
      ++to;
    }
  };
  switch (kind_) {
    case DType::boolean:
      write(out.data<bool>());
      break;
    case DType::i32:
      write(out.data<int32_t>());
      break;
    case DType::i64:
      write(out.data<int64_t>());
      break;
    case DType::f64:
      write(out.data<double>());
      break;
    case DType::string:
      write(out.data<std::string>());
      break;
    default:
      write(out.data<float>());
  }
  return out;
}

Output constant(Graph& graph, const Literal& literal, std::string_view name, Location at) {
  Tensor value = literal.tensor(at);
  const DType dtype = value.dtype();
  check(dtype != DType::invalid, "constant '", name, "' (", at, "): its value is an empty Tensor");
  return graph
      .add({.op = "Const",
            .name = std::string(name),
            .attrs = {{"dtype", dtype}, {"value", std::move(value)}},
            .location = at})
      .output();
}
Output constant(Graph& graph, const Literal& literal, DType dtype, std::string_view name,
                Location at) {
  return constant(graph, literal.tensor(dtype, at), name, at);
}

Tensor Literal::tensor(DType dtype, Location at) const {
  if (tensor_.is_valid() || kind_ != DType::f32) return converted(tensor(at), dtype, at);
  Literal exact = *this;  // 0.1 as a double is not the double of 0.1F
  exact.kind_ = DType::f64;
  return converted(exact.tensor(at), dtype, at);
}

TensorLike::TensorLike(const TensorLike&) = default;
TensorLike::TensorLike(TensorLike&&) noexcept = default;
TensorLike& TensorLike::operator=(const TensorLike&) = default;
TensorLike& TensorLike::operator=(TensorLike&&) noexcept = default;
TensorLike::~TensorLike() = default;

TensorLike::TensorLike(Output output, Location at) : output_(output), at_(at) {}
TensorLike::TensorLike(Location at, Literal literal) : literal_(std::move(literal)), at_(at) {}

Output TensorLike::in(Graph& graph) const {
  return literal_ ? constant(graph, *literal_, "Const", at_) : output_;
}

Output TensorLike::like(Output other) const {
  if (!literal_) return output_;
  Graph& graph = graph_of(other, at_);
  Tensor value = literal_->tensor(other.dtype(), at_);
  const Shape& shape = other.shape();
  const bool is_for_all = value.shape().rank() == 0 && shape.is_complete() && shape.rank() > 0;
  const Output made = constant(graph, std::move(value), "Const", at_);
  return is_for_all ? op("Fill", {Dims(shape).in(graph, at_), made}, {}, at_) : made;
}

Output placeholder(Graph& graph, std::string_view name, DType dtype, const Shape& shape,
                   Location at) {
  check(dtype != DType::invalid, "placeholder '", name, "' (", at, "): it needs a dtype");
  return graph
      .add({.op = "Placeholder",
            .name = std::string(name),
            .attrs = {{"dtype", dtype}, {"shape", shape}},
            .location = at})
      .output();
}

}  // namespace leat
