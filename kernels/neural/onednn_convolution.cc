// oneDNN's primitives for convolutions. Images stay NHWC (or NCHW).
#include "kernels/neural/onednn_convolution.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace leat {
namespace {

using dnnl::memory;
using Dims = memory::dims;

constexpr memory::data_type float_type = memory::data_type::f32;

// One number per axis that windows slide along, in the form that oneDNN expects.
template <class T>
Dims spatial(const Convolution& c, T Window::*number) {
  if (c.is_of_images()) return {c.height.*number, c.width.*number};
  return {c.planes.*number, c.height.*number, c.width.*number};
}

memory::desc image(const Convolution& c, int64_t channels, const Dims& extents) {
  using Tag = memory::format_tag;
  Dims dims = {c.batch, channels};
  dims.insert(dims.end(), extents.begin(), extents.end());
  if (c.is_of_images()) return {dims, float_type, c.channels_first ? Tag::nchw : Tag::nhwc};
  return {dims, float_type, c.channels_first ? Tag::ncdhw : Tag::ndhwc};
}

// oneDNN's dimensions of the filter.
Dims filter_dims(const Convolution& c) {
  Dims dims = {c.out_channels / c.groups, c.depth()};
  if (c.groups > 1) dims.insert(dims.begin(), c.groups);
  const Dims sizes = spatial(c, &Window::size);
  dims.insert(dims.end(), sizes.begin(), sizes.end());
  return dims;
}

// How many neighbours along the first dimension lie together: a cut must not go through them.
int64_t inner_block(const memory::desc& desc) {
  const dnnl_blocking_desc_t& layout = desc.data.format_desc.blocking;
  int64_t out = 1;
  for (int i = 0; i < layout.inner_nblks; ++i)
    if (layout.inner_idxs[i] == 0) out *= layout.inner_blks[i];
  return out;
}

}  // namespace

void check_int_arithmetic(const Window& w) {
  constexpr int64_t most = int64_t{1} << 30;
  const bool fits = w.in + w.before + w.after < most && w.size < most &&
                    (w.size - 1) * w.dilation < most && w.dilation < most && w.stride < most &&
                    w.out * w.stride < 2 * most;
  if (!fits) {
    fail(Code::unimplemented, "a window of ", w.size, " with stride ", w.stride, " and dilation ",
         w.dilation, " over ", w.in, " inputs, padded by ", w.before, " and ", w.after,
         ", is too large");
  }
}

memory::desc plain_filter(const Convolution& c) {
  const int64_t row = c.depth() * c.out_channels;
  Dims strides = {1, c.out_channels, c.width.size * row, row};
  if (!c.is_of_images()) strides.insert(strides.begin() + 2, c.height.size * c.width.size * row);
  if (c.groups > 1) strides.insert(strides.begin(), c.out_channels / c.groups);
  return memory::desc(filter_dims(c), float_type, strides);
}

FilterReorder::FilterReorder(const memory::desc& from, const memory::desc& to, bool has_groups) {
  constexpr int64_t elements_per_block = 1 << 16, channels_of_block = 64;
  Dims dims = from.dims();
  int64_t elements = 1;
  for (const int64_t extent : dims) elements *= extent;
  // The output channels come first if there are no groups.
  const int64_t channels = dims[0], wanted = std::max<int64_t>(1, elements / elements_per_block);
  const int64_t unit = std::lcm(channels_of_block, std::lcm(inner_block(from), inner_block(to)));
  const int64_t block = has_groups ? channels : (channels / wanted + unit - 1) / unit * unit;
  Dims offsets(dims.size(), 0);
  for (int64_t& at = offsets[0]; at < channels; at += dims[0]) {
    dims[0] = std::min(block, channels - at);
    const memory::desc from_block = from.submemory_desc(dims, offsets),
                       to_block = to.submemory_desc(dims, offsets);
    blocks_.push_back({from_block, to_block,
                       dnnl::reorder(dnnl::reorder::primitive_desc(onednn_engine(), from_block,
                                                                   onednn_engine(), to_block))});
  }
}

void FilterReorder::run(Stream& stream, const float* from, float* to) const {
  stream.parallel_for(std::ssize(blocks_), 1, [&](int64_t begin, int64_t end) {
    use_one_onednn_thread();
    dnnl::stream here(onednn_engine());
    for (int64_t i = begin; i < end; ++i) {
      const Block& block = blocks_[i];
      block.reorder.execute(here, {{DNNL_ARG_FROM, onednn_memory(block.from, from)},
                                   {DNNL_ARG_TO, onednn_memory(block.to, to)}});
    }
  });
}

OneDnnConvolution::OneDnnConvolution(ConvolutionPass pass, const Convolution& c,
                                     const memory::desc* filter)
    : pass_(pass),
      x_(image(c, c.in_channels, spatial(c, &Window::in))),
      y_(image(c, c.out_channels, spatial(c, &Window::out))) {
  use_one_onednn_thread();
  const memory::desc any_filter(filter_dims(c), float_type, memory::format_tag::any);
  const memory::desc& wanted = filter != nullptr ? *filter : any_filter;
  const Dims strides = spatial(c, &Window::stride), before = spatial(c, &Window::before),
             after = spatial(c, &Window::after);
  Dims dilations = spatial(c, &Window::dilation);
  for (int64_t& dilation : dilations) --dilation;  // oneDNN counts the inputs between two taps
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, x_, wanted, y_, strides, dilations, before,
       after},
      attributes, onednn_engine());
  switch (pass) {
    case ConvolutionPass::forward:
      filter_ = forward.weights_desc();
      scratch_ = forward.scratchpad_desc();
      primitive_ = dnnl::convolution_forward(forward);
      return;
    case ConvolutionPass::input_gradient: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {algorithm, x_, wanted, y_, strides, dilations, before, after}, attributes,
          onednn_engine(), forward);
      filter_ = backward.weights_desc();
      scratch_ = backward.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_data(backward);
      return;
    }
    case ConvolutionPass::filter_gradient: {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {algorithm, x_, wanted, y_, strides, dilations, before, after}, attributes,
          onednn_engine(), forward);
      filter_ = backward.diff_weights_desc();
      scratch_ = backward.scratchpad_desc();
      primitive_ = dnnl::convolution_backward_weights(backward);
      return;
    }
  }
  fail(Code::internal, "unknown pass of a convolution");
}

void OneDnnConvolution::run(const float* x, const float* filter, const float* y,
                            void* scratch) const {
  use_one_onednn_thread();
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SCRATCHPAD, onednn_memory(scratch_, scratch)}};
  const auto add = [&](int forward, ConvolutionPass writer, int gradient, const memory::desc& desc,
                       const float* data) {
    arguments.emplace(pass_ == writer ? gradient : forward, onednn_memory(desc, data));
  };
  add(DNNL_ARG_SRC, ConvolutionPass::input_gradient, DNNL_ARG_DIFF_SRC, x_, x);
  add(DNNL_ARG_WEIGHTS, ConvolutionPass::filter_gradient, DNNL_ARG_DIFF_WEIGHTS, filter_, filter);
  arguments.emplace(pass_ == ConvolutionPass::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
                    onednn_memory(y_, y));
  dnnl::stream stream(onednn_engine());
  primitive_.execute(stream, arguments);
}

}  // namespace leat
