// Poolings of images and of volumes, below the ops. Kernels and shape functions read the attributes
// ksize, strides, padding, data_format and, where the op has it, explicit_paddings.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/cpu.h"

namespace leat {

// Inputs as in the ops MaxPool and AvgPool; MaxPoolGrad: x, y, dy; MaxPoolGradGrad: x, y, the
// gradient's gradient; _MaxPoolReluGrad as MaxPoolGrad; AvgPoolGrad: the shape of x, dy;
// MaxPoolGradWithArgmax: x, dy, the target index of each element of dy.
void infer_pool(ShapeContext& c);
void infer_max_pool_gradient(ShapeContext& c);
void infer_max_pool_gradient_gradient(ShapeContext& c);
void infer_average_pool_gradient(ShapeContext& c);
void infer_max_pool_argmax(ShapeContext& c);
void infer_max_pool_argmax_gradient(ShapeContext& c);

Kernel max_pool_kernel();
Kernel max_pool_gradient_kernel();
Kernel max_pool_relu_gradient_kernel();
Kernel max_pool_gradient_gradient_kernel();
Kernel average_pool_kernel();
Kernel average_pool_gradient_kernel();
Kernel max_pool_argmax_kernel();
Kernel max_pool_argmax_gradient_kernel();

}  // namespace leat
