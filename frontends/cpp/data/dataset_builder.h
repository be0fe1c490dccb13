// Builds datasets: their nodes are in a graph of their own, which becomes the function that makes
// the dataset when a program calls next().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/cpp/data/dataset.h"

namespace leat {

// A C++ function traced on placeholders for the components, in a graph of its own.
struct TracedFunction {
  std::shared_ptr<Graph> graph;
  int arguments;
  std::vector<Output> results;
};

// Makes one node, in the graph of a dataset or in a new one.
class DatasetBuilder {
 public:
  DatasetBuilder(const Dataset& input, std::string_view name, Location at);
  DatasetBuilder(std::string_view name, Location at);
  // In the graph of that value, which a function that is being traced has.
  DatasetBuilder(const Output& value, std::string_view name, Location at);
  // In the graph that has the list of files, if that is an Output.
  DatasetBuilder(const datasets::Files& files, std::string_view name, Location at);

  Graph& graph() const { return *graph_; }
  Output input() const { return input_; }
  Output value(Tensor value) const;
  Output number(int64_t value) const { return this->value(Tensor::scalar(value)); }
  Output numbers(const std::vector<int64_t>& values) const;
  Output boolean(bool value) const { return this->value(Tensor::scalar(value)); }
  Output text(std::string value) const { return this->value(Tensor::scalar(std::move(value))); }
  Output paths(const datasets::Files& files) const;
  // The dataset, as a node of this graph.
  Output taken_over(const Dataset& other) const;

  // The components of the new dataset, if they are not those of the input.
  void set_components(std::vector<Component> components) { components_ = std::move(components); }
  Dataset add(std::string_view op, const std::vector<Output>& inputs, AttrMap attrs = {}) const;

  TracedFunction trace(
      const std::function<std::vector<Operand>(const std::vector<Output>&)>& f) const;
  // `f` returns a dataset; `components` receives its components.
  TracedFunction trace_dataset(const std::function<Dataset(const std::vector<Output>&)>& f,
                               std::vector<Component>& components) const;
  AttrMap with_function(std::string_view attr, const TracedFunction& function,
                        AttrMap attrs = {}) const;

  Batch next(Graph& graph) const;

 private:
  TracedFunction arguments_of() const;
  // The result of a function that returns the dataset.
  Output result(const Dataset& dataset) const;

  const std::string name_;
  const Location at_;
  std::shared_ptr<Graph> graph_;
  Output input_;
  std::vector<Component> components_;
};

// The extents that both shapes have in common; the others are unknown.
Shape common(const Shape& a, const Shape& b);

}  // namespace leat
