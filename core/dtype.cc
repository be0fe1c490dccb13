#include "core/dtype.h"

#include <array>
#include <ostream>

#include "core/error.h"

namespace leat {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size;
};
constexpr std::array rows = {
    Row{DType::f32, "float", 4},
    Row{DType::f64, "double", 8},
    Row{DType::i32, "int32", 4},
    Row{DType::u8, "uint8", 1},
    Row{DType::i16, "int16", 2},
    Row{DType::i8, "int8", 1},
    Row{DType::string, "string", sizeof(std::string)},
    Row{DType::complex64, "complex64", 8},
    Row{DType::i64, "int64", 8},
    Row{DType::boolean, "bool", 1},
    Row{DType::bf16, "bfloat16", 2},
    Row{DType::u16, "uint16", 2},
    Row{DType::complex128, "complex128", 16},
    Row{DType::f16, "half", 2},
    Row{DType::resource, "resource", 0},
    Row{DType::variant, "variant", 0},
    Row{DType::u32, "uint32", 4},
    Row{DType::u64, "uint64", 8},
};

const Row* row_of(DType dtype) {
  for (const Row& row : rows) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

constexpr std::array floating = {DType::f32, DType::f64, DType::f16, DType::bf16};
constexpr std::array integer = {DType::i32, DType::i64, DType::i8,  DType::i16,
                                DType::u8,  DType::u16, DType::u32, DType::u64};
constexpr std::array real = {DType::f32, DType::f64, DType::i32, DType::u8,
                             DType::i16, DType::i8,  DType::i64, DType::bf16,
                             DType::u16, DType::f16, DType::u32, DType::u64};
constexpr std::array number = {DType::f32,  DType::f64, DType::i32,        DType::u8,
                               DType::i16,  DType::i8,  DType::complex64,  DType::i64,
                               DType::bf16, DType::u16, DType::complex128, DType::f16,
                               DType::u32,  DType::u64};
constexpr std::array any_type = {
    DType::f32,        DType::f64,       DType::i32,      DType::u8,      DType::i16,  DType::i8,
    DType::string,     DType::complex64, DType::i64,      DType::boolean, DType::bf16, DType::u16,
    DType::complex128, DType::f16,       DType::resource, DType::variant, DType::u32,  DType::u64};
constexpr std::array index_type = {DType::i32, DType::i64};

}  // namespace

std::string_view dtype_name(DType dtype) {
  const Row* row = row_of(dtype);
  return row ? row->name : "invalid";
}

DType dtype_from_name(std::string_view name) {
  for (const Row& row : rows) {
    if (row.name == name) return row.dtype;
  }
  // clang-format off
  if (name == "float32" || name == "f32") return f32;
  if (name == "float64" || name == "f64") return f64;
  if (name == "float16" || name == "f16") return f16;
  if (name == "bf16") return bf16;
  if (name == "i8") return i8;
  if (name == "i16") return i16;
  if (name == "i32") return i32;
  if (name == "i64") return i64;
  if (name == "u8") return u8;
  if (name == "u16") return u16;
  if (name == "u32") return u32;
  if (name == "u64") return u64;
  // clang-format on
  fail(Code::invalid_argument, "no dtype is called '", name,
       "'; known: float, double, half, bfloat16, int8…int64, "
       "uint8…uint64, complex64, complex128, bool, string");
}

size_t dtype_size(DType dtype) {
  const Row* row = row_of(dtype);
  return row ? row->size : 0;
}

bool is_floating(DType dtype) {
  return dtype == f32 || dtype == f64 || dtype == f16 || dtype == bf16;
}

bool is_integer(DType dtype) {
  for (DType candidate : integer) {
    if (candidate == dtype) return true;
  }
  return false;
}

bool is_complex(DType dtype) { return dtype == DType::complex64 || dtype == DType::complex128; }

std::ostream& operator<<(std::ostream& out, DType dtype) { return out << dtype_name(dtype); }

std::span<const DType> dtype_list(std::string_view name) {
  if (name == "type") return any_type;
  if (name == "numbertype") return number;
  if (name == "realnumbertype") return real;
  if (name == "floating") return floating;
  if (name == "integer") return integer;
  if (name == "indextype") return index_type;
  fail(Code::invalid_argument, "no list of dtypes is called '", name,
       "'; known: type, numbertype, realnumbertype, floating, integer, indextype");
}

}  // namespace leat
