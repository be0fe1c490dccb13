// One convolution of oneDNN, on the calling thread. Only for .cc files.
#pragma once

#include "kernels/neural/convolution.h"
#include "kernels/onednn.h"

namespace leat {

// UNIMPLEMENTED if oneDNN, which computes places in an image as ints, would overflow.
void check_int_arithmetic(const Window& window);

// A filter as TensorFlow lays it out: [planes, height, width, depth, out_channels].
dnnl::memory::desc plain_filter(const Convolution& convolution);

// From one layout of a filter to another.
class FilterReorder {
 public:
  FilterReorder() = default;  // must not run
  FilterReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool has_groups);
  void run(Stream& stream, const float* from, float* to) const;

 private:
  // Some of a large filter's output channels. The descriptions have their place in the memory.
  struct Block {
    dnnl::memory::desc from, to;
    dnnl::reorder reorder;
  };
  std::vector<Block> blocks_;
};

// Images stay as they are; the filter has a layout of oneDNN's.
class OneDnnConvolution {
 public:
  // `filter` is the layout of a filter that others share; null: what oneDNN prefers.
  OneDnnConvolution(ConvolutionPass pass, const Convolution& convolution,
                    const dnnl::memory::desc* filter = nullptr);

  const dnnl::memory::desc& filter() const { return filter_; }
  size_t scratch_bytes() const { return scratch_.get_size(); }
  // Writes x, filter or y, as the pass says.
  void run(const float* x, const float* filter, const float* y, void* scratch) const;

 private:
  ConvolutionPass pass_;
  dnnl::memory::desc x_, y_, filter_, scratch_;
  dnnl::primitive primitive_;
};

}  // namespace leat
