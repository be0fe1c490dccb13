// Einsum: sums of products over labelled axes (einsum_plan.h).
#include <algorithm>
#include <string>
#include <utility>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/broadcast_gradient.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/linear_algebra/einsum_plan.h"
#include "kernels/linear_algebra/matmul.h"
#include "kernels/pieces.h"

namespace leat {
namespace {

constexpr char ellipsis = Equation::ellipsis;

Shape output_shape(const Equation& equation, std::map<char, int64_t>& extents) {
  Shape out;
  for (const char label : equation.output) out.push_back(extents.at(label));
  return out;
}

void infer(ShapeContext& c) {
  Equation equation = Equation::parse(c.attr<std::string>("equation"), c.num_inputs());
  std::vector<Shape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  if (!equation.expand(shapes)) return c.set_output(0, Shape::unknown());
  std::map<char, int64_t> extents = equation.extents(shapes);
  c.set_output(0, output_shape(equation, extents));
}

// ---- The kernel

template <class T>
BoundKernel bind(const KernelRequest& request, BoundKernel product, EinsumPlan plan) {
  size_t workspace = (product.workspace_bytes + 63) / 64 * 64;
  const auto place = [&](size_t bytes) { return std::exchange(workspace, workspace + bytes); };
  std::vector<size_t> packed;
  for (const EinsumPlan::Packing& operand : plan.operands)
    packed.push_back(place(operand.is_identity ? 0 : operand.bytes));
  if (plan.operands.size() == 1)
    packed.push_back(place((static_cast<size_t>(plan.k) * sizeof(T) + 63) / 64 * 64));  // ones
  const size_t unpacked = place(plan.result.is_identity ? 0 : plan.result.bytes);
  const DType dtype = request.inputs[0].dtype;
  return BoundKernel::of([=, elements = request.outputs[0].shape.elements(), plan = std::move(plan),
                          product = std::move(product)](const Arguments& a) {
           const auto& [batches, m, n, k, operands, result, clears_output] = plan;
           const bool is_single = operands.size() == 1;
           char* space = static_cast<char*>(a.workspace);
           char* sides[2] = {space + packed[0], space + packed[1]};
           for (size_t i = 0; i < operands.size(); ++i) {
             const T* const operand = a.input<T>(static_cast<int>(i));
             if (operands[i].is_identity)
               sides[i] = static_cast<char*>(a.inputs[i]);
             else
               operands[i].copy.run(*a.stream, operand, reinterpret_cast<T*>(sides[i]));
           }
           if (is_single) {
             visit_type(MatMulTypes{}, dtype, [&, count = k](auto tag) {
               using E = typename decltype(tag)::type;
               std::fill_n(reinterpret_cast<E*>(sides[1]), count, E(1));
               return 0;
             });
           }
           char* to = result.is_identity ? a.output<char>() : space + unpacked;
           for (int64_t b = 0; b < batches; ++b) {
             StepEnd::ask();
             void* inputs[] = {sides[0] + b * m * k * sizeof(T),
                               sides[1] + (is_single ? 0 : b * k * n * sizeof(T))};
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
  EinsumPlan plan = plan_einsum(request);
  if (request.outputs[0].shape.elements() == 0) return {};
  const DType dtype = request.inputs[0].dtype;
  BoundKernel product = bind_matmul(dtype, {plan.m, plan.n, plan.k, false, false});
  return visit_moved(dtype, [&]<class T>(TypeTag<T>) -> BoundKernel {
    if constexpr (std::is_same_v<T, std::string>)
      fail(Code::internal, "Einsum does not support strings");
    else
      return bind<T>(request, std::move(product), std::move(plan));
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
      Equation::parse(g.attr<std::string>("equation"), static_cast<size_t>(g.num_inputs()));
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
