#include "core/attr.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

namespace leat {
namespace {

bool is_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::string) {
    return std::equal(a.span<std::string>().begin(), a.span<std::string>().end(),
                      b.span<std::string>().begin());
  }
  return a.raw() == b.raw() || a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

// 0 and -0 differ; a NaN equals itself.
bool is_equal(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool is_equal(const FunctionRef& a, const FunctionRef& b) {
  static const AttrMap none;
  const auto attrs = [](const FunctionRef& f) -> const AttrMap& {
    return f.attrs ? *f.attrs : none;
  };
  return a.name == b.name && attrs(a) == attrs(b);
}

template <class T>
bool is_equal(const T& a, const T& b) {
  return a == b;
}

template <class T>
bool is_equal(const std::vector<T>& a, const std::vector<T>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const T& x, const T& y) { return is_equal(x, y); });
}

}  // namespace

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const char* value) : value_(std::string(value)) {}
AttrValue::AttrValue(std::string_view value) : value_(std::string(value)) {}
AttrValue::AttrValue(int value) : value_(int64_t{value}) {}
AttrValue::AttrValue(double value) : value_(static_cast<float>(value)) {}
AttrValue::AttrValue(std::string value) : value_(std::move(value)) {}
AttrValue::AttrValue(int64_t value) : value_(value) {}
AttrValue::AttrValue(float value) : value_(value) {}
AttrValue::AttrValue(bool value) : value_(value) {}
AttrValue::AttrValue(DType value) : value_(value) {}
AttrValue::AttrValue(Shape value) : value_(std::move(value)) {}
AttrValue::AttrValue(Tensor value) : value_(std::move(value)) {}
AttrValue::AttrValue(FunctionRef value) : value_(std::move(value)) {}
AttrValue::AttrValue(std::vector<std::string> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<int64_t> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<float> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<bool> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<DType> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<Shape> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<Tensor> values) : value_(std::move(values)) {}
AttrValue::AttrValue(std::vector<FunctionRef> values) : value_(std::move(values)) {}
AttrValue::AttrValue(const AttrValue&) = default;
AttrValue::AttrValue(AttrValue&&) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue&) = default;
AttrValue& AttrValue::operator=(AttrValue&&) noexcept = default;
AttrValue::~AttrValue() = default;

AttrMap::AttrMap() = default;
AttrMap::AttrMap(std::initializer_list<value_type> values) : map_(Map(values)) {}
AttrMap::AttrMap(const AttrMap&) = default;
AttrMap::AttrMap(AttrMap&&) noexcept = default;
AttrMap& AttrMap::operator=(const AttrMap&) = default;
AttrMap& AttrMap::operator=(AttrMap&&) noexcept = default;
AttrMap::~AttrMap() = default;

AttrMap::const_iterator AttrMap::begin() const { return map_->begin(); }
AttrMap::const_iterator AttrMap::end() const { return map_->end(); }
AttrMap::const_iterator AttrMap::find(std::string_view name) const { return map_->find(name); }
bool AttrMap::contains(std::string_view name) const { return map_->contains(name); }
size_t AttrMap::size() const { return map_->size(); }
bool AttrMap::empty() const { return map_->empty(); }
bool AttrMap::operator==(const AttrMap& other) const { return map_ == other.map_; }

std::string_view AttrValue::kind() const {
  constexpr std::array<std::string_view, std::variant_size_v<Variant>> names = {
      "nothing",    "string",     "int",         "float",        "bool",      "type",
      "shape",      "tensor",     "func",        "list(string)", "list(int)", "list(float)",
      "list(bool)", "list(type)", "list(shape)", "list(tensor)", "list(func)"};
  return names[value_.index()];
}

bool AttrValue::operator==(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return false;
  return std::visit(
      [&](const auto& mine) {
        return is_equal(mine, std::get<std::remove_cvref_t<decltype(mine)>>(other.value_));
      },
      value_);
}

const AttrValue& AttrMap::at(std::string_view name) const {
  const auto found = find(name);
  check_internal(found != end(), "there is no attribute '", name, "'");
  return found->second;
}

bool AttrMap::emplace(std::string_view name, AttrValue value) {
  if (contains(name)) return false;
  map_.write().emplace(name, std::move(value));
  return true;
}

void AttrMap::insert_or_assign(std::string_view name, AttrValue value) {
  map_.write().insert_or_assign(std::string(name), std::move(value));
}

AttrValue& AttrMap::operator[](std::string_view name) { return map_.write()[std::string(name)]; }

void AttrMap::erase(std::string_view name) {
  if (!contains(name)) return;
  Map& map = map_.write();
  map.erase(map.find(name));
}

const AttrValue& NodeView::at(std::string_view attr) const {
  const auto found = attrs.find(attr);
  check(found != attrs.end(), op, " node '", name, "' has no attribute '", attr, "'");
  return found->second;
}

}  // namespace leat
