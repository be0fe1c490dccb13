#include "kernels/lookup_table.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace leat {
namespace {

// The bytes that stand for element `i`.
void key_of(const Tensor& keys, int64_t i, std::string& key) {
  if (keys.dtype() == DType::string) {
    key = keys.data<std::string>()[i];
  } else {
    const size_t size = dtype_size(keys.dtype());
    key.assign(static_cast<const char*>(keys.raw()) + i * static_cast<int64_t>(size), size);
  }
}

// The shape of the values of `keys`.
Shape shape_of_values(const Shape& keys, const Shape& value) {
  Shape out = keys;
  for (const int64_t extent : value.dims()) out.push_back(extent);
  return out;
}

}  // namespace

// ---- Rows

void Rows::append(const Tensor& from, int64_t row) {
  const auto at = static_cast<size_t>(row) * width_;
  if (dtype_ == DType::string) {
    const std::string* first = from.data<std::string>() + at;
    strings_.insert(strings_.end(), first, first + width_);
  } else {
    const size_t size = dtype_size(dtype_);
    const char* first = static_cast<const char*>(from.raw()) + at * size;
    bytes_.insert(bytes_.end(), first, first + width_ * size);
  }
}

void Rows::set(int64_t row, const Tensor& from, int64_t from_row) {
  const auto to = static_cast<size_t>(row) * width_, at = static_cast<size_t>(from_row) * width_;
  if (dtype_ == DType::string) {
    std::copy_n(from.data<std::string>() + at, width_, strings_.data() + to);
  } else {
    const size_t size = dtype_size(dtype_);
    std::copy_n(static_cast<const char*>(from.raw()) + at * size, width_ * size,
                bytes_.data() + to * size);
  }
}

void Rows::copy(int64_t row, Tensor& to, int64_t to_row) const {
  const auto from = static_cast<size_t>(row) * width_, at = static_cast<size_t>(to_row) * width_;
  if (dtype_ == DType::string) {
    std::copy_n(strings_.data() + from, width_, to.data<std::string>() + at);
  } else {
    const size_t size = dtype_size(dtype_);
    std::copy_n(bytes_.data() + from * size, width_ * size,
                static_cast<char*>(to.raw()) + at * size);
  }
}

bool Rows::equals(int64_t row, const Tensor& other, int64_t other_row) const {
  const auto from = static_cast<size_t>(row) * width_, at = static_cast<size_t>(other_row) * width_;
  if (dtype_ == DType::string)
    return std::equal(strings_.data() + from, strings_.data() + from + width_,
                      other.data<std::string>() + at);
  const size_t size = dtype_size(dtype_);
  return std::equal(bytes_.data() + from * size, bytes_.data() + (from + width_) * size,
                    static_cast<const char*>(other.raw()) + at * size);
}

void Rows::remove(int64_t row) {
  const size_t size = dtype_ == DType::string ? 1 : dtype_size(dtype_);
  const auto remove_from = [&](auto& elements, size_t width) {
    const auto last = elements.end() - static_cast<std::ptrdiff_t>(width);
    const auto place = elements.begin() + static_cast<std::ptrdiff_t>(width) * row;
    if (place != last) std::move(last, elements.end(), place);
    elements.erase(last, elements.end());
  };
  dtype_ == DType::string ? remove_from(strings_, width_) : remove_from(bytes_, width_ * size);
}

std::string Rows::to_string(int64_t row) const {
  Tensor out(dtype_, Shape{static_cast<int64_t>(width_)});
  copy(row, out, 0);
  return width_ == 1 ? out.reshaped({}).to_string() : out.to_string();
}

// ---- LookupTable

LookupTable::Options LookupTable::Options::of(const NodeView& node) {
  Options out{.kind = std::string(node.op),
              .keys = node.attr<DType>("key_dtype"),
              .values = node.attr<DType>("value_dtype")};
  if (out.kind.ends_with("V2")) out.kind.resize(out.kind.size() - 2);
  out.is_filled_once = out.kind == "HashTable";
  if (node.has("value_shape")) out.value_shape = node.attr<Shape>("value_shape");
  check(out.value_shape.is_complete() && out.value_shape.rank() <= 1,
        "Default value must be a vector, got shape ", out.value_shape);
  if (node.has("initial_num_buckets")) {  // this table has no buckets, TensorFlow's has
    const auto buckets = node.attr<int64_t>("initial_num_buckets");
    const auto load = node.attr<float>("max_load_factor");
    check(buckets >= 4 && std::has_single_bit(static_cast<uint64_t>(buckets)),
          "Number of buckets must be at least 4 and a power of 2, got: ", buckets);
    check(load > 0 && load < 1, "max_load_factor must be between 0 and 1, got: ", load);
  }
  return out;
}

LookupTable::LookupTable(std::string name, Options options)
    : Resource(std::move(name)), options_(std::move(options)), entries_(options_) {}

void LookupTable::check_fits(const NodeView& node) const {
  const Options wanted = Options::of(node);
  check(wanted.keys == options_.keys && wanted.values == options_.values &&
            wanted.kind == options_.kind && wanted.value_shape == options_.value_shape,
        "Conflicting key/value dtypes: the table '", name(), "' is a ", options_.kind, " of ",
        options_.keys, " -> ", options_.values, options_.value_shape, "; node '", node.name,
        "' wants a ", wanted.kind, " of ", wanted.keys, " -> ", wanted.values, wanted.value_shape);
}

std::string LookupTable::state() const {
  const std::lock_guard lock(mutex_);
  return concat(options_.kind, " '", name(), "' has ", entries_.rows.size(), " entries",
                options_.is_filled_once && !is_initialized_ ? ", is not initialized" : "");
}

void LookupTable::check_key_type(const Tensor& keys) const {
  check(keys.dtype() == options_.keys, "Key must be type ", options_.keys, " but got ",
        keys.dtype(), " (", options_.kind, " '", name(), "')");
}

void LookupTable::check_entries(const Tensor& keys, const Tensor& values) const {
  check_key_type(keys);
  check(values.dtype() == options_.values, "Value must be type ", options_.values, " but got ",
        values.dtype(), " (", options_.kind, " '", name(), "')");
  const Shape expected = shape_of_values(keys.shape(), options_.value_shape);
  check(values.shape() == expected, "Expected shape ", expected, " for value, got ",
        values.shape());
}

void LookupTable::check_mutable(const char* operation) const {
  if (options_.is_filled_once) {
    fail(Code::unimplemented, operation, " not supported by ", options_.kind, " '", name(),
         "', which is filled once; use a MutableHashTable");
  }
}

Tensor LookupTable::find(const Tensor& keys, const Tensor& default_value) const {
  check_key_type(keys);
  check(default_value.dtype() == options_.values, "Default value must be type ", options_.values,
        " but got ", default_value.dtype(), " (", options_.kind, " '", name(), "')");
  const Shape shape = shape_of_values(keys.shape(), options_.value_shape);
  check(default_value.shape() == options_.value_shape || default_value.shape() == shape,
        "Expected shape ", options_.value_shape, " or ", shape, " for default value, got ",
        default_value.shape());
  // As TensorFlow does it: a table that is filled once has one default, the first.
  const bool is_per_key =
      !options_.is_filled_once && !(default_value.shape() == options_.value_shape);
  Tensor out(options_.values, shape);
  Rows defaults(options_.values, options_.value_shape.elements());
  for (int64_t i = 0; keys.elements() > 0 && i < (is_per_key ? keys.elements() : 1); ++i)
    defaults.append(default_value, i);
  std::string key;
  const std::lock_guard lock(mutex_);
  if (options_.is_filled_once && !is_initialized_) {
    fail(Code::failed_precondition, "Table not initialized. (", options_.kind, " '", name(),
         "': run tables_initializer() first)");
  }
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto found = entries_.rows.find(key);
    if (found != entries_.rows.end()) {
      entries_.values.copy(found->second, out, i);
    } else {
      defaults.copy(is_per_key ? i : 0, out, i);
    }
  }
  return out;
}

void LookupTable::add(Entries& entries, const Tensor& keys, const Tensor& values) const {
  std::string key;
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto [found, is_new] =
        entries.rows.try_emplace(key, static_cast<int64_t>(entries.rows.size()));
    if (is_new) {
      entries.keys.append(keys, i);
      entries.values.append(values, i);
    } else if (!options_.is_filled_once) {
      entries.values.set(found->second, values, i);
    } else if (!entries.values.equals(found->second, values, i)) {
      Rows added(options_.values, options_.value_shape.elements());
      added.append(values, i);
      fail(Code::failed_precondition, "HashTable has different value for same key. Key ",
           entries.keys.to_string(found->second), " has ", entries.values.to_string(found->second),
           " and trying to add value ", added.to_string(0));
    }
  }
}

void LookupTable::initialize(const Tensor& keys, const Tensor& values) {
  check(options_.is_filled_once, "Table ", name(), " is not initializable: it is a ",
        options_.kind);
  check_entries(keys, values);
  check(keys.elements() > 0, "keys and values cannot be empty tensors.");
  const std::lock_guard lock(mutex_);
  if (is_initialized_) {
    if (keys.elements() == static_cast<int64_t>(entries_.rows.size())) return;
    fail(Code::failed_precondition, "Table was already initialized with different data. (",
         options_.kind, " '", name(), "' has ", entries_.rows.size(), " entries, not ",
         keys.elements(), ")");
  }
  add(entries_, keys, values);  // as in TensorFlow, what came before a conflict stays
  is_initialized_ = true;
}

void LookupTable::insert(const Tensor& keys, const Tensor& values) {
  check_mutable("Insert");
  check_entries(keys, values);
  const std::lock_guard lock(mutex_);
  add(entries_, keys, values);
}

void LookupTable::remove(const Tensor& keys) {
  check_mutable("Remove");
  check_key_type(keys);
  std::string key;
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < keys.elements(); ++i) {
    key_of(keys, i, key);
    const auto found = entries_.rows.find(key);
    if (found == entries_.rows.end()) continue;
    const int64_t row = found->second, last = static_cast<int64_t>(entries_.rows.size()) - 1;
    if (row != last) {
      Tensor last_key(options_.keys, {});
      entries_.keys.copy(last, last_key, 0);
      std::string moved;
      key_of(last_key, 0, moved);
      entries_.rows[moved] = row;
    }
    entries_.rows.erase(key);
    entries_.keys.remove(row);
    entries_.values.remove(row);
  }
}

void LookupTable::import_all(const Tensor& keys, const Tensor& values) {
  if (options_.is_filled_once) return initialize(keys, values);
  check_entries(keys, values);
  Entries entries(options_);
  add(entries, keys, values);
  const std::lock_guard lock(mutex_);
  std::swap(entries_, entries);
}

std::pair<Tensor, Tensor> LookupTable::export_all() const {
  const std::lock_guard lock(mutex_);
  if (options_.is_filled_once && !is_initialized_)
    fail(Code::aborted, "HashTable is not initialized. ('", name(), "')");
  const auto n = static_cast<int64_t>(entries_.rows.size());
  Tensor keys(options_.keys, {n}),
      values(options_.values, shape_of_values({n}, options_.value_shape));
  for (int64_t i = 0; i < n; ++i) {
    entries_.keys.copy(i, keys, i);
    entries_.values.copy(i, values, i);
  }
  return {std::move(keys), std::move(values)};
}

int64_t LookupTable::size() const {
  const std::lock_guard lock(mutex_);
  if (options_.is_filled_once && !is_initialized_) return 0;
  return static_cast<int64_t>(entries_.rows.size());
}

}  // namespace leat
