#include "kernels/linear_algebra/einsum_plan.h"

#include <algorithm>

#include "kernels/extents.h"

namespace leat {
namespace {

constexpr char ellipsis = Equation::ellipsis;

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

}  // namespace

Equation Equation::parse(const std::string& text, size_t num_inputs) {
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

bool Equation::expand(const std::vector<Shape>& shapes) {
  std::vector<int> ranks;
  int widest = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& labels = inputs[i];
    const bool has_ellipsis = labels.find(ellipsis) != labels.npos;
    if (!shapes[i].has_rank()) return false;
    const int named = static_cast<int>(labels.size()) - has_ellipsis;
    check(has_ellipsis ? shapes[i].rank() >= named : shapes[i].rank() == named, "Expected input ",
          i, " to have rank ", has_ellipsis ? "at least " : "", named, " but got shape ",
          shapes[i]);
    ranks.push_back(shapes[i].rank() - named);
    widest = std::max(widest, ranks.back());
  }
  for (size_t i = 0; i < shapes.size(); ++i) inputs[i] = expanded(inputs[i], ranks[i], widest);
  output = expanded(output, widest, widest);
  return true;
}

std::map<char, int64_t> Equation::extents(const std::vector<Shape>& shapes) const {
  std::map<char, int64_t> out;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (int axis = 0; axis < shapes[i].rank(); ++axis) {
      const char label = inputs[i][axis];
      const int64_t extent = shapes[i][axis];
      const auto [at, is_new] = out.try_emplace(label, extent);
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
  return out;
}

namespace {

// The steps in a tensor's memory along each label: a label that appears twice is a diagonal, an
// axis that is broadcast has step 0.
std::map<char, int64_t> strides_by_label(const std::string& labels, const Shape& shape) {
  std::map<char, int64_t> out;
  const std::vector<int64_t> strides = strides_of(shape);
  for (int axis = 0; axis < shape.rank(); ++axis)
    out[labels[axis]] += shape[axis] == 1 ? 0 : strides[axis];
  return out;
}

// Between a tensor whose steps are `strides` and the dense order of `labels`.
EinsumPlan::Packing packing(const std::string& labels, const std::map<char, int64_t>& extents,
                            const std::map<char, int64_t>& strides, bool unpacks, size_t size) {
  EinsumPlan::Packing out;
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

}  // namespace

EinsumPlan plan_einsum(const KernelRequest& request) {
  Equation equation = Equation::parse(request.attr<std::string>("equation"), request.inputs.size());
  std::vector<Shape> shapes;
  for (const TensorSpec& input : request.inputs) shapes.push_back(input.shape);
  equation.expand(shapes);
  const std::map<char, int64_t> extents = equation.extents(shapes);

  std::string batch, rows, columns, summed;
  EinsumPlan plan;
  for (const auto& [label, extent] : extents) {
    const bool in_output = equation.output.find(label) != std::string::npos;
    const bool in_first = equation.inputs[0].find(label) != std::string::npos;
    const bool in_second = equation.inputs.back().find(label) != std::string::npos;
    const bool is_single = equation.inputs.size() == 1;
    std::string& kind = !in_output                              ? summed
                        : is_single || (in_first && !in_second) ? rows
                        : in_first                              ? batch
                                                                : columns;
    (&kind == &summed    ? plan.k
     : &kind == &rows    ? plan.m
     : &kind == &columns ? plan.n
                         : plan.batches) *= extent;
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

  const size_t size = dtype_size(request.inputs[0].dtype);
  for (size_t i = 0; i < shapes.size(); ++i) {
    plan.operands.push_back(packing(batch + (i == 0 ? rows + summed : summed + columns), extents,
                                    strides_by_label(equation.inputs[i], shapes[i]), false, size));
  }
  const std::map<char, int64_t> out_strides =
      strides_by_label(equation.output, request.outputs[0].shape);
  plan.result = packing(batch + rows + columns, extents, out_strides, true, size);
  plan.clears_output = out_strides.size() < equation.output.size();
  if (plan.clears_output) plan.result.is_identity = false;
  return plan;
}

}  // namespace leat
