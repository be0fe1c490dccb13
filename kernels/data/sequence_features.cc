#include "kernels/data/sequence_features.h"

#include <algorithm>
#include <array>

#include "graph/formats/example.h"
#include "kernels/cpu.h"
#include "kernels/row_splits.h"
#include "kernels/types.h"

namespace leat {
namespace {

using FeatureTypes = Types<float, int64_t, std::string>;

class Parser {
 public:
  Parser(ExecuteContext& c, const SequenceWanted& wanted, const Tensor& serialized)
      : c_(c), wanted_(wanted) {
    const auto texts = serialized.span<std::string>();
    for (size_t i = 0; i < texts.size(); ++i) {
      try {
        records_.push_back(parse_sequence_example(texts[i]));
      } catch (const Error& error) {
        fail(error.code(), "Name: ", wanted.record(i), ": ", error.message());
      }
    }
  }

  void set_outputs() {
    set_sparse(wanted_.context, false);
    for (size_t i = 0; i < wanted_.context.dense.size(); ++i) {
      typed(wanted_.context.dense_types[i], [&]<class T>(TypeTag<T>) { set_dense<T>(i); });
    }
    set_ragged(wanted_.context, false);
    set_sparse(wanted_.lists, true);
    const auto n = static_cast<int>(wanted_.lists.dense.size());
    for (int i = 0; i < n; ++i) {
      typed(wanted_.lists.dense_types[i],
            [&]<class T>(TypeTag<T>) { set_dense_list<T>(i, next_ + i, next_ + n + i); });
    }
    next_ += wanted_.has_lengths ? 2 * n : n;
    set_ragged(wanted_.lists, true);
  }

 private:
  template <class F>
  static void typed(DType dtype, F f) {
    visit_type(FeatureTypes{}, dtype, [&](auto type) {
      f(type);
      return 0;
    });
  }

  int64_t count() const { return static_cast<int64_t>(records_.size()); }
  Shape batch() const { return wanted_.is_batch ? Shape{count()} : Shape{}; }

  // The features of that name: one from the context, or those of a list.
  std::span<const Feature> rows_of(size_t record, const std::string& key, bool is_list) const {
    const SequenceFeatures& from = records_[record];
    if (is_list) {
      const auto at = from.lists.find(key);
      return at == from.lists.end() ? std::span<const Feature>{} : at->second;
    }
    const auto at = from.context.find(key);
    return at == from.context.end() ? std::span<const Feature>{} : std::span{&at->second, 1};
  }

  template <class T>
  std::span<const T> values_of(const Feature& feature, size_t record, const std::string& key,
                               bool is_list, size_t row, bool must_have_kind = false) const {
    if (const auto* values = std::get_if<std::vector<T>>(&feature)) return *values;
    const bool is_unset = std::holds_alternative<std::monostate>(feature);
    if (is_unset && !must_have_kind) return {};
    const std::string where = is_list ? concat("Feature list: ", key, ", Index: ", row)
                                      : concat("Context feature: ", key);
    fail(Code::invalid_argument, "Name: ", wanted_.record(record), ", ", where,
         ".  Data types don't match. Expected type: ", dtype_of<T>);
  }

  void set_sparse(const SequenceGroup& group, bool is_list) {
    const auto n = static_cast<int>(group.sparse.size());
    for (int i = 0; i < n; ++i) {
      typed(group.sparse_types[i], [&]<class T>(TypeTag<T>) {
        set_sparse<T>(group.sparse[i], is_list, {next_ + i, next_ + n + i, next_ + 2 * n + i});
      });
    }
    next_ += 3 * n;
  }

  // `outputs`: for indices, values and shape.
  template <class T>
  void set_sparse(const std::string& key, bool is_list, std::array<int, 3> outputs) {
    std::vector<int64_t> indices, shape;
    std::vector<T> values;
    size_t most_rows = 0, most_values = 0;
    for (size_t record = 0; record < records_.size(); ++record) {
      const std::span<const Feature> rows = rows_of(record, key, is_list);
      most_rows = std::max(most_rows, rows.size());
      for (size_t row = 0; row < rows.size(); ++row) {
        const std::span<const T> found = values_of<T>(rows[row], record, key, is_list, row);
        most_values = std::max(most_values, found.size());
        for (size_t j = 0; j < found.size(); ++j) {
          if (wanted_.is_batch) indices.push_back(static_cast<int64_t>(record));
          if (is_list) indices.push_back(static_cast<int64_t>(row));
          indices.push_back(static_cast<int64_t>(j));
        }
        values.insert(values.end(), found.begin(), found.end());
      }
    }
    if (wanted_.is_batch) shape.push_back(count());
    if (is_list) shape.push_back(static_cast<int64_t>(most_rows));
    shape.push_back(static_cast<int64_t>(most_values));
    const auto n = static_cast<int64_t>(values.size()), rank = static_cast<int64_t>(shape.size());
    c_.set_output(outputs[0], Tensor::of<int64_t>({n, rank}, std::span<const int64_t>(indices)));
    c_.set_output(outputs[1], Tensor::of<T>({n}, std::span<const T>(values)));
    c_.set_output(outputs[2], Tensor::of<int64_t>({rank}, std::span<const int64_t>(shape)));
  }

  void set_ragged(const SequenceGroup& group, bool is_list) {
    const auto n = static_cast<int>(group.ragged.size());
    for (int i = 0; i < n; ++i) {
      typed(group.ragged_types[i], [&]<class T>(TypeTag<T>) { set_ragged<T>(group, i, is_list); });
    }
    next_ += (is_list ? 3 : 2) * n;
  }

  // The values, where those of each record begin, and where those of each row begin (for lists:
  // outer, then inner). Without a batch there is nothing to split by record, and TensorFlow leaves
  // a scalar unset.
  template <class T>
  void set_ragged(const SequenceGroup& group, int i, bool is_list) {
    const std::string& key = group.ragged[i];
    const auto n = static_cast<int>(group.ragged.size());
    std::vector<T> values;
    std::vector<int64_t> by_record = {0}, by_row = {0};
    for (size_t record = 0; record < records_.size(); ++record) {
      const std::span<const Feature> rows = rows_of(record, key, is_list);
      for (size_t row = 0; row < rows.size(); ++row) {
        const std::span<const T> found = values_of<T>(rows[row], record, key, is_list, row);
        values.insert(values.end(), found.begin(), found.end());
        by_row.push_back(static_cast<int64_t>(values.size()));
      }
      by_record.push_back(static_cast<int64_t>(is_list ? by_row.size() - 1 : values.size()));
    }
    c_.set_output(next_ + i,
                  Tensor::of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values)));
    const DType type = group.split_types[i];
    c_.set_output(next_ + n + i, wanted_.is_batch ? row_splits(by_record, type)
                                                  : row_splits({0}, type).reshaped({}));
    if (is_list) c_.set_output(next_ + 2 * n + i, row_splits(by_row, type));
  }

  // A feature of the context has the same number of values in every record.
  template <class T>
  void set_dense(size_t i) {
    const SequenceGroup& group = wanted_.context;
    const std::string& key = group.dense[i];
    const Shape& shape = group.dense_shapes[i];
    const Tensor& defaults = c_.input(wanted_.defaults + static_cast<int>(i));
    check(defaults.elements() == 0 || defaults.shape() == shape, "default_value[", i,
          "].shape() == ", defaults.shape(), " != context_dense_shapes[", i, "] == ", shape);
    const int64_t n = shape.elements();
    check(count() > 0 || defaults.elements() == n,
          "Inconsistent max number of elements for feature ", key, ": expected ", n,
          ", but there are no records and no default");
    Shape out_shape = batch();
    for (const int64_t extent : shape.dims()) out_shape.push_back(extent);
    Tensor out(dtype_of<T>, out_shape);
    for (size_t record = 0; record < records_.size(); ++record) {
      const std::span<const Feature> found = rows_of(record, key, false);
      std::span<const T> values = defaults.span<T>();
      if (found.empty()) {
        check(!values.empty(), "Name: ", wanted_.record(record), ", Context feature '", key,
              "' (data type: ", dtype_of<T>, ") is required but could not be found.");
      } else {
        values = values_of<T>(found[0], record, key, false, 0, wanted_.is_strict);
      }
      check(static_cast<int64_t>(values.size()) == n, "Name: ", wanted_.record(record),
            ", Context feature: ", key,
            ".  Number of values != expected.  values size: ", values.size(),
            " but output shape: ", shape);
      copy_elements(values.data(), n, out.data<T>() + static_cast<int64_t>(record) * n);
    }
    c_.set_output(next_++, std::move(out));
  }

  // As many rows as the longest list has; shorter lists are padded with 0 or "".
  template <class T>
  void set_dense_list(int i, int output, int lengths_output) {
    const std::string& key = wanted_.lists.dense[i];
    const Shape& shape = wanted_.lists.dense_shapes[i];
    const int64_t n = shape.elements();
    Tensor lengths(DType::i64, batch());
    int64_t longest = 0;
    for (size_t record = 0; record < records_.size(); ++record) {
      check(wanted_.may_miss[i] || records_[record].lists.contains(key),
            "Name: ", wanted_.record(record), ", Feature list '", key,
            "' is required but could not be found.  Did you mean to include it in "
            "feature_list_dense_missing_assumed_empty or feature_list_dense_defaults?");
      lengths.data<int64_t>()[record] = static_cast<int64_t>(rows_of(record, key, true).size());
      longest = std::max(longest, lengths.data<int64_t>()[record]);
    }
    Shape out_shape = batch();
    out_shape.push_back(longest);
    for (const int64_t extent : shape.dims()) out_shape.push_back(extent);
    Tensor out(dtype_of<T>, out_shape);
    std::fill_n(out.data<T>(), out.elements(), T{});
    for (size_t record = 0; record < records_.size(); ++record) {
      T* to = out.data<T>() + static_cast<int64_t>(record) * longest * n;
      const std::span<const Feature> rows = rows_of(record, key, true);
      for (size_t row = 0; row < rows.size(); ++row, to += n) {
        const std::span<const T> values =
            values_of<T>(rows[row], record, key, true, row, wanted_.is_strict);
        check(static_cast<int64_t>(values.size()) == n, "Name: ", wanted_.record(record),
              ", Key: ", key, ", Index: ", row,
              ".  Number of values != expected.  values size: ", values.size(),
              " but output shape: ", shape);
        copy_elements(values.data(), n, to);
      }
    }
    c_.set_output(output, std::move(out));
    if (wanted_.has_lengths) c_.set_output(lengths_output, std::move(lengths));
  }

  ExecuteContext& c_;
  const SequenceWanted& wanted_;
  std::vector<SequenceFeatures> records_;
  int next_ = 0;  // output
};

}  // namespace

void parse_sequences(ExecuteContext& c, const SequenceWanted& wanted, const Tensor& serialized) {
  Parser(c, wanted, serialized).set_outputs();
}

}  // namespace leat
