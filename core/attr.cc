#include "core/attr.h"

#include <array>
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

template <class T>
bool is_equal(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(),
                      [](const Tensor& x, const Tensor& y) { return is_equal(x, y); });
  } else {
    return a == b;
  }
}

}  // namespace

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
