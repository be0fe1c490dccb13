// Tensors inside messages: written and read without copies, in every form and however the transport
// cuts them.
#include "distributed/wire/tensor_stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/error.h"
#include "graph/import/graph_def.h"
#include "tests/support/wire.h"

namespace leat {
namespace {

std::string whole(const Slices& slices) {
  std::string out;
  for (const ByteSlice& slice : slices)
    out.append(static_cast<const char*>(slice.data), slice.size);
  return out;
}

Bytes in_parts(const std::string& text, size_t size) {
  const auto owner = std::make_shared<const std::string>(text);
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < owner->size(); at += size)
    parts.push_back(std::string_view(*owner).substr(at, size));
  return {std::move(parts), owner};
}

Tensor counting(DType dtype, const Shape& shape) {
  Tensor out(dtype, shape);
  auto* bytes = static_cast<unsigned char*>(out.raw());
  for (size_t i = 0; i < out.bytes(); ++i)
    bytes[i] = static_cast<unsigned char>(dtype == DType::boolean ? i % 2 : i * 7);
  return out;
}

void expect_same(const Tensor& got, const Tensor& expected) {
  ASSERT_EQ(got.dtype(), expected.dtype());
  ASSERT_EQ(got.shape(), expected.shape());
  if (got.dtype() == DType::string) {
    EXPECT_TRUE(std::ranges::equal(got.span<std::string>(), expected.span<std::string>()));
  } else if (got.bytes() > 0) {
    EXPECT_EQ(std::memcmp(got.raw(), expected.raw(), expected.bytes()), 0);
  }
}

TEST(TensorStream, ReadsWhatItWrites) {
  const std::vector<std::pair<std::string, Tensor>> tensors = {
      {"scalar:0", Tensor::scalar(2.5f)},
      {"small:0", counting(i32, {3})},
      {"large:0", counting(f32, {100, 33})},
      {"flags:0", counting(DType::boolean, {9'000})},
      {"bytes:0", counting(u8, {5'000})},
      {"none:0", Tensor(f32, {0, 7})},
      {"text:0", Tensor::of<std::string>({2}, {std::string(9'000, 'x'), ""})},
      {"wide:0", counting(i64, {1, 1, 4'000, 1})},
  };
  MessageWriter writer("the test");
  writer.append(wire_format::text(1, "handle"));
  for (const auto& [name, tensor] : tensors) writer.add_named_tensor(2, name, tensor);
  writer.append(wire_format::number(8, 77));
  const uint64_t size = writer.size();
  const std::string text = whole(std::move(writer).finish());
  EXPECT_EQ(text.size(), size);
  for (const size_t part : {1ul, 5ul, 4'096ul, 10'000'000ul}) {
    size_t index = 0;
    const std::string rest =
        read_message(in_parts(text, part), 2, [&](const std::string& name, const Tensor& tensor) {
          EXPECT_EQ(name, tensors.at(index).first);
          expect_same(tensor, tensors.at(index++).second);
        });
    EXPECT_EQ(index, tensors.size());
    EXPECT_EQ(rest, wire_format::text(1, "handle") + wire_format::number(8, 77));
  }
}

TEST(TensorStream, SendsElementsWithoutACopy) {
  const Tensor large = counting(f32, {5'000});
  MessageWriter writer("the test");
  writer.add_tensor(3, large);
  const Slices slices = std::move(writer).finish();
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[1].data, large.raw());
  int count = 0;
  read_message_of_tensors(in_parts(whole(slices), 1'000), 3, [&](const Tensor& tensor) {
    expect_same(tensor, large);
    ++count;
  });
  EXPECT_EQ(count, 1);
}

TEST(TensorStream, WritesTensorsThatGraphDefReads) {
  const Tensor large = counting(f64, {40, 50});
  MessageWriter writer("the test");
  writer.add_tensor(1, large);
  const std::string text = whole(std::move(writer).finish());
  expect_same(from_tensor_proto(wire_format::fields(text).find(1)->second), large);
}

TEST(TensorStream, ReadsUnusualForms) {
  // 2,000 floats of which float_val gives the first two; the last one repeats.
  const std::string shape =
      wire_format::text(2, wire_format::text(2, wire_format::number(1, 2'000)));
  std::string values;
  for (const float value : {1.0f, 5.0f}) values.append(reinterpret_cast<const char*>(&value), 4);
  const std::string padding =
      wire_format::text(99, std::string(5'000, '.'));  // an unknown field makes it large
  const std::string tensor =
      wire_format::number(1, 1) + shape + padding + wire_format::text(5, values);
  const std::string message =
      wire_format::text(2, wire_format::text(1, "x:0") + wire_format::text(2, tensor));
  int count = 0;
  read_message(in_parts(message, 100), 2, [&](const std::string&, const Tensor& got) {
    ASSERT_EQ(got.elements(), 2'000);
    EXPECT_EQ(got.data<float>()[0], 1);
    EXPECT_EQ(got.data<float>()[1'999], 5);
    ++count;
  });
  EXPECT_EQ(count, 1);
}

TEST(TensorStream, RejectsWrongLengthsWithTheName) {
  const std::string shape =
      wire_format::text(2, wire_format::text(2, wire_format::number(1, 2'000)));
  const std::string tensor =
      wire_format::number(1, 1) + shape + wire_format::text(4, std::string(7'999, 'x'));
  const std::string message =
      wire_format::text(2, wire_format::text(1, "x:0") + wire_format::text(2, tensor));
  try {
    read_message(in_parts(message, 100), 2, [](const std::string&, const Tensor&) {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(error.message().find("x:0"), std::string::npos) << error.message();
  }
}

TEST(TensorStream, RejectsElementCountsBeyondInt) {
  const auto axis = [](uint64_t extent) {
    return wire_format::text(2, wire_format::number(1, extent));
  };
  for (const uint64_t elements : {uint64_t{1} << 31, (uint64_t{1} << 32) - 2}) {
    const std::string shape = wire_format::text(2, axis(2) + axis(elements / 2));
    const std::string content = "\x22" + wire_format::varint(elements) + std::string(8'000, 'x');
    const std::string message =
        wire_format::text(2, wire_format::text(1, "x:0") +
                                 wire_format::text(2, wire_format::number(1, 6) + shape + content));
    EXPECT_THROW(read_message(in_parts(message, 100), 2, [](const std::string&, const Tensor&) {}),
                 Error);
  }
}

TEST(TensorStream, MessageBeyondTheLimitNamesItsLargestTensor) {
  const Tensor large(u8, {1 << 30});  // never touched
  MessageWriter writer("the reply");
  writer.add_named_tensor(1, "small:0", counting(f32, {1'500}));
  writer.add_named_tensor(1, "large:0", large);
  writer.add_named_tensor(1, "other:0", large);
  try {
    std::move(writer).finish();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
    for (const char* part :
         {"the reply would have 21474", "at most 2147483647", "large:0 uint8[1073741824]"})
      EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

TEST(TensorStream, RejectsEveryTruncation) {
  MessageWriter writer("the test");
  writer.add_named_tensor(2, "x:0", counting(f32, {1'500}));
  writer.add_named_tensor(2, "y:0", Tensor::scalar("text"));
  const std::string text = whole(std::move(writer).finish());
  const size_t second = text.size() - wire_format::fields(text).rbegin()->second.size() - 2;
  for (size_t size = 1; size < text.size(); size += size < 100 || size > 6'000 ? 1 : 97) {
    if (size == second) continue;  // a whole message
    EXPECT_THROW(read_message(in_parts(text.substr(0, size), 1'000), 2,
                              [](const std::string&, const Tensor&) {}),
                 Error)
        << size;
  }
}

}  // namespace
}  // namespace leat
