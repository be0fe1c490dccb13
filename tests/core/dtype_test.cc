#include "core/dtype.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "core/visit_dtype.h"

namespace leat {
namespace {

// TensorFlow's numbers and names (types.proto): files and wire formats depend on them.
TEST(DType, NumbersAndNamesEqualTensorFlow) {
  struct Row {
    DType dtype;
    int number;
    const char* name;
    size_t size;
  };
  const Row rows[] = {
      {DType::f32, 1, "float", 4},           {DType::f64, 2, "double", 8},
      {DType::i32, 3, "int32", 4},           {DType::u8, 4, "uint8", 1},
      {DType::i16, 5, "int16", 2},           {DType::i8, 6, "int8", 1},
      {DType::i64, 9, "int64", 8},           {DType::boolean, 10, "bool", 1},
      {DType::bf16, 14, "bfloat16", 2},      {DType::u16, 17, "uint16", 2},
      {DType::f16, 19, "half", 2},           {DType::u32, 22, "uint32", 4},
      {DType::u64, 23, "uint64", 8},         {DType::string, 7, "string", sizeof(std::string)},
      {DType::complex64, 8, "complex64", 8}, {DType::resource, 20, "resource", 0},
      {DType::variant, 21, "variant", 0}};
  for (const Row& row : rows) {
    EXPECT_EQ(static_cast<int>(row.dtype), row.number);
    EXPECT_EQ(dtype_name(row.dtype), row.name);
    EXPECT_EQ(dtype_from_name(row.name), row.dtype);
    EXPECT_EQ(dtype_size(row.dtype), row.size);
  }
}

TEST(DType, ReadsShortNames) {
  EXPECT_EQ(dtype_from_name("float32"), f32);
  EXPECT_EQ(dtype_from_name("f16"), f16);
  EXPECT_EQ(dtype_from_name("u64"), u64);
  try {
    dtype_from_name("flaot");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_THAT(error.message(), testing::HasSubstr("'flaot'"));
  }
}

TEST(DType, ReportsKinds) {
  for (DType dtype : {f16, bf16, f32, f64})
    EXPECT_TRUE(is_floating(dtype) && !is_integer(dtype)) << dtype;
  for (DType dtype : {i8, i16, i32, i64, u8, u16, u32, u64})
    EXPECT_TRUE(is_integer(dtype) && !is_floating(dtype)) << dtype;
  EXPECT_FALSE(is_integer(DType::boolean));
  EXPECT_THAT(dtype_list("floating"), testing::UnorderedElementsAre(f16, bf16, f32, f64));
  EXPECT_THAT(dtype_list("indextype"), testing::UnorderedElementsAre(i32, i64));
  EXPECT_THAT(dtype_list("realnumbertype"), testing::Not(testing::Contains(DType::boolean)));
  EXPECT_THROW(dtype_list("nix"), Error);
}

TEST(DType, VisitPassesTheElementType) {
  for (int number = 0; number < 32; ++number) {
    const auto dtype = static_cast<DType>(number);
    const bool has_type = visit_dtype(dtype, [&]<class T>(TypeTag<T>) {
      EXPECT_EQ(dtype_of<T>, dtype);
      EXPECT_EQ(sizeof(T), dtype_size(dtype));
    });
    const bool is_number = is_floating(dtype) || is_integer(dtype) || is_complex(dtype);
    EXPECT_EQ(has_type, is_number || dtype == DType::boolean || dtype == DType::string) << number;
  }
}

}  // namespace
}  // namespace leat
