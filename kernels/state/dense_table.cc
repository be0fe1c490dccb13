#include "kernels/state/dense_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "kernels/text/string_hash.h"

namespace leat {
namespace {

// ---- Rows of tensors, `width` elements each

bool equal_rows(const Tensor& a, int64_t i, const Tensor& b, int64_t j, int64_t width) {
  if (a.dtype() == DType::string)
    return std::equal(a.data<std::string>() + i * width, a.data<std::string>() + (i + 1) * width,
                      b.data<std::string>() + j * width);
  const int64_t bytes = width * static_cast<int64_t>(dtype_size(a.dtype()));
  return std::memcmp(static_cast<const char*>(a.raw()) + i * bytes,
                     static_cast<const char*>(b.raw()) + j * bytes,
                     static_cast<size_t>(bytes)) == 0;
}

void copy_row(const Tensor& from, int64_t i, Tensor& to, int64_t j, int64_t width) {
  if (from.dtype() == DType::string) {
    std::copy_n(from.data<std::string>() + i * width, width, to.data<std::string>() + j * width);
    return;
  }
  const int64_t bytes = width * static_cast<int64_t>(dtype_size(from.dtype()));
  std::copy_n(static_cast<const char*>(from.raw()) + i * bytes, bytes,
              static_cast<char*>(to.raw()) + j * bytes);
}

void clear(Tensor& tensor) {
  if (tensor.dtype() == DType::string) {
    for (std::string& text : tensor.span<std::string>()) text.clear();
  } else {
    std::fill_n(static_cast<char*>(tensor.raw()), tensor.bytes(), '\0');
  }
}

// ---- Hashes: TensorFlow's, since an export shows them

uint64_t hash_of(const Tensor& keys, int64_t i) {
  switch (keys.dtype()) {
    case DType::string:
      return murmur_hash(keys.data<std::string>()[i]);
    case DType::i32:
      return static_cast<uint64_t>(keys.data<int32_t>()[i]);
    default:
      return static_cast<uint64_t>(keys.data<int64_t>()[i]);
  }
}

uint64_t combined(uint64_t a, uint64_t b) {
  return a ^ (b + 0x9e3779b97f4a7800 + (a << 10) + (a >> 4));
}

}  // namespace

DenseTable::DenseTable(std::string name, Options options, const NodeView& node)
    : LookupTable(std::move(name), std::move(options)),
      empty_key_(node.attr<Tensor>("empty_key")),
      deleted_key_(node.attr<Tensor>("deleted_key")),
      max_load_(node.attr<float>("max_load_factor")) {
  const DType keys = this->options().keys;
  check(keys == DType::i32 || keys == DType::i64 || keys == DType::string, "the keys of a ",
        this->options().kind, " must be int32, int64 or string, not ", keys);
  check(max_load_ > 0 && max_load_ < 1,
        "max_load_factor must be between 0 and 1, got: ", max_load_);
  const Shape &empty = empty_key_.shape(), &deleted = deleted_key_.shape();
  check(empty.rank() <= 1, "Empty key must be a scalar or a vector, got shape ", empty);
  check(empty == deleted, "Empty and deleted keys must have same shape, got shapes: ", empty,
        " and ", deleted);
  check(!equal_rows(empty_key_, 0, deleted_key_, 0, key_width()),
        "Empty and deleted keys cannot be equal");
  const auto count = node.attr<int64_t>("initial_num_buckets");
  check(count >= 4 && std::has_single_bit(static_cast<uint64_t>(count)),
        "Number of buckets must be at least 4 and a power of 2, got: ", count);
  buckets_ = empty_buckets(count);
}

std::string DenseTable::state() const {
  return concat(options().kind, " '", name(), "' has ", size(), " entries");
}

int64_t DenseTable::number_of(const Tensor& keys) const {
  const Shape& shape = keys.shape();
  const int64_t n = shape.rank() == 0 ? 1 : shape[0];
  check(keys.elements() == n * key_width(), "Expected a key of shape ", options().key_shape,
        " in each of ", n, " rows, got shape ", shape);
  return n;
}

bool DenseTable::is(const Tensor& keys, int64_t i, const Tensor& reserved) const {
  return equal_rows(keys, i, reserved, 0, key_width());
}

void DenseTable::check_not_reserved(const Tensor& keys, int64_t i) const {
  check(!is(keys, i, empty_key_), "Using the empty_key as a table key is not allowed");
  check(!is(keys, i, deleted_key_), "Using the deleted_key as a table key is not allowed");
}

uint64_t DenseTable::hash(const Tensor& keys, int64_t i) const {
  if (key_width() == 1) return hash_of(keys, i);
  uint64_t out = 0;
  for (int64_t j = 0; j < key_width(); ++j) out = combined(out, hash_of(keys, i * key_width() + j));
  return out;
}

DenseTable::Buckets DenseTable::empty_buckets(int64_t count) const {
  Buckets out{Tensor(options().keys, {count, key_width()}),
              Tensor(options().values, {count, value_width()})};
  for (int64_t b = 0; b < count; ++b) copy_row(empty_key_, 0, out.keys, b, key_width());
  clear(out.values);
  return out;
}

// The first bucket in the probe sequence of a key that is wanted, or that holds the key. INTERNAL
// if there is none, which happens only after an import without free buckets.
template <class Wanted>
int64_t DenseTable::find_bucket(const Tensor& keys, int64_t i, Wanted is_wanted) const {
  const uint64_t mask = static_cast<uint64_t>(buckets_.count()) - 1;
  uint64_t bucket = hash(keys, i) & mask;
  for (int64_t step = 1; step <= buckets_.count(); ++step) {
    const auto at = static_cast<int64_t>(bucket);
    if (equal_rows(buckets_.keys, at, keys, i, key_width()) || is_wanted(at)) return at;
    bucket = (bucket + static_cast<uint64_t>(step)) & mask;
  }
  fail(Code::internal, options().kind, " '", name(),
       "' has no free bucket in the probe sequence of a key");
}

Tensor DenseTable::find(const Tensor& keys, const Tensor& default_value) const {
  check_default(keys, default_value);
  const int64_t n = number_of(keys);
  Tensor out(options().values, shape_of_values(keys.shape()));
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < n; ++i) {
    check_not_reserved(keys, i);
    const int64_t bucket =
        find_bucket(keys, i, [&](int64_t b) { return is(buckets_.keys, b, empty_key_); });
    // As in TensorFlow there is a single default, the first.
    if (is(buckets_.keys, bucket, empty_key_))
      copy_row(default_value, 0, out, i, value_width());
    else
      copy_row(buckets_.values, bucket, out, i, value_width());
  }
  return out;
}

void DenseTable::put(const Tensor& keys, int64_t i, const Tensor& values) {
  const auto is_free = [&](int64_t b) {
    return is(buckets_.keys, b, empty_key_) || is(buckets_.keys, b, deleted_key_);
  };
  const int64_t bucket = find_bucket(keys, i, is_free);
  if (is_free(bucket)) ++size_;
  copy_row(keys, i, buckets_.keys, bucket, key_width());
  copy_row(values, i, buckets_.values, bucket, value_width());
}

void DenseTable::make_room_for(int64_t more) {
  const auto needed = static_cast<float>(size_ + more);
  int64_t count = buckets_.count();
  if (needed <= static_cast<float>(count) * max_load_) return;
  for (; needed > static_cast<float>(count) * max_load_; count *= 2) {
    if (count > std::numeric_limits<int64_t>::max() / 2)
      fail(Code::resource_exhausted, options().kind, " '", name(), "' would need more than ", count,
           " buckets for a load of ", max_load_);
  }
  check(std::has_single_bit(static_cast<uint64_t>(count)),
        "Number of buckets must be at least 4 and a power of 2, got: ", count);
  const Buckets old = std::exchange(buckets_, empty_buckets(count));
  size_ = 0;
  for (int64_t b = 0; b < old.count(); ++b) {
    if (!is(old.keys, b, empty_key_) && !is(old.keys, b, deleted_key_))
      put(old.keys, b, old.values);
  }
}

void DenseTable::insert(const Tensor& keys, const Tensor& values) {
  check_entries(keys, values);
  const int64_t n = number_of(keys);
  const std::lock_guard lock(mutex_);
  make_room_for(n);
  for (int64_t i = 0; i < n; ++i) {
    check_not_reserved(keys, i);  // as in TensorFlow, earlier entries stay
    put(keys, i, values);
  }
}

void DenseTable::remove(const Tensor& keys) {
  check_keys(keys);
  const int64_t n = number_of(keys);
  const std::lock_guard lock(mutex_);
  for (int64_t i = 0; i < n; ++i) {
    check_not_reserved(keys, i);
    const int64_t bucket =
        find_bucket(keys, i, [&](int64_t b) { return is(buckets_.keys, b, empty_key_); });
    if (is(buckets_.keys, bucket, empty_key_)) continue;
    copy_row(deleted_key_, 0, buckets_.keys, bucket, key_width());
    --size_;
  }
}

void DenseTable::import_all(const Tensor& keys, const Tensor& values) {
  check(keys.dtype() == options().keys && values.dtype() == options().values, "the table '", name(),
        "' is of ", options().keys, " -> ", options().values, ", not of ", keys.dtype(), " -> ",
        values.dtype());
  const Shape& shape = keys.shape();
  check(shape.rank() == 2 && shape[0] > 0 && shape[1] == key_width(), "Expected shape [n,",
        key_width(), "] for the keys of all buckets, got ", shape);
  const Shape expected = {shape[0], value_width()};
  check(values.shape() == expected, "Expected shape ", expected, " for value, got ",
        values.shape());
  Buckets imported{keys.clone(), values.clone()};
  const std::lock_guard lock(mutex_);
  buckets_ = std::move(imported);
  size_ = 0;
  for (int64_t b = 0; b < buckets_.count(); ++b) {
    if (!is(buckets_.keys, b, empty_key_) && !is(buckets_.keys, b, deleted_key_)) ++size_;
  }
}

std::pair<Tensor, Tensor> DenseTable::export_all() const {
  const std::lock_guard lock(mutex_);
  return {buckets_.keys.clone(), buckets_.values.clone()};
}

int64_t DenseTable::size() const {
  const std::lock_guard lock(mutex_);
  return size_;
}

}  // namespace leat
