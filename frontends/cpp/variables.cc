#include "frontends/cpp/variables.h"

#include <cmath>

namespace leat {
namespace {

Output extents(Graph& graph, const Shape& shape, Location at) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  return constant(graph, Tensor::of<int64_t>({shape.rank()}, std::span<const int64_t>(dims)),
                  "shape", at);
}

// What is made while it lives does not wait for the steps around it.
class OutsideControlScopes {
 public:
  explicit OutsideControlScopes(Graph& graph) : graph_(graph) {
    graph.scopes().control_inputs.swap(outer_);
  }
  ~OutsideControlScopes() { graph_.scopes().control_inputs.swap(outer_); }
  OutsideControlScopes(const OutsideControlScopes&) = delete;

 private:
  Graph& graph_;
  std::vector<Node*> outer_;
};

// A constant whose value repeats over the whole shape, without storing it: Fill of a scalar.
Output filled(Graph& graph, DType dtype, const Shape& shape, double value, Location at) {
  Tensor scalar(dtype, {});
  const bool is_number = visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, std::string>) *scalar.data<T>() = static_cast<T>(value);
  });
  check(is_number && dtype != DType::string, "a variable of dtype ", dtype,
        " cannot be filled with a number");
  return op("Fill", {extents(graph, shape, at), constant(graph, scalar, "value", at)}, {}, at);
}

Output random(Graph& graph, std::string_view op_name, DType dtype, const Shape& shape,
              int64_t seed) {
  // (0, 0) asks for a seed that differs at each run; any other pair is reproducible.
  AttrMap attrs{{"dtype", dtype}, {"seed", seed}, {"seed2", int64_t{0}}};
  return op(op_name, {extents(graph, shape, here())}, std::move(attrs));
}

Output scaled(Output x, double factor) { return factor == 1.0 ? x : x * factor; }

// fan_in and fan_out of a kernel: [in, out], or [spatial…, in, out].
std::pair<double, double> fans(const Shape& shape) {
  check(shape.rank() >= 2,
        "an initialiser that looks at fan-in and fan-out needs rank 2 or more, got ", shape);
  double receptive = 1;
  for (int axis = 0; axis < shape.rank() - 2; ++axis) receptive *= static_cast<double>(shape[axis]);
  return {receptive * static_cast<double>(shape[shape.rank() - 2]),
          receptive * static_cast<double>(shape[shape.rank() - 1])};
}

// What a variable that is about to be made is a copy of; none if its name has no copy root.
Output original_of(Graph& graph, std::string_view name, const Shape& shape, DType dtype) {
  const std::string full = graph.unique_name(concat(graph.scopes().name, name));
  const std::string_view root = copy_root_of(graph, full);
  if (root.empty()) return {};
  const std::string_view original = std::string_view(full).substr(root.size());
  Node* found = graph.find(original);
  check(found != nullptr && found->is("VariableV2"), "the variable '", full,
        "' is to be a copy of '", original, "', which does not exist: every replica must make the ",
        "variables that replica 0 has, by the same names, and after it");
  const OutputSpec& spec = found->outputs[0];
  check(spec.dtype == dtype && spec.shape == shape, "the variable '", full, "' is ", dtype, shape,
        ", but '", original, "', of which it is to be a copy, is ", spec.dtype, spec.shape);
  return found->output();
}

// The Assign that gives a variable its first value.
Node* initializer_of(const Graph& graph, const Output& variable) {
  for (const Output& assign : graph.collection("initializers")) {
    if (assign.node->inputs[0] == variable) return assign.node;
  }
  fail(Code::invalid_argument, "the variable '", variable.node->name,
       "' has no initialiser: make it with variable()");
}

}  // namespace

namespace initializers {

Initializer zeros() { return constant(0.0); }
Initializer ones() { return constant(1.0); }

Initializer constant(double value) {
  return [value](Graph& graph, DType dtype, const Shape& shape) {
    return filled(graph, dtype, shape, value, here());
  };
}

Initializer constant(Tensor value) {
  return [value](Graph& graph, DType dtype, const Shape& shape) {
    check(value.dtype() == dtype && value.shape() == shape, "the initial value is ", value.dtype(),
          value.shape(), " but the variable is ", dtype, shape);
    return leat::constant(graph, value, "value");
  };
}

Initializer value_of(Output variable) {
  return [variable](Graph& graph, DType dtype, const Shape& shape) {
    check(variable.dtype() == dtype && variable.shape() == shape, "'", variable.name(), "' is ",
          variable.dtype(), variable.shape(), ", but what is to begin with its value is ", dtype,
          shape);
    return identity(initializer_of(graph, variable)->output());
  };
}

Initializer truncated_normal(double stddev, int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    return scaled(random(graph, "TruncatedNormal", dtype, shape, seed), stddev);
  };
}

Initializer random_uniform(double low, double high, int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    return scaled(random(graph, "RandomUniform", dtype, shape, seed), high - low) + low;
  };
}

Initializer glorot_uniform(int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    const auto [in, out] = fans(shape);
    const double limit = std::sqrt(6.0 / (in + out));
    return random_uniform(-limit, limit, seed)(graph, dtype, shape);
  };
}

Initializer he_normal(int64_t seed) {
  return [=](Graph& graph, DType dtype, const Shape& shape) {
    return truncated_normal(std::sqrt(2.0 / fans(shape).first), seed)(graph, dtype, shape);
  };
}

}  // namespace initializers

Output variable(Graph& graph, std::string_view name, const Shape& shape, const Initializer& initial,
                DType dtype, const VariableOptions& options, Location at) {
  check(shape.is_complete(), "variable '", name, "' (", at, ") needs a complete shape, got ",
        shape);
  check(initial != nullptr, "variable '", name, "' (", at, ") has an empty initialiser");
  // The variable, and what runs before any step, do not wait for a step: also in a loop's body.
  const OutsideControlScopes outside(graph);
  const Output original = original_of(graph, name, shape, dtype);
  Node& node = graph.add({.op = "VariableV2",
                          .name = std::string(name),
                          .inputs = {},
                          .attrs = {{"shape", shape},
                                    {"dtype", dtype},
                                    {"container", options.container},
                                    {"shared_name", options.shared_name}},
                          .control_inputs = {},
                          .location = at});
  const Output ref = node.output();
  // The initialiser runs where the variable lives.
  const NameScope scope(graph, node.name.substr(graph.scopes().name.size()) + "/initial");
  const ColocationScope with(graph, {ref});
  NodeSpec assign{.op = "Assign", .name = "Assign", .inputs = {ref}, .location = at};
  if (original) {
    assign.inputs.push_back(original);
    assign.control_inputs = {initializer_of(graph, original)};
  } else {
    assign.inputs.push_back(initial(graph, dtype, shape));
  }
  const Output initialized = graph.add(std::move(assign)).output();
  graph.add_to_collection("initializers", initialized);
  if (original) {
    graph.add_to_collection("copy_initializers", initialized);
    return ref;
  }
  graph.add_to_collection("variables", ref);
  if (options.trainable) graph.add_to_collection("trainable_variables", ref);
  return ref;
}

void add_copy_root(Graph& graph, Node& root) {
  graph.add_to_collection("copy_roots", root.output());
}

std::string_view copy_root_of(const Graph& graph, std::string_view name) {
  for (const Output& root : graph.collection("copy_roots")) {
    const std::string& marker = root.node->name;
    if (name.starts_with(marker) && name.substr(marker.size()).starts_with('/'))
      return name.substr(0, marker.size() + 1);
  }
  return {};
}

Node& initialize_variables(Graph& graph, Location at) {
  return group(graph, graph.collection("initializers"), "initialize_variables", at);
}

Node& group(Graph& graph, const std::vector<Output>& after, std::string_view name, Location at) {
  std::vector<Node*> nodes;
  for (const Output& output : after) nodes.push_back(output.node);
  return graph.add({.op = "NoOp",
                    .name = std::string(name),
                    .inputs = {},
                    .attrs = {},
                    .control_inputs = std::move(nodes),
                    .location = at});
}

}  // namespace leat
