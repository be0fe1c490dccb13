#include "frontends/cpp/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/visit_dtype.h"
#include "frontends/cpp/data/dataset_builder.h"

namespace leat {

Output Batch::operator[](int i) const {
  check(i >= 0 && i < size(), "batch[", i, "]: the batch has ", size(),
        size() == 1 ? " component" : " components");
  return components_[static_cast<size_t>(i)];
}

Output Batch::operator[](std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end() || name.empty()) {
    std::string known;
    for (const std::string& other : names_) {
      if (!other.empty()) known += concat(known.empty() ? "" : ", ", "'", other, "'");
    }
    fail(Code::not_found, "the batch has no component '", name, "'; it has ",
         known.empty() ? concat(size(), size() == 1 ? " component" : " components",
                                " without names: Dataset::named() gives them some")
                       : known);
  }
  return components_[static_cast<size_t>(found - names_.begin())];
}

Dataset Dataset::named(std::vector<std::string> names, Location at) const {
  check(names.size() == components_.size(), "named (", at, "): ", names.size(), " names for ",
        components_.size(), " components");
  Dataset out = *this;
  for (size_t i = 0; i < names.size(); ++i) out.components_[i].name = std::move(names[i]);
  return out;
}

void Dataset::check_arity(int taken, Location at) const {
  const size_t has = components_.size();
  check(taken == static_cast<int>(has), "a function of a dataset (", at, ") takes ", taken,
        taken == 1 ? " Output, but elements have " : " Outputs, but elements have ", has,
        has == 1 ? " component" : " components");
}

// ---- Which elements, in which order ----

Dataset Dataset::shuffle(int64_t buffer, int64_t seed, const ShuffleOptions& options,
                         Location at) const {
  check(buffer > 0, "shuffle (", at, "): the buffer must hold at least one element, got ", buffer);
  DatasetBuilder build(*this, "shuffle", at);
  return build.add("ShuffleDataset",
                   {build.input(), build.number(buffer), build.number(seed), build.number(0)},
                   {{"reshuffle_each_iteration", options.reshuffle}});
}

Dataset Dataset::repeat(int64_t count, Location at) const {
  DatasetBuilder build(*this, "repeat", at);
  return build.add("RepeatDataset", {build.input(), build.number(count)});
}

Dataset Dataset::take(int64_t count, Location at) const {
  DatasetBuilder build(*this, "take", at);
  return build.add("TakeDataset", {build.input(), build.number(count)});
}

Dataset Dataset::skip(int64_t count, Location at) const {
  DatasetBuilder build(*this, "skip", at);
  return build.add("SkipDataset", {build.input(), build.number(count)});
}

Dataset Dataset::shard(int64_t count, int64_t index, Location at) const {
  check(count > 0 && index >= 0 && index < count, "shard (", at, "): there is no shard ", index,
        " of ", count);
  DatasetBuilder build(*this, "shard", at);
  return build.add("ShardDataset", {build.input(), build.number(count), build.number(index)});
}

Dataset Dataset::share(int64_t count, int64_t index, Location at) const {
  check(count > 0 && index >= 0 && index < count, "share (", at, "): there is no share ", index,
        " of ", count);
  if (count == 1) return *this;
  // These change every element, or their order, but not which there are.
  static const std::set<std::string_view> one_by_one = {
      "BatchDatasetV2",       "CacheDataset",    "FilterDataset", "MapDataset",
      "PaddedBatchDatasetV2", "PrefetchDataset", "RepeatDataset", "ShuffleDataset"};
  std::vector<const Node*> behind;
  Output source = variant_;
  const auto is_cached_in_a_file = [](const Node& node) {
    return node.is("CacheDataset") &&
           !node.inputs[1].node->attr<Tensor>("value").item<std::string>().empty();
  };
  // A file has all elements, whoever writes it.
  while (one_by_one.contains(source.node->op->name) && !is_cached_in_a_file(*source.node)) {
    behind.push_back(source.node);
    source = source.node->inputs[0];
  }
  DatasetBuilder build(*this, "shard", at);
  const auto types = [&] {
    const AttrMap& attrs = source.node->attrs;
    const auto found = attrs.find("output_types");
    return (found != attrs.end() ? found : attrs.find("Toutput_types"))->second;
  }();
  Output made =
      graph_
          ->add({.op = "ShardDataset",
                 .name = "shard",
                 .inputs = {source, build.number(count), build.number(index)},
                 .attrs = {{"output_types", types},
                           {"output_shapes", source.node->attrs.find("output_shapes")->second}},
                 .location = at})
          .output();
  for (; !behind.empty(); behind.pop_back()) {
    const Node& node = *behind.back();
    std::vector<Output> inputs = node.inputs;
    inputs[0] = made;
    made = graph_
               ->add({.op = node.op->name,
                      .name = "shared",
                      .inputs = std::move(inputs),
                      .attrs = node.attrs,
                      .location = node.location})
               .output();
  }
  return {graph_, made, components_};
}

Dataset Dataset::concatenate(const Dataset& other, Location at) const {
  check(other.components_.size() == components_.size(), "concatenate (", at, "): elements have ",
        components_.size(), " components, but those of the other dataset have ",
        other.components_.size());
  std::vector<Component> both = components_;
  for (size_t i = 0; i < both.size(); ++i) {
    const Component& there = other.components_[i];
    check(both[i].dtype == there.dtype, "concatenate (", at, "): component ", i, " is ",
          both[i].dtype, ", and ", there.dtype, " in the other dataset");
    both[i].shape = common(both[i].shape, there.shape);
  }
  DatasetBuilder build(*this, "concatenate", at);
  const Output second = build.taken_over(other);
  build.set_components(std::move(both));
  return build.add("ConcatenateDataset", {build.input(), second});
}

// ---- What becomes of them ----

Dataset Dataset::mapped(const Tracer& f, Location at) const {
  DatasetBuilder build(*this, "map", at);
  const TracedFunction function = build.trace(f);
  std::vector<Component> made;
  for (const Output& result : function.results)
    made.push_back({"", result.dtype(), result.shape()});
  if (made.size() == components_.size()) {
    for (size_t i = 0; i < made.size(); ++i) made[i].name = components_[i].name;
  }
  build.set_components(std::move(made));
  return build.add("MapDataset", {build.input()},
                   build.with_function("f", function, {{"preserve_cardinality", true}}));
}

Dataset Dataset::filtered(const Tracer& predicate, Location at) const {
  DatasetBuilder build(*this, "filter", at);
  const TracedFunction function = build.trace(predicate);
  check(function.results.size() == 1 && function.results[0].dtype() == DType::boolean &&
            Shape{}.is_compatible(function.results[0].shape()),
        "filter (", at, "): the predicate must give a scalar bool, not ",
        function.results.empty() ? DType::invalid : function.results[0].dtype(),
        function.results.empty() ? Shape{} : function.results[0].shape());
  return build.add("FilterDataset", {build.input()}, build.with_function("predicate", function));
}

Dataset Dataset::interleaved(const DatasetTracer& f, const InterleaveOptions& options,
                             Location at) const {
  check(options.cycle_length > 0 && options.block_length > 0, "interleave (", at,
        "): cycle_length and block_length must be positive, got ", options.cycle_length, " and ",
        options.block_length);
  DatasetBuilder build(*this, "interleave", at);
  std::vector<Component> components;
  const TracedFunction function = build.trace_dataset(f, components);
  build.set_components(std::move(components));
  return build.add(
      "InterleaveDataset",
      {build.input(), build.number(options.cycle_length), build.number(options.block_length)},
      build.with_function("f", function));
}

namespace {

Tensor zero_of(DType dtype) {
  Tensor out(dtype, {});
  if (dtype != DType::string) std::memset(out.raw(), 0, out.bytes());
  return out;
}

// A number as it is written, as a scalar of that dtype.
Tensor scalar_of(const Literal& literal, DType dtype, Location at) {
  Tensor value = literal.tensor(at);
  if (value.dtype() == dtype) return value;
  check(value.elements() == 1 && value.dtype() != DType::string && dtype != DType::string,
        "padded_batch (", at, "): the padding value ", value.dtype(), value.shape(),
        " does not fit a component of dtype ", dtype);
  double number = 0;
  visit_dtype(value.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_convertible_v<T, double>) number = static_cast<double>(*value.data<T>());
  });
  Tensor out(dtype, {});
  visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_arithmetic_v<T> || std::is_constructible_v<T, float>)
      *out.data<T>() = static_cast<T>(number);
  });
  return out;
}

std::vector<Component> in_batches(std::vector<Component> components, int64_t size) {
  for (Component& component : components) {
    if (!component.shape.has_rank()) continue;
    Shape shape{size};
    for (const int64_t extent : component.shape.dims()) shape.push_back(extent);
    component.shape = shape;
  }
  return components;
}

}  // namespace

Dataset Dataset::batch(int64_t size, const BatchOptions& options, Location at) const {
  check(size > 0, "batch (", at, "): the size must be positive, got ", size);
  DatasetBuilder build(*this, "batch", at);
  build.set_components(in_batches(components_, options.drop_remainder ? size : int64_t{any}));
  return build.add("BatchDatasetV2",
                   {build.input(), build.number(size), build.boolean(options.drop_remainder)});
}

Dataset Dataset::padded_batch(int64_t size, const PaddedBatchOptions& options, Location at) const {
  check(size > 0, "padded_batch (", at, "): the size must be positive, got ", size);
  const size_t count = components_.size();
  check(options.shapes.empty() || options.shapes.size() == count, "padded_batch (", at,
        "): ", options.shapes.size(), " shapes for ", count, " components");
  check(options.values.empty() || options.values.size() == count, "padded_batch (", at,
        "): ", options.values.size(), " values for ", count, " components");
  DatasetBuilder build(*this, "padded_batch", at);
  std::vector<Component> padded = components_;
  std::vector<Output> inputs = {build.input(), build.number(size)};
  for (size_t i = 0; i < count; ++i) {
    const Shape& shape = options.shapes.empty() ? components_[i].shape : options.shapes[i];
    check(shape.has_rank(), "padded_batch (", at, "): the rank of component ", i,
          " is not known; give its shape");
    padded[i].shape = shape;
    inputs.push_back(build.numbers({shape.dims().begin(), shape.dims().end()}));
  }
  for (size_t i = 0; i < count; ++i) {
    inputs.push_back(build.value(options.values.empty()
                                     ? zero_of(components_[i].dtype)
                                     : scalar_of(options.values[i], components_[i].dtype, at)));
  }
  inputs.push_back(build.boolean(options.drop_remainder));
  build.set_components(in_batches(padded, options.drop_remainder ? size : int64_t{any}));
  return build.add("PaddedBatchDatasetV2", inputs, {{"N", static_cast<int64_t>(count)}});
}

// ---- How they are read ----

Dataset Dataset::cache(std::string_view file, Location at) const {
  DatasetBuilder build(*this, "cache", at);
  return build.add("CacheDataset", {build.input(), build.text(std::string(file))});
}

Dataset Dataset::prefetch(int64_t count, Location at) const {
  check(count >= 0, "prefetch (", at, "): the number of elements must not be negative, got ",
        count);
  DatasetBuilder build(*this, "prefetch", at);
  return build.add("PrefetchDataset", {build.input(), build.number(count)});
}

Batch Dataset::next(Graph& graph, Location at) const {
  return DatasetBuilder(*this, "dataset", at).next(graph);
}

}  // namespace leat
