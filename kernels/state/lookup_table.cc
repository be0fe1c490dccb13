#include "kernels/state/lookup_table.h"

#include <algorithm>

#include "kernels/state/dense_table.h"
#include "kernels/state/map_table.h"

namespace leat {
namespace {

// MutableDenseHashTable gives its key shape by an example.
Shape key_shape_of(const NodeView& node) {
  return node.has("empty_key") ? node.attr<Tensor>("empty_key").shape() : Shape();
}

}  // namespace

LookupTable::Options LookupTable::Options::of(const NodeView& node) {
  Options out{.kind = std::string(node.op),
              .keys = node.attr<DType>("key_dtype"),
              .values = node.attr<DType>("value_dtype"),
              .key_shape = key_shape_of(node)};
  if (out.kind.ends_with("V2")) out.kind.resize(out.kind.size() - 2);
  if (node.has("value_shape")) out.value_shape = node.attr<Shape>("value_shape");
  check(out.value_shape.is_complete() && out.value_shape.rank() <= 1,
        "Default value must be a vector, got shape ", out.value_shape);
  return out;
}

LookupTable::LookupTable(std::string name, Options options)
    : Resource(std::move(name)), options_(std::move(options)) {}

void LookupTable::check_fits(const NodeView& node) const {
  const Options wanted = Options::of(node);
  check(wanted.keys == options_.keys && wanted.values == options_.values &&
            wanted.kind == options_.kind && wanted.value_shape == options_.value_shape,
        "Conflicting key/value dtypes: the table '", name(), "' is a ", options_.kind, " of ",
        options_.keys, " -> ", options_.values, options_.value_shape, "; node '", node.name,
        "' expects a ", wanted.kind, " of ", wanted.keys, " -> ", wanted.values,
        wanted.value_shape);
}

void LookupTable::initialize(const Tensor&, const Tensor&) {
  fail(Code::invalid_argument, "Table ", name(), " is not initializable: it is a ", options_.kind);
}

void LookupTable::check_keys(const Tensor& keys) const {
  check(keys.dtype() == options_.keys, "Key must be type ", options_.keys, " but got ",
        keys.dtype(), " (", options_.kind, " '", name(), "')");
  const std::span<const int64_t> all = keys.shape().dims(), one = options_.key_shape.dims();
  check(all.size() >= one.size() && std::ranges::equal(all.last(one.size()), one),
        "Input key shape ", keys.shape(), " must end with the table's key shape ",
        options_.key_shape);
}

void LookupTable::check_entries(const Tensor& keys, const Tensor& values) const {
  check_keys(keys);
  check(values.dtype() == options_.values, "Value must be type ", options_.values, " but got ",
        values.dtype(), " (", options_.kind, " '", name(), "')");
  const Shape expected = shape_of_values(keys.shape());
  check(values.shape() == expected, "Expected shape ", expected, " for value, got ",
        values.shape());
}

void LookupTable::check_default(const Tensor& keys, const Tensor& default_value) const {
  check_keys(keys);
  check(default_value.dtype() == options_.values, "Default value must be type ", options_.values,
        " but got ", default_value.dtype(), " (", options_.kind, " '", name(), "')");
  const Shape shape = shape_of_values(keys.shape());
  check(default_value.shape() == options_.value_shape || default_value.shape() == shape,
        "Expected shape ", options_.value_shape, " or ", shape, " for default value, got ",
        default_value.shape());
}

Shape LookupTable::shape_of_values(const Shape& keys) const {
  Shape out(keys.dims().first(keys.dims().size() - options_.key_shape.dims().size()));
  for (const int64_t extent : options_.value_shape.dims()) out.push_back(extent);
  return out;
}

std::shared_ptr<LookupTable> make_lookup_table(const NodeView& node) {
  LookupTable::Options options = LookupTable::Options::of(node);
  if (options.kind == "MutableDenseHashTable") {
    if (!node.has("empty_key") || !node.has("deleted_key"))
      fail(Code::unimplemented, "empty_key and deleted_key must be constants");
    return std::make_shared<DenseTable>(resource_name(node), std::move(options), node);
  }
  return std::make_shared<MapTable>(resource_name(node), std::move(options));
}

}  // namespace leat
