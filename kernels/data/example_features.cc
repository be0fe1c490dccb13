#include "kernels/data/example_features.h"

#include "graph/formats/example.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/row_splits.h"

namespace leat {
namespace {

using FeatureTypes = Types<float, int64_t, std::string>;
using Records = std::vector<Features>;

template <class T>
const std::vector<T>& values_of(const Feature& feature, const std::string& key) {
  const auto* values = std::get_if<std::vector<T>>(&feature);
  check(values != nullptr, "Key: ", key, ".  Data types don't match. Expected type: ", dtype_of<T>);
  return *values;
}

// The feature, unless the record has none of that name.
const Feature* find(const Features& features, const std::string& key) {
  const auto at = features.find(key);
  if (at == features.end() || std::holds_alternative<std::monostate>(at->second)) return nullptr;
  return &at->second;
}

template <class T>
SparseValue sparse_feature(const std::string& key, const Records& records, bool is_batch) {
  std::vector<int64_t> indices;
  std::vector<T> values;
  int64_t longest = 0;
  for (size_t row = 0; row < records.size(); ++row) {
    const Feature* feature = find(records[row], key);
    if (feature == nullptr) continue;
    const std::vector<T>& list = values_of<T>(*feature, key);
    longest = std::max(longest, static_cast<int64_t>(list.size()));
    for (size_t j = 0; j < list.size(); ++j) {
      if (is_batch) indices.push_back(static_cast<int64_t>(row));
      indices.push_back(static_cast<int64_t>(j));
    }
    values.insert(values.end(), list.begin(), list.end());
  }
  const auto count = static_cast<int64_t>(values.size());
  return {Tensor::of<int64_t>({count, is_batch ? 2 : 1}, std::span<const int64_t>(indices)),
          Tensor::of<T>({count}, std::span<const T>(values)),
          is_batch ? Tensor::of<int64_t>({2}, {static_cast<int64_t>(records.size()), longest})
                   : Tensor::of<int64_t>({1}, {longest})};
}

// The record and the feature that a message is about.
std::string name_of(const WantedFeatures& wanted, size_t row) {
  return row < wanted.names.size() ? wanted.names[row] : "<unknown>";
}
std::string place(const WantedFeatures& wanted, size_t row, const std::string& key) {
  if (!wanted.is_batch) return concat("Key: ", key, ".  ");
  return concat("Name: ", name_of(wanted, row), ", Key: ", key, ", Index: ", row, ".  ");
}

// A dense feature whose shape begins with an unknown extent has as many rows as the longest record,
// padded with the single default.
template <class T>
Tensor dense_feature(const WantedFeatures& wanted, int i, const Records& records) {
  const std::string& key = wanted.dense_keys[i];
  const Tensor& defaults = wanted.dense_defaults[i];
  Shape shape = wanted.dense_shapes[i];
  const bool is_ragged = shape.rank() > 0 && shape[0] == any;
  check(is_ragged ? defaults.elements() == 1
                  : defaults.elements() == 0 || shape.is_compatible(defaults.shape()),
        "the default of dense feature ", key, " has shape ", defaults.shape(),
        ", which does not fit its dense shape ", shape,
        " (if the first extent is unknown, the default has one element)");
  Shape shape_of_one = shape;
  if (is_ragged) shape_of_one.set(0, 1);
  const auto stride = static_cast<size_t>(shape_of_one.elements());  // may be 0
  std::vector<const std::vector<T>*> lists;
  size_t longest = 0;
  for (const Features& record : records) {
    const Feature* feature = find(record, key);
    lists.push_back(feature == nullptr ? nullptr : &values_of<T>(*feature, key));
    if (feature == nullptr) continue;
    const size_t given = lists.back()->size();
    if (is_ragged && given > 0 && (stride == 0 || given % stride != 0)) {
      fail(Code::invalid_argument, place(wanted, lists.size() - 1, key), "Number of ", dtype_of<T>,
           " values is not a multiple of stride length.  Saw ", given,
           " values but output shape is: ", shape);
    }
    longest = std::max(longest, given);
  }
  if (is_ragged) shape.set(0, static_cast<int64_t>(longest / std::max<size_t>(1, stride)));
  Shape out_shape = wanted.is_batch ? Shape{static_cast<int64_t>(records.size())} : Shape{};
  for (int64_t extent : shape.dims()) out_shape.push_back(extent);
  Tensor out(dtype_of<T>, out_shape);
  const int64_t n = shape.elements();
  for (size_t row = 0; row < lists.size(); ++row) {
    T* to = out.data<T>() + static_cast<int64_t>(row) * n;
    const int64_t given = lists[row] == nullptr ? 0 : static_cast<int64_t>(lists[row]->size());
    if (lists[row] != nullptr && given != n && !is_ragged) {
      fail(Code::invalid_argument, place(wanted, row, key), "Number of ", dtype_of<T>,
           " values != expected.  values size: ", given, " but output shape: ", shape);
    }
    if (lists[row] != nullptr) copy_elements(lists[row]->data(), given, to);
    if (given == n) continue;
    if (defaults.elements() == 0) {
      fail(Code::invalid_argument, "Name: ", name_of(wanted, row), ", Feature: ", key,
           " (data type: ", dtype_of<T>, ") is required but could not be found.");
    }
    for (int64_t j = given; j < n; ++j) to[j] = defaults.data<T>()[is_ragged ? 0 : j];
  }
  return out;
}

// A single record has no rows to split its values into.
template <class T>
RaggedFeature ragged_feature(const WantedFeatures& wanted, int i, const Records& records) {
  const std::string& key = wanted.ragged_keys[i];
  std::vector<T> values;
  std::vector<int64_t> splits = {0};
  for (const Features& record : records) {
    if (const Feature* feature = find(record, key)) {
      const std::vector<T>& list = values_of<T>(*feature, key);
      values.insert(values.end(), list.begin(), list.end());
    }
    splits.push_back(static_cast<int64_t>(values.size()));
  }
  if (!wanted.is_batch) splits.clear();
  return {Tensor::of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values)),
          row_splits(splits, wanted.split_types[i])};
}

}  // namespace

WantedFeatures WantedFeatures::of(const NodeView& node) {
  WantedFeatures wanted;
  wanted.sparse_types = node.attr<std::vector<DType>>("sparse_types");
  if (node.has("num_sparse")) {
    const auto count = node.attr<int64_t>("num_sparse");
    check(count == std::ssize(wanted.sparse_types),
          "len(sparse_types) != num_sparse: ", wanted.sparse_types.size(), " and ", count);
  }
  if (node.has("ragged_value_types")) {
    wanted.ragged_types = node.attr<std::vector<DType>>("ragged_value_types");
    wanted.split_types = node.attr<std::vector<DType>>("ragged_split_types");
  }
  wanted.dense_types = node.attr<std::vector<DType>>("Tdense");
  wanted.dense_shapes = node.attr<std::vector<Shape>>("dense_shapes");
  check(wanted.dense_shapes.size() == wanted.dense_types.size(),
        "len(dense_shapes) != len(Tdense): ", wanted.dense_shapes.size(), " and ",
        wanted.dense_types.size());
  for (const Shape& shape : wanted.dense_shapes) {
    check(shape.has_rank(), "dense_shapes must have known ranks");
    for (int i = 1; i < shape.rank(); ++i)
      check(shape[i] != any, "only the first extent of a dense shape may be unknown, got ", shape);
  }
  return wanted;
}

void WantedFeatures::check_counts() const {
  check(sparse_keys.size() == sparse_types.size() && dense_keys.size() == dense_types.size(),
        "there must be one key per feature: ", sparse_keys.size(), " sparse keys and ",
        sparse_types.size(), " types, ", dense_keys.size(), " dense keys and ", dense_types.size(),
        " types");
  check(ragged_keys.size() == ragged_types.size() && ragged_keys.size() == split_types.size(),
        "there must be one key per ragged feature: ", ragged_keys.size(), " keys, ",
        ragged_types.size(), " types and ", split_types.size(), " types of splits");
}

ParsedFeatures parse_features(const WantedFeatures& wanted, std::span<const std::string> texts) {
  Records records;
  for (const std::string& text : texts) records.push_back(parse_example(text));
  const auto typed = [](const std::vector<DType>& types, auto add) {
    for (int i = 0; i < static_cast<int>(types.size()); ++i) {
      visit_type(FeatureTypes{}, types[i], [&](auto type) {
        add(type, i);
        return 0;
      });
    }
  };
  ParsedFeatures out;
  typed(wanted.sparse_types, [&]<class T>(TypeTag<T>, int i) {
    out.sparse.push_back(sparse_feature<T>(wanted.sparse_keys[i], records, wanted.is_batch));
  });
  typed(wanted.dense_types, [&]<class T>(TypeTag<T>, int i) {
    out.dense.push_back(dense_feature<T>(wanted, i, records));
  });
  typed(wanted.ragged_types, [&]<class T>(TypeTag<T>, int i) {
    out.ragged.push_back(ragged_feature<T>(wanted, i, records));
  });
  return out;
}

}  // namespace leat
