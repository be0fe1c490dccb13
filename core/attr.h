// Attribute values of nodes: plain C++ instead of the wire's AttrValue.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "core/shared.h"
#include "core/tensor.h"

namespace leat {

class AttrMap;

// A function named by an attribute. Either it is inlined when a GraphDef is read, or kernels call
// it (core/function.h). `attrs` instantiate it.
struct FunctionRef {
  std::string name;
  std::shared_ptr<const AttrMap> attrs;
};

// One value. In schemas (OpDef::attrs) the kinds are written "string", "int", "float", "bool",
// "type", "shape", "tensor", "func" and "list(…)".
class AttrValue {
 public:
  using Variant = std::variant<std::monostate, std::string, int64_t, float, bool, DType, Shape,
                               Tensor, FunctionRef, std::vector<std::string>, std::vector<int64_t>,
                               std::vector<float>, std::vector<bool>, std::vector<DType>,
                               std::vector<Shape>, std::vector<Tensor>, std::vector<FunctionRef>>;

  // All of them are compiled in attr.cc: a variant of 17 types costs each file that copies it.
  // NOLINTBEGIN: values convert
  AttrValue();
  AttrValue(const char* value);
  AttrValue(std::string_view value);
  AttrValue(std::string value);
  AttrValue(int value);
  AttrValue(int64_t value);
  AttrValue(float value);
  AttrValue(double value);  // kept as a float
  AttrValue(bool value);
  template <class T>
  AttrValue(T*) = delete;  // a pointer is not a bool
  AttrValue(DType value);
  AttrValue(Shape value);
  AttrValue(Tensor value);
  AttrValue(FunctionRef value);
  AttrValue(std::vector<std::string> values);
  AttrValue(std::vector<int64_t> values);
  AttrValue(std::vector<float> values);
  AttrValue(std::vector<bool> values);
  AttrValue(std::vector<DType> values);
  AttrValue(std::vector<Shape> values);
  AttrValue(std::vector<Tensor> values);
  AttrValue(std::vector<FunctionRef> values);
  // NOLINTEND
  AttrValue(const AttrValue&);
  AttrValue(AttrValue&&) noexcept;
  AttrValue& operator=(const AttrValue&);
  AttrValue& operator=(AttrValue&&) noexcept;
  ~AttrValue();

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  // INVALID_ARGUMENT, naming both kinds, if it holds another kind.
  template <class T>
  const T& get() const {
    const T* value = std::get_if<T>(&value_);
    check(value != nullptr, "an attribute holds ", kind(), " where another kind was expected");
    return *value;
  }
  const Variant& variant() const { return value_; }

  std::string_view kind() const;  // "int", "list(type)", …
  bool operator==(const AttrValue& other) const;

 private:
  Variant value_;
};

// The attributes of a node, sorted by name. Copies share the map until one of them changes, because
// the passes copy nodes by the million. Read access is const.
class AttrMap {
 public:
  using Map = std::map<std::string, AttrValue, std::less<>>;
  using value_type = Map::value_type;
  using const_iterator = Map::const_iterator;

  AttrMap();
  AttrMap(std::initializer_list<value_type> values);
  AttrMap(const AttrMap&);
  AttrMap(AttrMap&&) noexcept;
  AttrMap& operator=(const AttrMap&);
  AttrMap& operator=(AttrMap&&) noexcept;
  ~AttrMap();

  const_iterator begin() const;
  const_iterator end() const;
  const_iterator find(std::string_view name) const;
  bool contains(std::string_view name) const;
  const AttrValue& at(std::string_view name) const;  // INTERNAL if absent
  size_t size() const;
  bool empty() const;

  // Returns false and changes nothing if the name exists.
  bool emplace(std::string_view name, AttrValue value);
  void insert_or_assign(std::string_view name, AttrValue value);
  AttrValue& operator[](std::string_view name);  // for writing; created if absent
  void erase(std::string_view name);

  bool operator==(const AttrMap& other) const;

 private:
  Shared<Map> map_;
};

// A node's attributes as kernels, shape functions and passes see them: typed access, with errors
// that name the node.
struct NodeView {
  std::string_view name;
  std::string_view op;
  const AttrMap& attrs;

  bool has(std::string_view attr) const { return attrs.contains(attr); }
  const AttrValue& at(std::string_view attr) const;  // INVALID_ARGUMENT if absent
  template <class T>
  const T& attr(std::string_view key) const {
    return at(key).template get<T>();
  }
};

}  // namespace leat
