// Resized images: every number of channels has loops of its own.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/ops.h"
#include "kernels/examples.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

constexpr int64_t height = 7, width = 40;

Tensor image(int64_t channels) {
  Tensor out(f32, {2, height, width, channels});
  for (int64_t i = 0; i < out.elements(); ++i)
    out.data<float>()[i] = std::sin(static_cast<float>(3 * i * i % 1009));
  return out;
}

Tensor channel(const Tensor& images, int64_t c) {
  const Shape& shape = images.shape();
  return run_op("Slice",
                {images, longs({0, 0, 0, c}), longs({shape[0], shape[1], shape[2], 1})})[0];
}

// 3 columns of the output read less than half of the 40: another loop.
TEST(Resize, ChannelsAreResizedAlike) {
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    for (const auto& [rows, columns] : {std::pair{5, 23}, {13, 90}, {2, 3}, {1, 1}, {7, 40}}) {
      const Tensor size = ints({rows, columns});
      for (const int64_t channels : {2, 3, 4, 5}) {
        const Tensor x = image(channels), y = run_op(op, {x, size})[0];
        for (int64_t c = 0; c < channels; ++c) {
          const Tensor alone = run_op(op, {channel(x, c), size})[0], one = channel(y, c);
          ASSERT_EQ(alone.shape(), one.shape());
          for (int64_t i = 0; i < one.elements(); ++i) {
            ASSERT_NEAR(one.data<float>()[i], alone.data<float>()[i], 1e-6)
                << op << " to " << rows << " x " << columns << ", channel " << c << " of "
                << channels << ", pixel " << i;
          }
        }
      }
    }
  }
}

// The loop over rows is another than the one over columns.
TEST(Resize, RowsAreResizedAsColumnsAre) {
  const auto turned = [](const Tensor& images) {
    return run_op("Transpose", {images, ints({0, 2, 1, 3})})[0];
  };
  for (const char* op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    for (const auto& [rows, columns] : {std::pair{5, 23}, {13, 90}, {2, 3}, {1, 1}, {7, 40}}) {
      for (const int64_t channels : {1, 3, 4}) {
        const Tensor x = image(channels), y = run_op(op, {x, ints({rows, columns})})[0];
        const Tensor other = turned(run_op(op, {turned(x), ints({columns, rows})})[0]);
        ASSERT_EQ(y.shape(), other.shape());
        for (int64_t i = 0; i < y.elements(); ++i) {
          ASSERT_NEAR(y.data<float>()[i], other.data<float>()[i], 1e-6)
              << op << " to " << rows << " x " << columns << " x " << channels << ", element " << i;
        }
      }
    }
  }
}

// A plane is interpolated without error, whatever the loop.
TEST(Resize, InterpolatesAPlane) {
  for (const int64_t channels : {1, 2, 3, 4}) {
    Tensor x(f32, {1, height, width, channels});
    for (int64_t i = 0; i < x.elements(); ++i) {
      const int64_t pixel = i / channels;
      x.data<float>()[i] =
          static_cast<float>(pixel / width + 10 * (pixel % width) + 1000 * (i % channels));
    }
    for (const auto& [rows, columns] : {std::pair{13, 79}, {3, 3}, {2, 20}}) {
      const Tensor y =
          run_op("ResizeBilinear", {x, ints({rows, columns})}, {{"align_corners", true}})[0];
      for (int64_t i = 0; i < y.elements(); ++i) {
        const int64_t pixel = i / channels;
        const double row = static_cast<double>(pixel / columns) * (height - 1) / (rows - 1),
                     column = static_cast<double>(pixel % columns) * (width - 1) / (columns - 1);
        ASSERT_NEAR(y.data<float>()[i],
                    row + 10 * column + 1000.0 * static_cast<double>(i % channels), 1e-3)
            << i << " of " << rows << " x " << columns << " x " << channels;
      }
    }
  }
}

TEST(AdjustContrast, KeepsTheMeanOfEveryChannel) {
  for (const int64_t channels : {1, 3, 5, 70}) {
    const Tensor x = image(channels), y = run_op("AdjustContrastv2", {x, Tensor::scalar(3.0F)})[0];
    const int64_t pixels = height * width;
    for (int64_t n = 0; n < 2; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        const auto at = [&](const Tensor& t, int64_t i) {
          return static_cast<double>(t.data<float>()[(n * pixels + i) * channels + c]);
        };
        double mean = 0;
        for (int64_t i = 0; i < pixels; ++i) mean += at(x, i) / static_cast<double>(pixels);
        for (int64_t i = 0; i < pixels; ++i)
          ASSERT_NEAR(at(y, i), (at(x, i) - mean) * 3 + mean, 1e-5) << i << " of channel " << c;
      }
    }
  }
}

}  // namespace
}  // namespace leat
