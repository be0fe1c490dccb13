// oneDNN's convolutions. Images stay NHWC. Filters are reordered to the primitive's format, in the
// workspace: they are small, and new at every training step. The batch is cut into chunks that our
// pool runs.
#include <cstring>

#include "core/step_end.h"
#include "kernels/cpu.h"
#include "kernels/neural/convolution.h"
#include "kernels/onednn.h"

namespace leat {
namespace {

using dnnl::memory;
using Dims = memory::dims;

// Some hundred microseconds of work are worth a second thread. In a filter's gradient, each chunk
// has a filter of its own, and these are added up: such chunks are larger.
constexpr double flops_per_chunk = 30e6, flops_per_filter_chunk = 200e6;
constexpr int64_t max_chunks = 16;
constexpr memory::data_type float_type = memory::data_type::f32;

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

// One number per axis that windows slide along, in the form that oneDNN expects.
template <class T>
Dims spatial(const Convolution& c, T Window::*number) {
  if (c.is_of_images()) return {c.height.*number, c.width.*number};
  return {c.planes.*number, c.height.*number, c.width.*number};
}

memory::desc image(const Convolution& c, int64_t batch, int64_t channels, const Dims& extents) {
  using Tag = memory::format_tag;
  Dims dims = {batch, channels};
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

// As TensorFlow lays them out: [planes, height, width, depth, out_channels].
memory::desc plain_filter(const Convolution& c) {
  const int64_t row = c.depth() * c.out_channels;
  Dims strides = {1, c.out_channels, c.width.size * row, row};
  if (!c.is_of_images()) strides.insert(strides.begin() + 2, c.height.size * c.width.size * row);
  if (c.groups > 1) strides.insert(strides.begin(), c.out_channels / c.groups);
  return memory::desc(filter_dims(c), float_type, strides);
}

}  // namespace

// oneDNN's kernels compute places in an image as ints.
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

struct OneDnnConvolution::Parts {
  // The primitive for a number of images, and the descriptions of its operands.
  struct Primitive {
    dnnl::primitive run;
    memory::desc x, y, filter, scratch;
  };
  ConvolutionPass pass;
  int64_t batch, images;  // of all chunks; of each, but the last may have fewer
  int64_t chunks;
  int64_t x_per_image, y_per_image, filter_elements;
  memory::desc plain;
  std::vector<Primitive> primitives;     // one for all chunks but the last, one for the last
  dnnl::primitive to_blocked, to_plain;  // of the filter, where the primitive wants another layout
  size_t filter_bytes, scratch_bytes;    // each rounded up to 64

  const Primitive& primitive(int64_t chunk) const {
    return chunk + 1 == chunks ? primitives.back() : primitives.front();
  }
  bool is_reordered() const { return primitives[0].filter != plain; }
  // The workspace: blocked filters (one, or one per chunk), then the scratch memory of each chunk.
  int64_t filters() const { return pass == ConvolutionPass::filter_gradient ? chunks : 1; }
  size_t workspace_bytes() const { return filters() * filter_bytes + chunks * scratch_bytes; }

  void run_chunk(int64_t chunk, const float* x, const float* filter, const float* y,
                 void* workspace) const;
  void run_filter_gradient(Stream& stream, const float* x, const float* dy, float* filter,
                           char* workspace) const;
};

namespace {

template <class Parts>
typename Parts::Primitive make_primitive(ConvolutionPass pass, const Convolution& c, int64_t images,
                                         const memory::desc& filter) {
  const memory::desc x = image(c, images, c.in_channels, spatial(c, &Window::in)),
                     y = image(c, images, c.out_channels, spatial(c, &Window::out));
  const Dims strides = spatial(c, &Window::stride), before = spatial(c, &Window::before),
             after = spatial(c, &Window::after);
  Dims dilations = spatial(c, &Window::dilation);
  for (int64_t& dilation : dilations) --dilation;  // oneDNN counts the inputs between two taps
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto algorithm = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, algorithm, x, filter, y, strides, dilations, before,
       after},
      attributes, onednn_engine());
  switch (pass) {
    case ConvolutionPass::forward:
      return {dnnl::convolution_forward(forward), x, y, forward.weights_desc(),
              forward.scratchpad_desc()};
    case ConvolutionPass::input_gradient: {
      const dnnl::convolution_backward_data::primitive_desc backward(
          {algorithm, x, filter, y, strides, dilations, before, after}, attributes, onednn_engine(),
          forward);
      return {dnnl::convolution_backward_data(backward), x, y, backward.weights_desc(),
              backward.scratchpad_desc()};
    }
    case ConvolutionPass::filter_gradient: {
      const dnnl::convolution_backward_weights::primitive_desc backward(
          {algorithm, x, filter, y, strides, dilations, before, after}, attributes, onednn_engine(),
          forward);
      return {dnnl::convolution_backward_weights(backward), x, y, backward.diff_weights_desc(),
              backward.scratchpad_desc()};
    }
  }
  fail(Code::internal, "unknown pass of a convolution");
}

dnnl::primitive reorder(const memory::desc& from, const memory::desc& to) {
  return dnnl::reorder(dnnl::reorder::primitive_desc(onednn_engine(), from, onednn_engine(), to));
}

void run_reorder(const dnnl::primitive& reorder, const memory::desc& from_desc, const void* from,
                 const memory::desc& to_desc, void* to) {
  dnnl::stream stream(onednn_engine());
  reorder.execute(stream, {{DNNL_ARG_FROM, onednn_memory(from_desc, from)},
                           {DNNL_ARG_TO, onednn_memory(to_desc, to)}});
}

}  // namespace

OneDnnConvolution::OneDnnConvolution(ConvolutionPass pass, const Convolution& c) {
  for (const Window& w : {c.planes, c.height, c.width}) check_int_arithmetic(w);
  use_one_onednn_thread();
  auto parts = std::make_shared<Parts>();
  parts->pass = pass;
  parts->batch = c.batch;
  const double chunk_flops =
      pass == ConvolutionPass::filter_gradient ? flops_per_filter_chunk : flops_per_chunk;
  const int64_t wanted = std::clamp<int64_t>(static_cast<int64_t>(c.flops() / chunk_flops), 1,
                                             std::min(c.batch, max_chunks));
  parts->images = (c.batch + wanted - 1) / wanted;
  parts->chunks = (c.batch + parts->images - 1) / parts->images;
  parts->x_per_image = c.x_elements() / c.batch;
  parts->y_per_image = c.y_elements() / c.batch;
  parts->filter_elements = c.filter_elements();
  parts->plain = plain_filter(c);
  const int64_t last = c.batch - (parts->chunks - 1) * parts->images;
  const memory::desc any_layout(filter_dims(c), float_type, memory::format_tag::any);
  parts->primitives.push_back(
      make_primitive<Parts>(pass, c, std::min(c.batch, parts->images), any_layout));
  const memory::desc blocked = parts->primitives[0].filter;
  if (last != parts->images)
    parts->primitives.push_back(make_primitive<Parts>(pass, c, last, blocked));
  if (parts->is_reordered()) {
    if (pass == ConvolutionPass::filter_gradient) {
      parts->to_plain = reorder(blocked, parts->plain);
    } else {
      parts->to_blocked = reorder(parts->plain, blocked);
    }
  }
  parts->filter_bytes = aligned(blocked.get_size());
  parts->scratch_bytes = 0;
  for (const Parts::Primitive& p : parts->primitives) {
    parts->scratch_bytes = std::max(parts->scratch_bytes, aligned(p.scratch.get_size()));
  }
  parts_ = std::move(parts);
}

size_t OneDnnConvolution::workspace_bytes() const { return parts_->workspace_bytes(); }

// x, y and filter belong to the whole batch; in a filter_gradient, the filter belongs to this
// chunk.
void OneDnnConvolution::Parts::run_chunk(int64_t chunk, const float* x, const float* filter,
                                         const float* y, void* workspace) const {
  StepEnd::ask();
  use_one_onednn_thread();
  const Primitive& p = primitive(chunk);
  x += chunk * images * x_per_image;
  y += chunk * images * y_per_image;
  std::unordered_map<int, memory> arguments = {
      {DNNL_ARG_SCRATCHPAD,
       onednn_memory(p.scratch, static_cast<char*>(workspace) + filters() * filter_bytes +
                                    chunk * scratch_bytes)}};
  const auto add = [&](int forward, ConvolutionPass writer, int gradient, const memory::desc& desc,
                       const float* data) {
    arguments.emplace(pass == writer ? gradient : forward, onednn_memory(desc, data));
  };
  add(DNNL_ARG_SRC, ConvolutionPass::input_gradient, DNNL_ARG_DIFF_SRC, p.x, x);
  add(DNNL_ARG_WEIGHTS, ConvolutionPass::filter_gradient, DNNL_ARG_DIFF_WEIGHTS, p.filter, filter);
  arguments.emplace(pass == ConvolutionPass::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST,
                    onednn_memory(p.y, y));
  dnnl::stream stream(onednn_engine());
  p.run.execute(stream, arguments);
}

// Each chunk has a filter of its own in the workspace; they are added in order, so that equal
// inputs give equal sums.
void OneDnnConvolution::Parts::run_filter_gradient(Stream& stream, const float* x, const float* dy,
                                                   float* filter, char* workspace) const {
  const auto of_chunk = [&](int64_t chunk) {
    return reinterpret_cast<float*>(workspace + chunk * filter_bytes);
  };
  stream.parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk)
      run_chunk(chunk, x, of_chunk(chunk), dy, workspace);
  });
  const int64_t floats = static_cast<int64_t>(primitives[0].filter.get_size() / sizeof(float));
  float* sum = of_chunk(0);
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    const float* term = of_chunk(chunk);
    StepEnd::ask();
    vectorized([=]() LEAT_INLINE {
      for (int64_t i = 0; i < floats; ++i) sum[i] += term[i];
    });
  }
  if (is_reordered()) {
    run_reorder(to_plain, primitives[0].filter, sum, plain, filter);
  } else {
    std::copy_n(sum, filter_elements, filter);
  }
}

void OneDnnConvolution::operator()(Stream& stream, const float* a, const float* b, float* out,
                                   void* workspace) const {
  const Parts& p = *parts_;
  use_one_onednn_thread();
  if (p.pass == ConvolutionPass::filter_gradient) {
    return p.run_filter_gradient(stream, a, b, out, static_cast<char*>(workspace));
  }
  const float* filter = b;
  if (p.is_reordered()) {
    run_reorder(p.to_blocked, p.plain, b, p.primitives[0].filter, workspace);
    filter = static_cast<const float*>(workspace);
  }
  const bool forward = p.pass == ConvolutionPass::forward;
  stream.parallel_for(p.chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      p.run_chunk(chunk, forward ? a : out, filter, forward ? out : a, workspace);
    }
  });
}

}  // namespace leat
