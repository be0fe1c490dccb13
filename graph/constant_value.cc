// Values that are known without running anything: constants, shapes, and the small integer
// arithmetic that graphs do with them. One evaluator serves complete values and partly known
// shapes.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "graph/shape_inference.h"

namespace leat {
namespace {

using Element = std::optional<int64_t>;  // empty: not known

// A scalar or a vector of integers.
struct Integers {
  bool is_scalar = false;
  std::vector<Element> elements;
};
using Result = std::optional<Integers>;  // empty: not even their number is known

constexpr int64_t most_elements = 1024;
constexpr int deepest = 64;  // of chains of ops; what lies deeper counts as unknown

Integers scalar(Element value) { return {true, {value}}; }

int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

class Evaluator {
 public:
  Result evaluate(const Output& output) {
    if (output.is_ref() || (output.dtype() != i32 && output.dtype() != i64)) return {};
    const auto key = std::make_pair(output.node->id, output.index);
    if (const auto known = results_.find(key); known != results_.end()) return known->second;
    if (depth_ == deepest) return {};
    ++depth_;
    Result result = apply(*output.node, output);
    --depth_;
    if (result && static_cast<int64_t>(result->elements.size()) > most_elements) result.reset();
    if (result && output.dtype() == i32) drop_overflow(*result);
    return results_[key] = std::move(result);
  }

 private:
  static void drop_overflow(Integers& result) {
    for (Element& element : result.elements) {
      if (element && (*element > INT32_MAX || *element < INT32_MIN)) element.reset();
    }
  }

  Result input(const Node& node, int i) { return evaluate(node.inputs[i]); }

  // The value of an input of one known element.
  Element one(const Node& node, int i) {
    const Result value = input(node, i);
    return value && value->elements.size() == 1 ? value->elements[0] : Element{};
  }

  Result apply(const Node& node, const Output& output) {
    const std::string& op = node.op->name;
    if (op == "Const") return constant(node.attr<Tensor>("value"));
    if (op == "Identity" || op == "StopGradient" || op == "PreventGradient" || op == "Cast")
      return input(node, 0);
    if (op == "Shape") return extents(node.inputs[0].shape());
    if (op == "ShapeN") return extents(node.inputs[output.index].shape());
    if (op == "Size") return size(node.inputs[0].shape());
    if (op == "Rank") return rank(node.inputs[0].shape());
    if (op == "Pack") return pack(node);
    if (op == "ConcatV2") return concat_v2(node);
    if (op == "StridedSlice") return strided_slice(node);
    if (op == "Slice") return slice(node);
    if (op == "Gather" || op == "GatherV2") return gather(node);
    if (op == "Prod" || op == "Sum") return reduce(node, op == "Prod");
    if (op == "ExpandDims" || op == "Squeeze" || op == "Reshape") return reshape(node, output);
    if (op == "Fill") return fill(node);
    if (op == "Range") return range(node);
    if (node.inputs.size() == 2) return binary(node, op);
    return {};
  }

  static Result constant(const Tensor& value) {
    if (value.shape().rank() > 1 || value.elements() > most_elements) return {};
    const std::vector<int64_t> values = to_int64s(value);
    return Integers{value.shape().rank() == 0, {values.begin(), values.end()}};
  }

  static Result extents(const Shape& shape) {
    if (!shape.has_rank()) return {};
    Integers out;
    for (const int64_t extent : shape.dims())
      out.elements.push_back(extent < 0 ? Element{} : extent);
    return out;
  }

  static Result size(const Shape& shape) {
    return scalar(shape.is_complete() ? Element(shape.elements()) : Element{});
  }
  static Result rank(const Shape& shape) {
    return scalar(shape.has_rank() ? Element(shape.rank()) : Element{});
  }

  Result binary(const Node& node, const std::string& op) {
    using Function = Element (*)(int64_t, int64_t);
    static const std::map<std::string, Function> functions = {
        {"Add", [](int64_t a, int64_t b) { return Element(a + b); }},
        {"AddV2", [](int64_t a, int64_t b) { return Element(a + b); }},
        {"Sub", [](int64_t a, int64_t b) { return Element(a - b); }},
        {"Mul",
         [](int64_t a, int64_t b) {
           int64_t product = 0;
           return __builtin_mul_overflow(a, b, &product) ? Element{} : Element(product);
         }},
        {"Div", [](int64_t a, int64_t b) { return b == 0 ? Element{} : Element(a / b); }},
        {"FloorDiv",
         [](int64_t a, int64_t b) { return b == 0 ? Element{} : Element(floor_div(a, b)); }},
        {"FloorMod",
         [](int64_t a, int64_t b) {
           return b == 0 ? Element{} : Element(a - floor_div(a, b) * b);
         }},
        {"Maximum", [](int64_t a, int64_t b) { return Element(std::max(a, b)); }},
        {"Minimum", [](int64_t a, int64_t b) { return Element(std::min(a, b)); }},
    };
    const auto function = functions.find(op);
    if (function == functions.end()) return {};
    const Result a = input(node, 0);
    const Result b = input(node, 1);
    if (!a || !b) return {};
    const size_t n = a->elements.size() == 1 ? b->elements.size() : a->elements.size();
    if (b->elements.size() != n && b->elements.size() != 1) return {};
    Integers out{a->is_scalar && b->is_scalar, {}};
    // Sums of extents stay far from the limits of int64; what does not is left alone.
    constexpr int64_t large = std::numeric_limits<int64_t>::max() / 4;
    for (size_t i = 0; i < n; ++i) {
      const Element x = a->elements[a->elements.size() == 1 ? 0 : i];
      const Element y = b->elements[b->elements.size() == 1 ? 0 : i];
      const bool is_computable = x && y && std::max(*x, *y) < large && std::min(*x, *y) > -large;
      out.elements.push_back(is_computable ? function->second(*x, *y) : Element{});
    }
    return out;
  }

  Result pack(const Node& node) {
    Integers out;
    for (const Output& element : node.inputs) {
      if (!element.shape().has_rank() || element.shape().rank() != 0) return {};
      const Result value = evaluate(element);
      out.elements.push_back(value && !value->elements.empty() ? value->elements[0] : Element{});
    }
    return out;
  }

  Result concat_v2(const Node& node) {
    Integers out;
    for (size_t i = 0; i + 1 < node.inputs.size(); ++i) {
      const Result part = input(node, static_cast<int>(i));
      if (part && !part->is_scalar) {
        out.elements.insert(out.elements.end(), part->elements.begin(), part->elements.end());
      } else if (const Shape& shape = node.inputs[i].shape();
                 !part && shape.rank() == 1 && shape.is_complete() && shape[0] <= most_elements) {
        out.elements.resize(out.elements.size() + shape[0]);
      } else {
        return {};
      }
    }
    return out;
  }

  Result strided_slice(const Node& node) {
    const Result x = input(node, 0);
    const Element begin = one(node, 1), end = one(node, 2), stride = one(node, 3);
    if (!x || x->is_scalar || !stride || *stride == 0) return {};
    if (node.attr<int64_t>("ellipsis_mask") != 0 || node.attr<int64_t>("new_axis_mask") != 0)
      return {};
    const bool has_begin = (node.attr<int64_t>("begin_mask") & 1) == 0;
    const bool has_end = (node.attr<int64_t>("end_mask") & 1) == 0;
    const bool shrinks = (node.attr<int64_t>("shrink_axis_mask") & 1) != 0;
    if ((has_begin && !begin) || (has_end && !shrinks && !end)) return {};
    const auto n = static_cast<int64_t>(x->elements.size());
    if (shrinks) {
      const int64_t at = has_begin ? (*begin < 0 ? *begin + n : *begin) : 0;
      if (at < 0 || at >= n) return {};
      return scalar(x->elements[at]);
    }
    const bool is_forward = *stride > 0;
    const auto clamped = [&](int64_t at) {
      if (at < 0) at += n;
      return is_forward ? std::clamp<int64_t>(at, 0, n) : std::clamp<int64_t>(at, -1, n - 1);
    };
    const int64_t first = has_begin ? clamped(*begin) : (is_forward ? 0 : n - 1);
    const int64_t last = has_end ? clamped(*end) : (is_forward ? n : -1);
    Integers out;
    const int64_t step = std::clamp(*stride, -n - 1, n + 1);  // no further: the sum may overflow
    for (int64_t i = first; is_forward ? i < last : i > last; i += step)
      out.elements.push_back(x->elements[i]);
    return out;
  }

  Result slice(const Node& node) {
    const Result x = input(node, 0);
    const Element begin = one(node, 1), size = one(node, 2);
    if (!x || x->is_scalar || !begin || !size) return {};
    const auto n = static_cast<int64_t>(x->elements.size());
    if (*begin < 0 || *begin > n) return {};
    const int64_t count = *size == -1 ? n - *begin : *size;
    if (count < 0 || count > n - *begin) return {};
    const auto first = x->elements.begin() + *begin;
    return Integers{false, {first, first + count}};
  }

  Result gather(const Node& node) {
    const Result x = input(node, 0);
    const Result indices = input(node, 1);
    if (!x || x->is_scalar || !indices) return {};
    Integers out{indices->is_scalar, {}};
    for (const Element index : indices->elements) {
      const bool is_inside =
          index && *index >= 0 && *index < static_cast<int64_t>(x->elements.size());
      out.elements.push_back(is_inside ? x->elements[*index] : Element{});
    }
    return out;
  }

  Result reduce(const Node& node, bool is_product) {
    const Result x = input(node, 0);
    const Result axes = input(node, 1);
    if (!x || x->is_scalar || !axes || axes->elements.size() != 1 || !axes->elements[0]) return {};
    Element total = is_product ? 1 : 0;
    for (const Element element : x->elements) {
      int64_t value = 0;
      const bool is_known = total && element &&
                            !(is_product ? __builtin_mul_overflow(*total, *element, &value)
                                         : __builtin_add_overflow(*total, *element, &value));
      total = is_known ? Element(value) : Element{};
    }
    return Integers{!node.attr<bool>("keep_dims"), {total}};
  }

  // Of scalars and vectors: the elements stay, and the shape tells which of both they become.
  Result reshape(const Node& node, const Output& output) {
    Result x = input(node, 0);
    if (!x || !output.shape().has_rank() || output.shape().rank() > 1) return {};
    x->is_scalar = output.shape().rank() == 0;
    return x;
  }

  Result fill(const Node& node) {
    const Result dims = input(node, 0);
    if (!dims || dims->is_scalar || dims->elements.size() > 1) return {};
    const Element value = one(node, 1);
    if (dims->elements.empty()) return scalar(value);
    const Element count = dims->elements[0];
    if (!count || *count < 0 || *count > most_elements) return {};
    return Integers{false, std::vector<Element>(*count, value)};
  }

  Result range(const Node& node) {
    const Element start = one(node, 0), limit = one(node, 1), delta = one(node, 2);
    if (!start || !limit || !delta || *delta == 0) return {};
    constexpr int64_t large = std::numeric_limits<int64_t>::max() / 4;  // sums do not overflow
    for (const int64_t number : {*start, *limit, *delta})
      if (number > large || number < -large) return {};
    Integers out;
    for (int64_t i = *start; *delta > 0 ? i < *limit : i > *limit; i += *delta) {
      if (static_cast<int64_t>(out.elements.size()) == most_elements) return {};
      out.elements.emplace_back(i);
    }
    return out;
  }

  std::map<std::pair<int, int>, Result> results_;
  int depth_ = 0;
};

template <class T>
Tensor tensor_of(const Integers& integers) {
  std::vector<T> values;
  for (const Element& element : integers.elements)
    values.push_back(static_cast<T>(element.value()));
  const Shape shape = integers.is_scalar ? Shape{} : Shape{static_cast<int64_t>(values.size())};
  return Tensor::of<T>(shape, std::span<const T>(values));
}

}  // namespace

Tensor constant_value(const Output& output) {
  if (output.node->is("Const")) return output.node->attr<Tensor>("value");
  const Result result = Evaluator().evaluate(output);
  if (!result) return {};
  const bool is_complete = std::all_of(result->elements.begin(), result->elements.end(),
                                       [](const Element& element) { return element.has_value(); });
  if (!is_complete) return {};
  return output.dtype() == i32 ? tensor_of<int32_t>(*result) : tensor_of<int64_t>(*result);
}

Shape constant_value_as_shape(const Output& output) {
  const Result result = Evaluator().evaluate(output);
  if (!result || result->is_scalar || result->elements.size() > Shape::max_rank) {
    const Shape& shape = output.shape();
    const bool has_length = shape.rank() == 1 && shape[0] >= 0 && shape[0] <= Shape::max_rank;
    return has_length && !result ? Shape::of_rank(static_cast<int>(shape[0])) : Shape::unknown();
  }
  Shape out;
  for (const Element& element : result->elements)
    out.push_back(element && *element >= 0 ? *element : any);
  return out;
}

}  // namespace leat
