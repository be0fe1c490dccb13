// Einsum: sums of products over labelled axes. Transposes operands to [batch, rows, summed] and
// [batch, summed, columns], multiplies them as matrices, and transposes the product to the output's
// order.
#include <algorithm>
#include <map>
#include <string>

#include "core/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/extents.h"
#include "kernels/linear_algebra/matmul.h"
#include "kernels/pieces.h"
#include "kernels/strided_copy.h"

namespace leat {
namespace {

// ---- The equation

constexpr char ellipsis = '.';  // one character stands for "..."

struct Equation {
  std::vector<std::string> inputs;  // labels of each operand's axes
  std::string output;
};

std::string labels_of(std::string_view text, std::string_view equation) {
  std::string labels;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') continue;
    if (text.substr(i, 3) == "...") {
      check(labels.find(ellipsis) == labels.npos, "More than one ellipsis in one operand of \"",
            equation, "\"");
      labels += ellipsis;
      i += 2;
    } else {
      check(std::isalpha(static_cast<unsigned char>(text[i])), "Invalid character '", text[i],
            "' in equation \"", equation, "\"");
      labels += text[i];
    }
  }
  return labels;
}

Equation parse(const std::string& text, size_t num_inputs) {
  const size_t arrow = text.find("->");
  check(arrow != text.npos && text.find("->", arrow + 2) == text.npos,
        "Expecting exactly one '->' in einsum equation: ", text);
  Equation equation;
  std::string_view rest = std::string_view(text).substr(0, arrow);
  for (size_t comma = 0; comma != rest.npos; rest.remove_prefix(comma + 1)) {
    comma = rest.find(',');
    equation.inputs.push_back(labels_of(rest.substr(0, comma), text));
    if (comma == rest.npos) break;
  }
  equation.output = labels_of(std::string_view(text).substr(arrow + 2), text);
  check(equation.inputs.size() == num_inputs, "Expected ", equation.inputs.size(),
        " inputs in equation \"", text, "\" but got: ", num_inputs);
  check(num_inputs <= 2, "einsum has ", num_inputs, " operands, but at most 2 are supported");
  for (const char label : equation.output) {
    const bool is_known =
        std::any_of(equation.inputs.begin(), equation.inputs.end(),
                    [&](const std::string& in) { return in.find(label) != in.npos; });
    check(is_known || label == ellipsis, "einsum's output has label '", std::string(1, label),
          "', which no operand has: \"", text, "\"");
  }
  return equation;
}

// An ellipsis that stands for `rank` axes, as labels 0 to rank - 1, aligned at the last one.
std::string expanded(const std::string& labels, int rank, int widest) {
  std::string out;
  for (const char label : labels) {
    if (label != ellipsis) {
      out += label;
    } else {
      for (int i = widest - rank; i < widest; ++i) out += static_cast<char>(i);
    }
  }
  return out;
}

// Replaces all ellipses by labels of their own. False if a rank that is needed is unknown.
bool expand(Equation& equation, const std::vector<Shape>& shapes) {
  std::vector<int> ranks;
  int widest = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& labels = equation.inputs[i];
    const bool has_ellipsis = labels.find(ellipsis) != labels.npos;
    if (!shapes[i].has_rank()) return false;
    const int named = static_cast<int>(labels.size()) - has_ellipsis;
    check(has_ellipsis ? shapes[i].rank() >= named : shapes[i].rank() == named, "Expected input ",
          i, " to have rank ", has_ellipsis ? "at least " : "", named, " but got shape ",
          shapes[i]);
    ranks.push_back(shapes[i].rank() - named);
    widest = std::max(widest, ranks.back());
  }
  for (size_t i = 0; i < shapes.size(); ++i)
    equation.inputs[i] = expanded(equation.inputs[i], ranks[i], widest);
  equation.output = expanded(equation.output, widest, widest);
  return true;
}

// The extent of every label. Axes of an ellipsis are broadcast.
std::map<char, int64_t> extents_of(const Equation& equation, const std::vector<Shape>& shapes) {
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int axis = 0; axis < shapes[i].rank(); ++axis) {
      const char label = equation.inputs[i][axis];
      const int64_t extent = shapes[i][axis];
      const auto [at, is_new] = extents.try_emplace(label, extent);
      if (is_new || extent == at->second) continue;
      if (label < ' ') {  // of an ellipsis
        at->second = broadcast(Shape{at->second}, Shape{extent})[0];
      } else if (at->second == any) {
        at->second = extent;
      } else {
        check(extent == any, "Expected dimension ", at->second, " at axis ", axis, " of input ", i,
              " of shape ", shapes[i], " but got dimension ", extent);
      }
    }
  }
  return extents;
}

Shape output_shape(const Equation& equation, std::map<char, int64_t>& extents) {
  Shape out;
  for (const char label : equation.output) out.push_back(extents.at(label));
  return out;
}

void infer(ShapeContext& c) {
  Equation equation = parse(c.attr<std::string>("equation"), c.num_inputs());
  std::vector<Shape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  if (!expand(equation, shapes)) return c.set_output(0, Shape::unknown());
  std::map<char, int64_t> extents = extents_of(equation, shapes);
  c.set_output(0, output_shape(equation, extents));
}

// ---- The kernel

// The steps in a tensor's memory along each label: a label that appears twice is a diagonal, an
// axis that is broadcast has step 0.
std::map<char, int64_t> strides_by_label(const std::string& labels, const Shape& shape) {
  std::map<char, int64_t> out;
  const std::vector<int64_t> strides = strides_of(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    out[labels[axis]] += shape[axis] == 1 ? 0 : strides[axis];
  return out;
}

struct Packing {
  StridedCopy copy;
  size_t bytes = 0, offset = 0;  // its part of the workspace
  bool is_identity = true;       // the elements lie in this order already
};

// Between a tensor whose steps are `strides` and the dense order of `labels`.
Packing packing(const std::string& labels, const std::map<char, int64_t>& extents,
                const std::map<char, int64_t>& strides, bool unpacks, size_t size) {
  Packing out;
  std::vector<StridedCopy::Axis> axes;
  int64_t dense = 1;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    const int64_t extent = extents.at(*label);
    const auto found = strides.find(*label);
    const int64_t stride = found == strides.end() ? 0 : found->second;
    if (extent > 1 && stride != dense) out.is_identity = false;
    axes.insert(axes.begin(), {extent, unpacks ? dense : stride, unpacks ? stride : dense});
    dense = product_of_extents(dense, extent);
  }
  product_of_extents(dense, static_cast<int64_t>(2 * size));
  out.bytes = (static_cast<size_t>(dense) * size + 63) / 64 * 64;
  out.copy = StridedCopy(std::move(axes));
  return out;
}

template <class T>
BoundKernel bind(const KernelRequest& request, BoundKernel product, int64_t batches, int64_t m,
                 int64_t n, int64_t k, std::vector<Packing> operands, Packing result,
                 bool clears_output) {
  size_t workspace = (product.workspace_bytes + 63) / 64 * 64;
  for (Packing& operand : operands) {
    operand.offset = workspace;
    if (!operand.is_identity) workspace += operand.bytes;
  }
  const size_t ones = workspace;  // the second operand of an einsum that has only one
  if (operands.size() == 1) workspace += (static_cast<size_t>(k) * sizeof(T) + 63) / 64 * 64;
  result.offset = workspace;
  if (!result.is_identity) workspace += result.bytes;
  const DType dtype = request.inputs[0].dtype;
  return BoundKernel::of([=, elements = request.outputs[0].shape.elements(),
                          operands = std::move(operands), result = std::move(result),
                          product = std::move(product)](const Arguments& a) {
           char* space = static_cast<char*>(a.workspace);
           char* sides[2] = {nullptr, space + ones};
           for (size_t i = 0; i < operands.size(); ++i) {
             sides[i] = static_cast<char*>(a.inputs[i]);
             if (operands[i].is_identity) continue;
             sides[i] = space + operands[i].offset;
             operands[i].copy.run(*a.stream, a.input<T>(static_cast<int>(i)),
                                  reinterpret_cast<T*>(sides[i]));
           }
           if (operands.size() == 1) {
             visit_type(MatMulTypes{}, dtype, [&](auto tag) {
               using E = typename decltype(tag)::type;
               std::fill_n(reinterpret_cast<E*>(sides[1]), k, E(1));
               return 0;
             });
           }
           char* to = result.is_identity ? a.output<char>() : space + result.offset;
           for (int64_t b = 0; b < batches; ++b) {
             StepEnd::ask();
             void* inputs[] = {sides[0] + b * m * k * sizeof(T),
                               sides[1] + (operands.size() == 1 ? 0 : b * k * n * sizeof(T))};
             void* outputs[] = {to + b * m * n * sizeof(T)};
             product.function(product.bound.get(), {inputs, outputs, a.workspace, a.stream});
           }
           if (result.is_identity) return;
           if (clears_output) fill_in_pieces(a.output<T>(), elements, T(0));
           result.copy.run(*a.stream, reinterpret_cast<const T*>(to), a.output<T>());
         })
      .with_workspace(workspace);
}

BoundKernel prepare(const KernelRequest& request) {
  Equation equation = parse(request.attr<std::string>("equation"), request.inputs.size());
  std::vector<Shape> shapes;
  for (const TensorSpec& input : request.inputs) shapes.push_back(input.shape);
  expand(equation, shapes);
  std::map<char, int64_t> extents = extents_of(equation, shapes);

  std::string batch, rows, columns, summed;
  int64_t b = 1, m = 1, n = 1, k = 1;
  for (const auto& [label, extent] : extents) {
    const bool in_output = equation.output.find(label) != std::string::npos;
    const bool in_first = equation.inputs[0].find(label) != std::string::npos;
    const bool in_second = equation.inputs.back().find(label) != std::string::npos;
    const bool is_single = equation.inputs.size() == 1;
    std::string& kind = !in_output                              ? summed
                        : is_single || (in_first && !in_second) ? rows
                        : in_first                              ? batch
                                                                : columns;
    (&kind == &summed ? k : &kind == &rows ? m : &kind == &columns ? n : b) *= extent;
    kind += label;
  }
  // The labels are ordered as in the output, so that its elements need not move; the summed ones as
  // in the first operand.
  const auto order_as = [](std::string& labels, const std::string& like) {
    std::sort(labels.begin(), labels.end(),
              [&](char x, char y) { return like.find(x) < like.find(y); });
  };
  for (std::string* labels : {&batch, &rows, &columns}) order_as(*labels, equation.output);
  order_as(summed, equation.inputs[0]);

  if (request.outputs[0].shape.elements() == 0) return {};
  const DType dtype = request.inputs[0].dtype;
  const size_t size = dtype_size(dtype);
  std::vector<Packing> operands;
  for (size_t i = 0; i < shapes.size(); ++i) {
    operands.push_back(packing(batch + (i == 0 ? rows + summed : summed + columns), extents,
                               strides_by_label(equation.inputs[i], shapes[i]), false, size));
  }
  const std::map<char, int64_t> out_strides =
      strides_by_label(equation.output, request.outputs[0].shape);
  Packing result = packing(batch + rows + columns, extents, out_strides, true, size);
  const bool clears = out_strides.size() < equation.output.size();  // a label appears twice
  if (clears) result.is_identity = false;

  BoundKernel product = bind_matmul(dtype, {m, n, k, false, false});
  return visit_moved(dtype, [&]<class T>(TypeTag<T>) -> BoundKernel {
    if constexpr (std::is_same_v<T, std::string>)
      fail(Code::internal, "Einsum does not support strings");
    else
      return bind<T>(request, std::move(product), b, m, n, k, std::move(operands),
                     std::move(result), clears);
  });
}

// ---- The gradient

bool has(const std::string& labels, char label) { return labels.find(label) != labels.npos; }

std::string written(const std::string& labels) {
  std::string out;
  for (const char label : labels) out += label == ellipsis ? "..." : std::string(1, label);
  return out;
}

// The gradient of operand `i` is an einsum of dy and the other operand. Labels that only this
// operand has were summed: the gradient is repeated along them, through an operand of ones.
void gradient(Gradient& g) {
  const Equation equation =
      parse(g.attr<std::string>("equation"), static_cast<size_t>(g.num_inputs()));
  for (int i = 0; i < g.num_inputs(); ++i) {
    const std::string& own = equation.inputs[i];
    const std::string other = g.num_inputs() == 2 ? equation.inputs[1 - i] : "";
    std::string lone;  // summed labels of this operand alone
    for (const char label : own) {
      if (!has(equation.output, label) && !has(other, label) && !has(lone, label)) lone += label;
    }
    Output dy = g.dy();
    std::string dy_labels = equation.output;
    if (!lone.empty()) {
      const Output ones =
          op("Einsum", {ones_like(g.x(i))}, {{"equation", written(own) + "->" + written(lone)}});
      // This counted the elements that were summed: all counts are equal and not 0, unless `ones`
      // is empty.
      const Output unit = div_no_nan(ones, ones);
      dy = op("Einsum", {dy, unit},
              {{"equation", written(dy_labels) + "," + written(lone) + "->" + written(lone) +
                                written(dy_labels)}});
      dy_labels = lone + dy_labels;
    }
    std::string wanted = own;
    const bool sums_broadcast =
        has(own, ellipsis) && (has(other, ellipsis) || has(dy_labels, ellipsis));
    std::vector<Output> inputs = {dy};
    std::string text = written(dy_labels);
    if (g.num_inputs() == 2) {
      inputs.push_back(g.x(1 - i));
      text += "," + written(other);
    }
    Output dx = op("Einsum", inputs, {{"equation", text + "->" + written(wanted)}});
    if (sums_broadcast && g.num_inputs() == 2) {
      // Axes of the ellipsis that were broadcast are summed. If the ellipsis does not come first,
      // they are moved to the front for that.
      const std::string front = std::string(1, ellipsis);
      std::string named = own;
      named.erase(named.find(ellipsis), 1);
      const std::string to_front = written(own) + "->..." + named;
      const std::string back = "..." + named + "->" + written(own);
      const Output x_moved = op("Einsum", {g.x(i)}, {{"equation", to_front}});
      const Output dx_moved = op("Einsum", {dx}, {{"equation", to_front}});
      dx = op("Einsum", {sum_to_shape_of(x_moved, dx_moved, dx_moved)}, {{"equation", back}});
    }
    g.dx(i) = dx;
  }
}

const Op einsum_op{{
    .name = "Einsum",
    .doc =
        "output[j…] = the sum over all labels that the output does not have of the product of "
        "the inputs, as the equation labels their axes: \"ij,jk->ik\" is a matrix product. \"...\" "
        "stands for axes that are broadcast.",
    .inputs = {"inputs: N * T"},
    .outputs = {"output: T"},
    .attrs = {"equation: string", "N: int >= 1", "T: type"},
    .shape = infer,
    .gradient = gradient,
    .kernels = {{.device = DeviceType::cpu,
                 .types = {{"T", MatMulTypes::list()}},
                 .prepare = prepare}},
    .examples = {{.inputs = {floats({2, 2}, {1, 2, 3, 4}), floats({2, 2}, {5, 6, 7, 8})},
                  .attrs = {{"equation", "ij,jk->ki"}},
                  .outputs = {floats({2, 2}, {19, 43, 22, 50})}},
                 {.inputs = {floats({2, 2}, {1, 2, 3, 4})},
                  .attrs = {{"equation", "ii->"}},
                  .outputs = {Tensor::scalar(5.0f)}}},
}};

}  // namespace
}  // namespace leat
