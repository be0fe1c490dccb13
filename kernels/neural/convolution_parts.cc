// A convolution of f32, in parts that threads run side by side; between them a thread asks whether
// the result is still wanted. A part is some images of the batch or, if there are few, a band of
// one image's (or volume's) rows (or planes) with the rows that it reads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "core/execution/step_end.h"
#include "kernels/cpu.h"
#include "kernels/neural/onednn_convolution.h"

namespace leat {
namespace {

// Rough rates of one core.
constexpr double flops_per_second = 150e9, bytes_per_second = 12e9;
constexpr double most_flops = 2e9;  // of a part
// oneDNN has no kernel for the filters of depthwise convolutions other than 3 by 3.
constexpr double slow_flops_per_second = 6e9;
// A part is worth a second thread, and much more than what its sum with the others costs if it is
// of a filter's gradient.
constexpr double least_seconds = 100e-6, least_seconds_of_filter = 250e-6, times_its_sum = 8;
// Larger filters do not stay in a core's cache while they are added up.
constexpr int64_t small_filter = int64_t{1} << 18;
constexpr double seconds_per_sum = 0.2e-9, seconds_per_large_sum = 1.2e-9;
// With fewer places in the output, a part of an image reads more of the filter than of the image.
constexpr int64_t least_places = 40, free_filter = int64_t{1} << 14;
constexpr int64_t most_at_once = 16, many_images = 8;

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

void add(const float* term, int64_t begin, int64_t end, float* sum) {
  vectorized([=]() LEAT_INLINE {
    for (int64_t i = begin; i < end; ++i) sum[i] += term[i];
  });
}

bool is_slow(ConvolutionPass pass, const Convolution& c) {
  return pass == ConvolutionPass::filter_gradient && c.groups == c.in_channels && c.groups > 1 &&
         (c.height.size > 3 || c.width.size > 3);
}

double seconds_of(ConvolutionPass pass, const Convolution& c) {
  if (is_slow(pass, c)) return c.flops() / slow_flops_per_second;
  const double bytes =
      sizeof(float) * static_cast<double>(c.x_elements() + c.y_elements() + c.filter_elements());
  return std::max(c.flops() / flops_per_second, bytes / bytes_per_second);
}

// For the threads, and so that no part holds one for long.
int64_t parts_of(ConvolutionPass pass, const Convolution& c) {
  double least = least_seconds;
  const int64_t filter = c.filter_elements();
  if (pass == ConvolutionPass::filter_gradient) {
    const double sum = filter > small_filter ? seconds_per_large_sum : seconds_per_sum;
    least = std::max(least_seconds_of_filter, times_its_sum * sum * static_cast<double>(filter));
  }
  const auto wanted = static_cast<uint64_t>(
      std::clamp(seconds_of(pass, c) / least, 1.0, static_cast<double>(most_at_once)));
  return std::max(static_cast<int64_t>(std::bit_floor(wanted)),
                  static_cast<int64_t>(std::ceil(c.flops() / most_flops)));
}

// Cuts `part` to the outputs [begin, end) of the window; returns its first input. It has no inputs
// if the outputs see nothing but padding.
int64_t cut_outputs(Window& part, const Window& whole, int64_t begin, int64_t end) {
  const int64_t first = whole.input_of(begin, 0),
                behind = whole.input_of(end - 1, whole.size - 1) + 1;
  const int64_t from = std::clamp<int64_t>(first, 0, whole.in);
  part.in = std::max<int64_t>(0, std::min(behind, whole.in) - from);
  part.out = end - begin;
  part.before = std::max<int64_t>(0, -first);
  part.after = std::max<int64_t>(0, behind - whole.in);
  return from;
}

// Cuts `part` to the inputs [begin, end), where the first output that sees one of them must not
// begin after `begin`; returns that output. It has no outputs if none sees them.
int64_t cut_inputs(Window& part, const Window& whole, int64_t begin, int64_t end) {
  const int64_t reach = (whole.size - 1) * whole.dilation;
  const int64_t before_reach = begin + whole.before - reach;
  const int64_t from = before_reach <= 0 ? 0 : (before_reach + whole.stride - 1) / whole.stride;
  const int64_t to = std::min(whole.out, (end - 1 + whole.before) / whole.stride + 1);
  part.in = end - begin;
  part.out = std::max<int64_t>(0, to - from);
  part.before = begin - whole.input_of(from, 0);
  part.after =
      std::max<int64_t>(0, (part.out - 1) * whole.stride + reach + 1 - part.before - part.in);
  return from;
}

}  // namespace

struct FloatConvolution::Parts {
  struct Part {
    const OneDnnConvolution* run;  // null: zeros
    int64_t x, y, written;         // where they begin; how many elements of the result are its own
  };
  ConvolutionPass pass;
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>, OneDnnConvolution> kinds;
  std::vector<Part> parts;
  int64_t filter_elements;
  dnnl::memory::desc plain, blocked;  // layouts of the filter: TensorFlow's, the primitives'
  FilterReorder reorder;              // between them, if they differ
  size_t scratch_bytes = 0;

  bool is_of_filter() const { return pass == ConvolutionPass::filter_gradient; }
  int64_t at_once() const { return std::min<int64_t>(most_at_once, std::ssize(parts)); }
  size_t filter_bytes() const { return aligned(blocked.get_size()); }
  // The workspace: blocked filters, then the scratch memory of each group of parts. Of a filter's
  // gradient, each group has a sum and, if it has more than one part, a term.
  bool has_terms() const { return is_of_filter() && std::ssize(parts) > at_once(); }
  int64_t filters() const { return is_of_filter() ? at_once() * (has_terms() ? 2 : 1) : 1; }
  float* filter(void* workspace, int64_t i) const {
    return reinterpret_cast<float*>(static_cast<char*>(workspace) + i * filter_bytes());
  }

  void add_part(const Convolution& part, const Window& outer, int64_t x, int64_t y);
  void add_images(const Convolution& c, int64_t count);
  void add_bands(const Convolution& c, int64_t per_image);
  void run_group(int64_t group, const float* x, const float* filter, const float* y,
                 void* workspace) const;
  void add_up(Stream& stream, float* filter, void* workspace) const;
};

void FloatConvolution::Parts::add_part(const Convolution& part, const Window& outer, int64_t x,
                                       int64_t y) {
  const OneDnnConvolution* run = nullptr;
  if (outer.in > 0 && outer.out > 0) {
    const auto [kind, is_new] =
        kinds.try_emplace({part.batch, outer.in, outer.out, outer.before, outer.after}, pass, part,
                          kinds.empty() ? nullptr : &blocked);
    run = &kind->second;
    if (kinds.size() == 1) blocked = run->filter();
    scratch_bytes = std::max(scratch_bytes, aligned(run->scratch_bytes()));
  } else if (is_of_filter()) {
    return;
  }
  parts.push_back(
      {run, x, y, pass == ConvolutionPass::forward ? part.y_elements() : part.x_elements()});
}

// About as many images in each.
void FloatConvolution::Parts::add_images(const Convolution& c, int64_t count) {
  const int64_t x_image = c.x_elements() / c.batch, y_image = c.y_elements() / c.batch;
  Convolution part = c;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * c.batch / count;
    part.batch = (i + 1) * c.batch / count - begin;
    add_part(part, part.height, begin * x_image, begin * y_image);
  }
}

void FloatConvolution::Parts::add_bands(const Convolution& c, int64_t per_image) {
  const bool is_of_input = pass == ConvolutionPass::input_gradient;
  Window Convolution::*const outer = c.is_of_images() ? &Convolution::height : &Convolution::planes;
  const Window& whole = c.*outer;
  const int64_t x_row = c.x_elements() / c.batch / whole.in,
                y_row = c.y_elements() / c.batch / whole.out;
  Convolution part = c;
  part.batch = 1;
  // Where the first row of an output's window is a part's first input row, no padding is negative.
  const auto first_input = [&](int64_t output) {
    return output == 0           ? 0
           : output == whole.out ? whole.in
                                 : std::clamp<int64_t>(whole.input_of(output, 0), 0, whole.in);
  };
  for (int64_t image = 0; image < c.batch; ++image) {
    for (int64_t band = 0; band < per_image; ++band) {
      const int64_t begin = band * whole.out / per_image, end = (band + 1) * whole.out / per_image;
      int64_t in_row, out_row;
      if (is_of_input) {
        in_row = first_input(begin);
        if (first_input(end) == in_row) continue;
        out_row = cut_inputs(part.*outer, whole, in_row, first_input(end));
      } else {
        out_row = begin;
        in_row = cut_outputs(part.*outer, whole, begin, end);
      }
      add_part(part, part.*outer, (image * whole.in + in_row) * x_row,
               (image * whole.out + out_row) * y_row);
    }
  }
}

FloatConvolution::FloatConvolution(ConvolutionPass pass, const Convolution& c)
    : FloatConvolution(pass, c, parts_of(pass, c)) {}

FloatConvolution::FloatConvolution(ConvolutionPass pass, const Convolution& c, int64_t wanted) {
  for (const Window& w : {c.planes, c.height, c.width}) check_int_arithmetic(w);
  auto all = std::make_shared<Parts>();
  all->pass = pass;
  all->filter_elements = c.filter_elements();
  all->plain = plain_filter(c);
  const int64_t rows = c.is_of_images() ? c.height.out : c.planes.out;
  const int64_t places_of_row = (c.is_of_images() ? 1 : c.height.out) * c.width.out;
  const int64_t least_rows =
      c.filter_elements() <= free_filter ? 1 : (least_places + places_of_row - 1) / places_of_row;
  const int64_t most_bands = std::max<int64_t>(1, rows / least_rows);
  const int64_t bands = std::min(most_bands, (wanted + c.batch - 1) / c.batch);
  const bool has_enough_images =
      wanted <= c.batch || (wanted <= most_at_once && c.batch >= many_images);
  if (has_enough_images || bands == 1 || c.channels_first) {
    all->add_images(c, std::min(wanted, c.batch));
  } else {
    all->add_bands(c, bands);
  }
  if (all->kinds.empty()) all->blocked = all->plain;
  if (all->blocked != all->plain) {
    const bool has_groups = c.groups > 1;
    all->reorder = all->is_of_filter() ? FilterReorder(all->blocked, all->plain, has_groups)
                                       : FilterReorder(all->plain, all->blocked, has_groups);
  }
  parts_ = std::move(all);
}

size_t FloatConvolution::workspace_bytes() const {
  return parts_->filters() * parts_->filter_bytes() + parts_->at_once() * parts_->scratch_bytes;
}

void FloatConvolution::Parts::run_group(int64_t group, const float* x, const float* filter,
                                        const float* y, void* workspace) const {
  void* const scratch = static_cast<char*>(workspace) + filters() * filter_bytes() +
                        static_cast<size_t>(group) * scratch_bytes;
  const int64_t groups = at_once(), all = std::ssize(parts), begin = group * all / groups,
                end = (group + 1) * all / groups;
  float* const sum = is_of_filter() ? this->filter(workspace, group) : nullptr;
  for (int64_t i = begin; i < end; ++i) {
    StepEnd::ask();
    const Part& part = parts[i];
    if (part.run == nullptr) {
      const bool is_forward = pass == ConvolutionPass::forward;
      std::fill_n(const_cast<float*>(is_forward ? y + part.y : x + part.x), part.written, 0.0F);
    } else if (!is_of_filter()) {
      part.run->run(x + part.x, filter, y + part.y, scratch);
    } else if (i == begin) {
      part.run->run(x + part.x, sum, y + part.y, scratch);
    } else {
      float* const term = this->filter(workspace, groups + group);
      part.run->run(x + part.x, term, y + part.y, scratch);
      add(term, 0, static_cast<int64_t>(blocked.get_size() / sizeof(float)), sum);
    }
  }
}

// In order, so that equal inputs give equal sums.
void FloatConvolution::Parts::add_up(Stream& stream, float* to, void* workspace) const {
  constexpr int64_t sums_per_chunk = 1 << 17;
  float* const sum = filter(workspace, 0);
  const int64_t groups = at_once(), n = static_cast<int64_t>(blocked.get_size() / sizeof(float));
  if (groups > 1) {
    stream.parallel_for(n, 1 + sums_per_chunk / groups, [&](int64_t begin, int64_t end) {
      for (int64_t group = 1; group < groups; ++group)
        add(filter(workspace, group), begin, end, sum);
    });
  }
  if (blocked != plain) {
    reorder.run(stream, sum, to);
  } else {
    std::copy_n(sum, filter_elements, to);
  }
}

void FloatConvolution::operator()(Stream& stream, const float* a, const float* b, float* out,
                                  void* workspace) const {
  const Parts& p = *parts_;
  const float *x = a, *filter = b, *y = out;
  if (p.pass == ConvolutionPass::input_gradient) std::swap(x, y);
  if (p.is_of_filter()) {
    std::swap(filter, y);
    if (p.parts.empty()) return void(std::fill_n(out, p.filter_elements, 0.0F));
  } else if (p.blocked != p.plain) {
    p.reorder.run(stream, filter, p.filter(workspace, 0));
    filter = p.filter(workspace, 0);
  }
  stream.parallel_for(p.at_once(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) p.run_group(group, x, filter, y, workspace);
  });
  if (p.is_of_filter()) p.add_up(stream, out, workspace);
}

}  // namespace leat
