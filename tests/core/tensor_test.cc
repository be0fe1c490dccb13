#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <sstream>
#include <thread>

#include "core/memory/host_memory.h"
#include "core/visit_dtype.h"
#include "tests/support/sanitizers.h"

namespace leat {
namespace {

TEST(Tensor, HoldsElementsOfEveryType) {
  for (int number = 0; number < 32; ++number) {
    visit_dtype(static_cast<DType>(number), [&]<class T>(TypeTag<T>) {
      const Tensor tensor(dtype_of<T>, {2, 3});
      EXPECT_EQ(tensor.elements(), 6);
      EXPECT_EQ(tensor.span<T>().size(), 6u);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.raw()) % (dtype_of<T> == DType::string ? 8 : 64),
                0u);
    });
  }
  EXPECT_THROW(Tensor(DType::resource, {}), Error);
  EXPECT_THROW(Tensor(f32, {any}), Error);
  EXPECT_THROW(Tensor(f32, {int64_t{1} << 62}), Error);
}

TEST(Tensor, RejectsMoreThanAllMemory) {
  try {
    Tensor(f32, {int64_t{1} << 50});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
    EXPECT_THAT(error.message(), testing::HasSubstr("1125899906842624 elements of 4 bytes"));
  }
}

TEST(Tensor, RejectsMoreThanTheFreeMemory) {
  // Less than the machine has: the system itself would agree.
  const int64_t bytes = static_cast<int64_t>(available_host_memory()) + (int64_t{512} << 20);
  for (const auto& [dtype, size] : {std::pair(DType::u8, 1), std::pair(DType::string, 32)}) {
    try {
      Tensor(dtype, {bytes / size});
      ADD_FAILURE() << dtype;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::resource_exhausted);
      EXPECT_THAT(error.message(), testing::HasSubstr(std::to_string(bytes / size * size)));
      EXPECT_THAT(error.message(), testing::HasSubstr("bytes are available"));
    }
  }
}

// Each tensor would fit, all of them do not. The system agrees until somebody writes into them.
TEST(Tensor, CountsMemoryPromisedToOtherTensors) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer limits what can be mapped";
#endif
  for (const int64_t megabytes : {1'024, 24}) {
    const auto available = static_cast<int64_t>(available_host_memory());
    const int64_t bytes = megabytes << 20;
    std::vector<Tensor> tensors;
    try {
      for (int64_t i = 0; i < 2 * available / bytes; ++i)
        tensors.emplace_back(DType::u8, Shape{bytes});
      ADD_FAILURE() << tensors.size() << " of " << bytes << " bytes, " << available << " are there";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::resource_exhausted);
      EXPECT_LT(std::ssize(tensors) * bytes, available);
    }
    tensors.clear();
    EXPECT_NO_THROW(Tensor(DType::u8, {int64_t{128} << 20})) << "they are gone";
  }
}

TEST(Tensor, ReadingAsAnotherTypeFails) {
  const Tensor tensor = Tensor::of<float>({2}, {1, 2});
  EXPECT_THROW(tensor.data<int32_t>(), Error);
  EXPECT_THROW(tensor.item<float>(), Error);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), Error);
  EXPECT_EQ(Tensor::scalar(7).item<int32_t>(), 7);
}

TEST(Tensor, CopiesShareMemoryClonesDoNot) {
  Tensor tensor = Tensor::of<float>({2}, {1, 2});
  EXPECT_TRUE(is_sole_handle(tensor.buffer()));
  const Tensor copy = tensor, clone = tensor.clone(), reshaped = tensor.reshaped({2, 1});
  EXPECT_FALSE(is_sole_handle(tensor.buffer()));
  tensor.data<float>()[0] = 5;
  EXPECT_EQ(copy.data<float>()[0], 5);
  EXPECT_EQ(reshaped.data<float>()[0], 5);
  EXPECT_EQ(clone.data<float>()[0], 1);
  EXPECT_THROW(tensor.reshaped({3}), Error);
  EXPECT_FALSE(Tensor().clone().is_valid());
}

TEST(Tensor, ClonesStrings) {
  Tensor tensor = Tensor::of<std::string>({2}, {"a", std::string(100, 'b')});
  const Tensor clone = tensor.clone();
  tensor.data<std::string>()[0] = "changed";
  EXPECT_EQ(clone.to_string(), "string[2] [\"a\", \"" + std::string(100, 'b') + "\"]");
  EXPECT_THROW(Tensor(DType::string, {1}, Buffer::allocate(64)), Error);
}

TEST(Tensor, ManyStringsTakeABlockAgain) {
#ifdef LEAT_UNDER_SANITIZER
  GTEST_SKIP() << "a sanitizer sees freed memory only if it is really freed";
#endif
  const Shape shape{5000};
  const void* before = nullptr;
  {
    const Tensor texts = Tensor::full(shape, std::string(100, 'a'));
    before = texts.raw();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(before) % 4096, 0u) << "a block, not of the heap";
  }
  const Tensor again(DType::string, shape);
  EXPECT_EQ(again.raw(), before);
  for (const std::string& text : again.span<std::string>()) EXPECT_EQ(text, "");
}

TEST(Tensor, WrapsExistingMemory) {
  float values[4] = {1, 2, 3, 4};
  int released = 0;
  {
    const auto buffer = std::make_shared<Buffer>(
        values, sizeof values, [&](void* data) { released += data == values ? 1 : 100; });
    const Tensor tensor(f32, {2}, buffer, 8);
    EXPECT_EQ(tensor.data<float>()[1], 4);
    EXPECT_THROW(Tensor(f32, {2}, buffer, 12), Error);
    EXPECT_THROW(Tensor(f32, {5}, buffer), Error);
    EXPECT_THROW(Tensor(f32, {(int64_t{1} << 62) + 1}, buffer), Error) << "4 bytes, modulo 2^64";
  }
  EXPECT_EQ(released, 1);
}

TEST(Tensor, PartMustLieWithinTheTensor) {
  const Tensor whole = Tensor::of<float>({4}, {1, 2, 3, 4});
  EXPECT_EQ(whole.part({2}, 4).data<float>()[1], 3);
  EXPECT_THROW(whole.part({2}, 12), Error);
  EXPECT_THROW(whole.part({int64_t{1} << 62}, 0), Error) << "its bytes are 0 in 64 bits";
}

TEST(Tensor, PrintsItsElements) {
  EXPECT_EQ(Tensor::of<float>({2, 2}, {1, 2, 3, 4}).to_string(), "float[2,2] [[1, 2], [3, 4]]");
  EXPECT_EQ(Tensor::of<float>({3}, {1, 2, 3}).to_string(2), "float[3] [1, 2, …]");
  EXPECT_EQ(Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4}).to_string(3),
            "float[2,1,2] [[[1, 2]], [[3, …]]]");
  EXPECT_EQ(Tensor::of<float>({2, 2}, {1, 2, 3, 4}).to_string(2), "float[2,2] [[1, 2], …]");
  EXPECT_EQ(Tensor(DType::f32, {0, 2}).to_string(), "float[0,2] []");
  EXPECT_EQ(Tensor::scalar<int8_t>(-3).to_string(), "int8[] -3");
  EXPECT_EQ(Tensor::scalar(half(0.5f)).to_string(), "half[] 0.5");
  EXPECT_EQ(Tensor().to_string(), "<no tensor>");
}

std::string streamed(const Tensor& tensor) {
  std::ostringstream out;
  out << tensor;
  return out.str();
}

Tensor counted(const Shape& shape) {
  Tensor out(DType::i32, shape);
  std::iota(out.span<int32_t>().begin(), out.span<int32_t>().end(), 0);
  return out;
}

TEST(Tensor, StreamsAsNumPyPrints) {
  EXPECT_EQ(streamed(Tensor::of({{1, 2}, {3, 4}})), "int32[2,2] [[1, 2], [3, 4]]");
  EXPECT_EQ(streamed(counted({10})), "int32[10] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
  EXPECT_EQ(streamed(counted({3, 3})), "int32[3,3]\n[[0, 1, 2],\n [3, 4, 5],\n [6, 7, 8]]");
  EXPECT_EQ(streamed(counted({2, 2, 3})),
            "int32[2,2,3]\n[[[0, 1, 2],\n  [3, 4, 5]],\n\n [[6, 7, 8],\n  [9, 10, 11]]]");
  EXPECT_EQ(streamed(counted({1001})), "int32[1001] [0, 1, 2, ..., 998, 999, 1000]");
  EXPECT_EQ(streamed(counted({7, 200})),
            "int32[7,200]\n[[0, 1, 2, ..., 197, 198, 199],\n [200, 201, 202, ..., 397, 398, 399],\n"
            " [400, 401, 402, ..., 597, 598, 599],\n ...,\n"
            " [800, 801, 802, ..., 997, 998, 999],\n"
            " [1000, 1001, 1002, ..., 1197, 1198, 1199],\n"
            " [1200, 1201, 1202, ..., 1397, 1398, 1399]]");
  const std::string whole = streamed(counted({1000}));
  EXPECT_EQ(std::count(whole.begin(), whole.end(), ','), 999);
  EXPECT_EQ(streamed(Tensor()), "<no tensor>");
}

TEST(Tensor, IsShortInMessages) {
  EXPECT_EQ(concat("got ", counted({2, 50})), "got int32[2,50] [[0, 1, 2, 3, 4, 5, 6, 7, …]]");
}

TEST(Tensor, ReadsIntegersOfBothWidths) {
  EXPECT_EQ(to_int64s(Tensor::of<int32_t>({2}, {-1, 2})), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(to_int64s(Tensor::scalar<int64_t>(5)), (std::vector<int64_t>{5}));
  EXPECT_THROW(to_int64s(Tensor::scalar(1.0f)), Error);
}

TEST(Tensor, OfOneValue) {
  EXPECT_EQ(Tensor::ones({2}, DType::f16).to_vector<half>(), (std::vector<half>(2, half(1.0F))));
  EXPECT_EQ(Tensor::ones({}).item<float>(), 1);
  EXPECT_TRUE(Tensor::ones({1}, DType::boolean).item<bool>());
  EXPECT_EQ(Tensor::full({2, 2}, int64_t{7}).to_vector<int64_t>(), (std::vector<int64_t>(4, 7)));
  EXPECT_EQ(Tensor::full({2}, std::string("a")).to_vector<std::string>(),
            (std::vector<std::string>{"a", "a"}));
  EXPECT_THROW(Tensor::ones({2}, DType::string), Error);
}

// Vectors of bools are no arrays.
TEST(Tensor, OfBools) {
  const std::vector<bool> bools = {true, false, false};
  EXPECT_EQ(Tensor::of(bools).to_vector<bool>(), bools);
  EXPECT_EQ(Tensor::of({3, 1}, bools).shape(), (Shape{3, 1}));
  EXPECT_THROW(Tensor::of({2}, bools), Error);
}

// Once a handle is alone with the buffer, it sees the value that a dropped handle wrote.
TEST(Tensor, SoleHandleSeesEarlierWrites) {
  for (int round = 0; round < 100; ++round) {
    Tensor mine = Tensor::of<float>({1}, {0});
    std::thread other([copy = mine]() mutable {
      copy.data<float>()[0] = 1;
      copy = Tensor();
    });
    while (!is_sole_handle(mine.buffer())) std::this_thread::yield();
    EXPECT_EQ(mine.data<float>()[0], 1);
    mine.data<float>()[0] = 2;
    other.join();
  }
}

}  // namespace
}  // namespace leat
