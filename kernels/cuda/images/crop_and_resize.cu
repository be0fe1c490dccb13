// CropAndResize and its gradients on the GPU. The gradient of the image sorts what it adds by pixel
// (scatter.cuh) and adds it in the CPU's order; that of the boxes has a block for each box. A box
// of an image that is not there lies outside. Compiled without fused multiply-adds: a place at the
// edge of an image is rounded as on the CPU, and lies within it on both or on neither.
#include "graph/op_def.h"
#include "kernels/cuda/row_reduce.cuh"
#include "kernels/cuda/sorting/scatter.cuh"
#include "kernels/images/crop_places.h"
#include "kernels/moves/moves.h"

namespace leat {
namespace cuda {
namespace {

// Pixel `number` of all crops.
struct CropPixel {
  int64_t box, row, column;
  LEAT_DEVICE CropPixel(const Crops& crops, int64_t number)
      : box(number / crops.box_pixels()),
        row(number / crops.columns.crop % crops.rows.crop),
        column(number % crops.columns.crop) {}
};

// ---- CropAndResize

template <class T>
struct CropElement {
  Crops crops;
  float outside;

  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    const CropPixel pixel(crops, i / crops.channels);
    const int64_t image = p.input<int32_t>(2)[pixel.box];
    const Around around(crops, p.input<float>(1) + 4 * pixel.box, pixel.row, pixel.column);
    p.output<float>()[i] = crops.has(image) && around.is_inside
                               ? inside(p.input<T>(0) + i % crops.channels, image, around)
                               : outside;
  }

 private:
  LEAT_DEVICE float inside(const T* channel, int64_t image, const Around& around) const {
    const auto at = [&](int corner) {
      return static_cast<float>(
          channel[crops.pixel(image, around.row(corner), around.column(corner))]);
    };
    const Corners corners{at(0), at(1), at(2), at(3)};
    return corners.between(around.rows.lerp, around.columns.lerp);
  }
};

// ---- CropAndResizeGradImage: an addend is of a crop's pixel and of one of the corners around it.

constexpr int64_t corners_of(const Crops& crops) { return crops.is_nearest ? 1 : 4; }

// The pixels of the images that the addends go to; none is the number of all pixels.
__global__ void __launch_bounds__(threads_per_block)
    pixels_kernel(Crops crops, const float* boxes, const int32_t* box_image, uint32_t* pixels) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= crops.boxes * crops.box_pixels()) return;
  const CropPixel pixel(crops, i);
  const int64_t image = box_image[pixel.box], corners = corners_of(crops);
  const Around around(crops, boxes + 4 * pixel.box, pixel.row, pixel.column);
  for (int corner = 0; corner < corners; ++corner) {
    const int64_t to = crops.has(image) && around.is_inside
                           ? crops.pixel_number(image, around.row(corner), around.column(corner))
                           : crops.image_pixels();
    pixels[i * corners + corner] = static_cast<uint32_t>(to);
  }
}

template <class T>
__global__ void __launch_bounds__(threads_per_block)
    add_kernel(Crops crops, int64_t addends, SortedUpdates sorted, const float* dy,
               const float* boxes, T* dx) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= addends * crops.channels) return;
  const int64_t first = i / crops.channels, channel = i % crops.channels;
  const uint32_t to = sorted.slices[first];
  if (to >= crops.image_pixels() || (first > 0 && sorted.slices[first - 1] == to)) return;
  const int64_t corners = corners_of(crops);
  T total = T(0);
  for (int64_t k = first; k < addends && sorted.slices[k] == to; ++k) {
    const int64_t from = sorted.numbers[k] / corners;
    const CropPixel pixel(crops, from);
    const Around around(crops, boxes + 4 * pixel.box, pixel.row, pixel.column);
    const float addend = around.weight(static_cast<int>(sorted.numbers[k] % corners)) *
                         dy[from * crops.channels + channel];
    total = static_cast<T>(widened(total) + static_cast<ComputeType<T>>(addend));
  }
  dx[to * crops.channels + channel] = total;
}

template <class T>
BoundKernel bind_image_gradient(const KernelRequest& r) {
  const Crops crops(r.node, r.outputs[0].shape, r.inputs[0].shape);
  const int64_t elements = crops.image_pixels() * crops.channels,
                pixels = crops.boxes * crops.box_pixels(), addends = pixels * corners_of(crops);
  if (elements == 0) return {};
  check(addends < UINT32_MAX && crops.image_pixels() < UINT32_MAX, r.node.op, " of ", pixels,
        " pixels of crops is too large for a GPU: place the node on a CPU");
  return BoundKernel::of([=](const Arguments& a) {
           const cudaStream_t stream = cuda_stream(a);
           fill_elements(a, a.output<T>(), elements);
           if (addends == 0) return;
           launch(pixels_kernel, blocks_for(pixels), threads_per_block, 0, stream, crops,
                  a.input<float>(1), a.input<int32_t>(2), static_cast<uint32_t*>(a.workspace));
           const SortedUpdates sorted =
               enqueue_sorted_slices(stream, addends, crops.image_pixels(), a.workspace);
           launch(add_kernel<T>, blocks_for(addends * crops.channels), threads_per_block, 0, stream,
                  crops, addends, sorted, a.input<float>(0), a.input<float>(1), a.output<T>());
         })
      .with_workspace(addends == 0 ? 0 : sort_workspace(addends));
}

// ---- CropAndResizeGradBoxes

// What one element of a crop adds to the gradient of its box.
template <class T>
LEAT_DEVICE void add_element(const Crops& crops, const CropPixel& pixel, const float* box,
                             const T* channel, int64_t image, float dy, float* dbox) {
  const Around around(crops, box, pixel.row, pixel.column);
  if (!around.is_inside) return;
  const auto at = [&](int corner) {
    return static_cast<float>(
        channel[crops.pixel(image, around.row(corner), around.column(corner))]);
  };
  const Corners corners{at(0), at(1), at(2), at(3)};
  crops.rows.add_to_edges(pixel.row, dy * corners.down(around.columns.lerp), dbox[0], dbox[2]);
  crops.columns.add_to_edges(pixel.column, dy * corners.right(around.rows.lerp), dbox[1], dbox[3]);
}

template <class T>
__global__ void __launch_bounds__(max_row_threads)
    boxes_kernel(Crops crops, const float* dy, const T* images, const float* boxes,
                 const int32_t* box_image, float* dboxes) {
  __shared__ float shared[max_row_threads];
  const int64_t box = blockIdx.x, image = box_image[box];
  const int64_t elements = crops.box_pixels() * crops.channels;
  float dbox[4] = {};
  for (int64_t i = threadIdx.x; crops.has(image) && i < elements; i += blockDim.x) {
    const int64_t element = box * elements + i;
    add_element(crops, CropPixel(crops, element / crops.channels), boxes + 4 * box,
                images + element % crops.channels, image, dy[element], dbox);
  }
  for (int edge = 0; edge < 4; ++edge) {
    const float sum = reduce_block(dbox[edge], shared, [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) dboxes[4 * box + edge] = sum;
  }
}

template <class T>
BoundKernel bind_box_gradient(const KernelRequest& r) {
  const Crops crops(r.node, r.inputs[1].shape, r.inputs[0].shape);
  if (crops.boxes == 0) return {};
  return BoundKernel::of([crops](const Arguments& a) {
    launch(boxes_kernel<T>, as_blocks(crops.boxes),
           row_threads(crops.box_pixels() * crops.channels), 0, cuda_stream(a), crops,
           a.input<float>(0), a.input<T>(1), a.input<float>(2), a.input<int32_t>(3),
           a.output<float>());
  });
}

using ImageTypes = Types<float, double, half, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t>;

const OpKernels crop{
    "CropAndResize",
    typed_kernels("T", ImageTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
      const Crops crops(r.node, r.inputs[0].shape, r.outputs[0].shape);
      return bind_indexed(r, r.outputs[0].shape.elements(), 0,
                          CropElement<T>{crops, r.attr<float>("extrapolation_value")});
    })};
const OpKernels image_gradient{"CropAndResizeGradImage",
                               typed_kernels("T", Types<float, half, double>{},
                                             []<class T>(TypeTag<T>, const KernelRequest& r) {
                                               return bind_image_gradient<T>(r);
                                             })};
const OpKernels box_gradient{
    "CropAndResizeGradBoxes",
    typed_kernels("T", ImageTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
      return bind_box_gradient<T>(r);
    })};

}  // namespace
}  // namespace cuda
}  // namespace leat
