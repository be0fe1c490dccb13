// Gradients of linear ops whose outputs are float only, too coarse for central differences: an op A
// and its gradient A' have sum(A(x) * dy) = sum(x * A'(dy)). The same holds for max pooling, which
// picks elements of x.
#include <gtest/gtest.h>

#include "kernels/examples.h"
#include "tests/support/expect_error.h"
#include "tests/support/run_op.h"

namespace leat {
namespace {

// Elements without a pattern.
Tensor numbers(const Shape& shape, int seed) {
  Tensor out(f32, shape);
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761U + 1;
  for (float& x : out.span<float>()) {
    state = state * 1664525U + 1013904223U;
    x = static_cast<float>(state >> 8) / (1 << 23) - 1;
  }
  return out;
}

double product(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.shape(), b.shape());
  double sum = 0;
  for (int64_t i = 0; i < a.elements(); ++i)
    sum += static_cast<double>(a.data<float>()[i]) * static_cast<double>(b.data<float>()[i]);
  return sum;
}

TEST(Adjoint, HoldsForResizedImages) {
  const Tensor x = numbers({2, 3, 4, 2}, 1), dy = numbers({2, 5, 7, 2}, 2);
  for (const std::string op : {"ResizeBilinear", "ResizeBicubic"}) {
    for (const AttrMap& attrs :
         {AttrMap{}, AttrMap{{"align_corners", true}}, AttrMap{{"half_pixel_centers", true}}}) {
      const Tensor y = run_op(op, {x, ints({5, 7})}, attrs)[0];
      const Tensor dx = run_op(op + "Grad", {dy, x}, attrs)[0];
      EXPECT_NEAR(product(y, dy), product(x, dx), 1e-4) << op;
      EXPECT_GT(std::abs(product(y, dy)), 1e-3) << op;
    }
  }
}

TEST(Adjoint, HoldsForScaledAndTranslatedImages) {
  const Tensor x = numbers({2, 5, 4, 2}, 1), dy = numbers({2, 3, 7, 2}, 2),
               scale = floats({0.6F, 1.7F}), translation = floats({0.3F, -0.4F});
  for (const char* kernel : {"lanczos3", "triangle", "keyscubic"}) {
    const AttrMap attrs = {{"kernel_type", kernel}};
    const Tensor y = run_op("ScaleAndTranslate", {x, ints({3, 7}), scale, translation}, attrs)[0];
    const Tensor dx = run_op("ScaleAndTranslateGrad", {dy, x, scale, translation}, attrs)[0];
    EXPECT_NEAR(product(y, dy), product(x, dx), 1e-4) << kernel;
    EXPECT_GT(std::abs(product(y, dy)), 1e-3) << kernel;
  }
}

TEST(Adjoint, RejectsGradientsForAnotherNumberOfImages) {
  for (const char* op : {"ResizeBilinearGrad", "ResizeBicubicGrad"}) {
    expect_error_with(Code::invalid_argument, "must have the same number of images", [&] {
      run_op(op, {numbers({1, 5, 7, 2}, 1), numbers({2, 3, 4, 2}, 2)});
    });
  }
}

TEST(Adjoint, HoldsForCrops) {
  const Tensor x = numbers({2, 5, 6, 3}, 1), dy = numbers({2, 3, 4, 3}, 2);
  const Tensor boxes = floats({2, 4}, {0.1F, 0.2F, 0.7F, 0.6F, -0.2F, 0, 1, 0.5F});
  for (const char* method : {"bilinear", "nearest"}) {
    const Tensor y =
        run_op("CropAndResize", {x, boxes, ints({1, 0}), ints({3, 4})}, {{"method", method}})[0];
    const Tensor dx =
        run_op("CropAndResizeGradImage", {dy, boxes, ints({1, 0}), ints({2, 5, 6, 3})},
               {{"T", f32}, {"method", method}})[0];
    EXPECT_NEAR(product(y, dy), product(x, dx), 1e-4) << method;
  }
}

TEST(Adjoint, RejectsGradientsOfOtherCrops) {
  const Tensor image = numbers({2, 5, 6, 3}, 1), boxes = numbers({2, 4}, 2), which = ints({1, 0});
  for (const auto& [crops, problem] :
       {std::pair{Shape{3, 2, 2, 3}, "boxes and grads have incompatible shape"},
        std::pair{Shape{2, 2, 2, 4}, "image and grads are incompatible"}}) {
    expect_error_with(Code::invalid_argument, problem, [&, crops = crops] {
      run_op("CropAndResizeGradImage", {numbers(crops, 3), boxes, which, ints({2, 5, 6, 3})},
             {{"T", f32}});
    });
    expect_error_with(Code::invalid_argument, problem, [&, crops = crops] {
      run_op("CropAndResizeGradBoxes", {numbers(crops, 3), image, boxes, which});
    });
  }
}

TEST(Adjoint, HoldsForPooledVolumes) {
  const AttrMap attrs = {{"ksize", std::vector<int64_t>{1, 3, 2, 2, 1}},
                         {"strides", std::vector<int64_t>{1, 2, 1, 1, 1}},
                         {"padding", "SAME"}};
  const Tensor x = numbers({2, 3, 2, 4, 2}, 1), dy = numbers({2, 2, 2, 4, 2}, 2);
  const Tensor y = run_op("MaxPool3D", {x}, attrs)[0];
  EXPECT_NEAR(product(y, dy), product(x, run_op("MaxPool3DGrad", {x, y, dy}, attrs)[0]), 1e-4);
  const Tensor picked = run_op("MaxPool3DGradGrad", {x, y, x}, attrs)[0];
  EXPECT_EQ(product(picked, dy), product(y, dy));
}

}  // namespace
}  // namespace leat
