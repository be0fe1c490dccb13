// Long convolutions, in parts of some hundredths of a second; between them it checks whether the
// result is still wanted. A part is some images of the batch. For one large image (or volume) it is
// a band of the output's rows (or planes) with the input rows it reads.
#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>

#include "core/step_end.h"
#include "kernels/cpu.h"
#include "kernels/neural/convolution.h"

namespace leat {
namespace {

constexpr double many_flops = 2e9;
constexpr int64_t most_at_once = 16;

int64_t aligned(int64_t floats) { return (floats + 15) / 16 * 16; }

void add(const float* term, int64_t n, float* sum) {
  vectorized([=]() LEAT_INLINE {
    for (int64_t i = 0; i < n; ++i) sum[i] += term[i];
  });
}

// Cuts `part` to the outputs [begin, end) of the window; returns its first input. It has no inputs
// if the outputs see nothing but padding.
int64_t cut(Window& part, const Window& whole, int64_t begin, int64_t end) {
  const int64_t first = begin * whole.stride - whole.before;
  const int64_t behind =
      (end - 1) * whole.stride - whole.before + (whole.size - 1) * whole.dilation + 1;
  const int64_t from = std::clamp<int64_t>(first, 0, whole.in);
  part.in = std::min(behind, whole.in) - from;
  part.out = end - begin;
  part.before = std::max<int64_t>(0, -first);
  part.after = std::max<int64_t>(0, behind - whole.in);
  return from;
}

}  // namespace

struct LargeConvolution::Parts {
  struct Part {
    const OneDnnConvolution* run;
    int64_t x, y, x_elements;  // where they begin
  };
  ConvolutionPass pass;
  Convolution c;
  Window Convolution::*outer;  // the outermost axis that windows slide along
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t>, OneDnnConvolution> kinds;
  std::vector<Part> parts;
  std::vector<int64_t> lines;  // where each sequence of parts that run one after another begins
  size_t part_workspace = 0;
  int64_t added = 0;  // floats that a part computes before they are added up

  void add_part(const Convolution& part, int64_t x, int64_t y) {
    const Window& w = part.*outer;
    const auto [kind, is_new] =
        kinds.try_emplace({part.batch, w.in, w.out, w.before, w.after}, pass, part);
    parts.push_back({&kind->second, x, y, part.x_elements()});
    part_workspace = std::max(part_workspace, (kind->second.workspace_bytes() + 63) / 64 * 64);
    if (pass == ConvolutionPass::input_gradient)
      added = std::max(added, aligned(part.x_elements()));
  }
  int64_t at_once() const { return std::min<int64_t>(most_at_once, std::ssize(lines) - 1); }
  size_t workspace() const {  // for each sequence that runs at the same time
    const int64_t sums =
        pass == ConvolutionPass::filter_gradient ? 2 * aligned(c.filter_elements()) : added;
    return part_workspace + static_cast<size_t>(sums) * sizeof(float);
  }
};

bool LargeConvolution::is_needed(const Convolution& c) {
  return c.flops() / static_cast<double>(std::min(c.batch, most_at_once)) > many_flops;
}

LargeConvolution::LargeConvolution(ConvolutionPass pass, const Convolution& c,
                                   double flops_per_part) {
  auto all = std::make_shared<Parts>();
  all->pass = pass;
  all->c = c;
  all->outer = c.is_of_images() ? &Convolution::height : &Convolution::planes;
  const double of_image = c.flops() / static_cast<double>(c.batch);
  const int64_t x_image = c.x_elements() / c.batch, y_image = c.y_elements() / c.batch;
  Convolution part = c;
  const Window& whole = c.*all->outer;
  const int64_t rows = std::clamp<int64_t>(
      static_cast<int64_t>(flops_per_part / (of_image / static_cast<double>(whole.out))), 1,
      whole.out);
  if (of_image <= flops_per_part || c.channels_first || rows == whole.out) {
    const int64_t images = std::max<int64_t>(1, static_cast<int64_t>(flops_per_part / of_image));
    for (int64_t image = 0; image < c.batch; image += images) {
      part.batch = std::min(images, c.batch - image);
      all->lines.push_back(std::ssize(all->parts));
      all->add_part(part, image * x_image, image * y_image);
    }
  } else {
    part.batch = 1;
    for (int64_t image = 0; image < c.batch; ++image) {
      for (int64_t row = 0; row < whole.out; row += rows) {
        // Bands share rows of the input: their gradients are added one after another.
        if (row == 0 || pass != ConvolutionPass::input_gradient)
          all->lines.push_back(std::ssize(all->parts));
        const int64_t from = cut(part.*all->outer, whole, row, std::min(row + rows, whole.out));
        if ((part.*all->outer).in <= 0) continue;
        all->add_part(part, image * x_image + x_image / whole.in * from,
                      image * y_image + y_image / whole.out * row);
      }
    }
  }
  all->lines.push_back(std::ssize(all->parts));
  parts_ = std::move(all);
}

size_t LargeConvolution::workspace_bytes() const {
  return static_cast<size_t>(parts_->at_once()) * parts_->workspace();
}

void LargeConvolution::operator()(Stream& stream, const float* a, const float* b, float* out,
                                  void* workspace) const {
  const Parts& p = *parts_;
  const bool is_of_filter = p.pass == ConvolutionPass::filter_gradient;
  const int64_t filter = p.c.filter_elements(), at_once = p.at_once(),
                lines = std::ssize(p.lines) - 1;
  const auto space = [&](int64_t group) {
    return static_cast<char*>(workspace) + static_cast<size_t>(group) * p.workspace();
  };
  const auto sums_of = [&](int64_t group) {
    return reinterpret_cast<float*>(space(group) + p.part_workspace);
  };
  const auto run_group = [&](int64_t group) {
    float* const sum = sums_of(group);
    float* const term = is_of_filter ? sum + aligned(filter) : sum;
    if (is_of_filter) std::fill_n(sum, filter, 0.0F);
    const int64_t begin = p.lines[group * lines / at_once],
                  end = p.lines[(group + 1) * lines / at_once];
    for (int64_t i = begin; i < end; ++i) {
      StepEnd::ask();
      const Parts::Part& part = p.parts[i];
      switch (p.pass) {
        case ConvolutionPass::forward:
          (*part.run)(stream, a + part.x, b, out + part.y, space(group));
          break;
        case ConvolutionPass::input_gradient:
          (*part.run)(stream, a + part.y, b, term, space(group));
          add(term, part.x_elements, out + part.x);
          break;
        case ConvolutionPass::filter_gradient:
          (*part.run)(stream, a + part.x, b + part.y, term, space(group));
          add(term, filter, sum);
          break;
      }
    }
  };
  // Bands may leave out elements that see nothing or that nothing sees.
  if (p.pass == ConvolutionPass::input_gradient) std::fill_n(out, p.c.x_elements(), 0.0F);
  if (p.pass == ConvolutionPass::forward && p.parts.size() < static_cast<size_t>(lines))
    std::fill_n(out, p.c.y_elements(), 0.0F);
  stream.parallel_for(at_once, 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) run_group(group);
  });
  if (!is_of_filter) return;
  std::copy_n(sums_of(0), filter, out);
  for (int64_t group = 1; group < at_once; ++group) add(sums_of(group), filter, out);
}

}  // namespace leat
