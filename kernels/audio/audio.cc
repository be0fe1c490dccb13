// Sound: DecodeWav, EncodeWav, AudioSpectrogram, Mfcc, AudioSummaryV2.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/execution/step_end.h"
#include "graph/formats/summary.h"
#include "graph/formats/wav_file.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/audio/fft.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/execute.h"

namespace leat {
namespace {

// ---- Files

// The attribute if it is set (-1: it is not), else the value from the file.
int64_t desired(const NodeView& node, const char* attr, int64_t otherwise) {
  const auto value = node.attr<int64_t>(attr);
  check(value >= -1, attr, " must be >= -1, got ", value);
  return value == -1 ? otherwise : value;
}

void decode(ExecuteContext& c) {
  check(c.input(0).shape().rank() == 0, "contents must be scalar, got shape ", c.input(0).shape());
  const Sound sound = decode_wav(*c.input(0).data<std::string>());
  const int64_t frames = desired(c.node(), "desired_samples", sound.frames),
                channels = desired(c.node(), "desired_channels", sound.channels);
  Tensor out(DType::f32, {frames, channels});
  float* to = out.data<float>();
  const int64_t known = std::min(frames, sound.frames);
  for (int64_t i = 0; i < known; ++i) {
    for (int64_t channel = 0; channel < channels; ++channel)
      *to++ = sound.samples[i * sound.channels + std::min(channel, sound.channels - 1)];
  }
  std::fill(to, out.data<float>() + out.elements(), 0.0F);
  c.set_output(0, std::move(out));
  c.set_output(1, Tensor::scalar(static_cast<int32_t>(sound.rate)));
}

void encode(ExecuteContext& c) {
  const Tensor &audio = c.input(0), &rate = c.input(1);
  check(audio.shape().rank() == 2, "audio must be 2-dimensional, got shape ", audio.shape());
  check(rate.shape().rank() == 0, "Input sample_rate should be a scalar tensor, got ",
        rate.shape());
  check(audio.elements() < std::numeric_limits<int32_t>::max(),
        "Cannot encode audio with >= max int32 elements: shape ", audio.shape());
  c.set_output(0, Tensor::scalar(encode_wav(audio.data<float>(), audio.shape()[0], audio.shape()[1],
                                            rate.item<int32_t>())));
}

// Two frames of one channel.
std::string example_wav() {
  constexpr float samples[] = {0.5F, -1};
  return encode_wav(samples, 2, 1, 8000);
}

const Op decode_op{{
    .name = "DecodeWav",
    .doc = "audio[frame, channel] = the samples of the WAV file `contents`, from -1 to 1, cut or "
           "filled with 0 to desired_samples frames and with the last channel to desired_channels "
           "(-1: as the file has it); sample_rate = frames per second.",
    .inputs = {"contents: string"},
    .outputs = {"audio: float", "sample_rate: int32"},
    .attrs = {"desired_channels: int = -1", "desired_samples: int = -1"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.set_output(0, {desired(c.node(), "desired_samples", any),
                           desired(c.node(), "desired_channels", any)});
          c.set_output(1, {});
        },
    .kernels = {{.execute = decode}},
    .examples = {{.inputs = {Tensor::scalar(example_wav())},
                  .attrs = {{"desired_samples", int64_t{3}}},
                  .outputs = {floats({3, 1}, {0.5F, -1, 0}), Tensor::scalar(8000)}}},
    .has_data_dependent_shape = true,
    .is_not_differentiable = true,
}};

const Op encode_op{{
    .name = "EncodeWav",
    .doc = "contents = audio[frame, channel] as a WAV file of 16-bit samples; values outside [-1, "
           "1] are clipped.",
    .inputs = {"audio: float", "sample_rate: int32"},
    .outputs = {"contents: string"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 2);
          c.with_rank(1, 0);
          c.set_output(0, {});
        },
    .kernels = {{.execute = encode}},
    .examples = {{.inputs = {floats({2, 1}, {0.5F, -1.5F}), Tensor::scalar(8000)},
                  .outputs = {Tensor::scalar(example_wav())}}},
    .is_not_differentiable = true,
}};

// ---- AudioSpectrogram

struct Frames {
  int64_t window, stride, fft;

  explicit Frames(const NodeView& node)
      : window(node.attr<int64_t>("window_size")), stride(node.attr<int64_t>("stride")) {
    check(window > 1 && window <= 1 << 30, "window_size must be in [2, 2^30], got ", window);
    check(stride > 0, "stride must be > 0, got ", stride);
    fft = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window)));
  }
  int64_t frequencies() const { return 1 + fft / 2; }
  int64_t count(int64_t samples) const {
    return samples < window ? 0 : 1 + (samples - window) / stride;
  }
};

// The frames under Hann windows, as energies.
BoundKernel prepare_spectrogram(const KernelRequest& r) {
  const Frames frames(r.node);
  const Shape& audio = r.inputs[0].shape;
  const int64_t channels = audio[1], count = frames.count(audio[0]);
  if (r.outputs[0].shape.elements() == 0) return {};
  std::vector<double> window(frames.window);
  for (int64_t i = 0; i < frames.window; ++i) {
    window[i] = 0.5 - 0.5 * std::cos((2 * std::numbers::pi * static_cast<double>(i)) /
                                     static_cast<double>(frames.window));
  }
  BoundKernel kernel =
      BoundKernel::of([=, window = std::move(window), fft = Fft<double>(frames.fft),
                       is_squared = r.attr<bool>("magnitude_squared")](const Arguments& a) {
        float* out = a.output<float>();
        std::vector<std::complex<double>> x(frames.fft);
        for (int64_t channel = 0; channel < channels; ++channel) {
          for (int64_t frame = 0; frame < count; ++frame) {
            StepEnd::pace(32 * frames.fft);
            std::fill(x.begin() + frames.window, x.end(), 0.0);
            for (int64_t i = 0; i < frames.window; ++i) {
              const float sample =
                  a.input<float>(0)[(frame * frames.stride + i) * channels + channel];
              x[i] = static_cast<double>(sample) * window[i];
            }
            fft(x.data());
            for (int64_t k = 0; k < frames.frequencies(); ++k) {
              const auto energy =
                  static_cast<float>(x[k].real() * x[k].real() + x[k].imag() * x[k].imag());
              *out++ = is_squared ? energy : std::sqrt(energy);
            }
          }
        }
      });
  kernel.cost_ns = 20.0 * static_cast<double>(r.outputs[0].shape.elements()) *
                   std::bit_width(static_cast<uint64_t>(frames.fft));
  return kernel;
}

const Op spectrogram_op{{
    .name = "AudioSpectrogram",
    .doc = "spectrogram[channel, frame, k] = the magnitude (or its square) of frequency k in the "
           "window_size samples from frame * stride on, under a Hann window, filled with 0 to a "
           "power of two; input[sample, channel].",
    .inputs = {"input: float"},
    .outputs = {"spectrogram: float"},
    .attrs = {"window_size: int", "stride: int", "magnitude_squared: bool = false"},
    .shape =
        [](ShapeContext& c) {
          const Shape audio = c.with_rank(0, 2);
          const Frames frames(c.node());
          c.set_output(
              0, {audio[1], audio[0] == any ? any : frames.count(audio[0]), frames.frequencies()});
        },
    .kernels = {cpu_kernel(prepare_spectrogram)},
    .examples = {{.inputs = {floats({5, 1}, {9, 1, 2, 3, 4})},
                  .attrs = {{"window_size", int64_t{4}},
                            {"stride", int64_t{1}},
                            {"magnitude_squared", true}},
                  .outputs = {floats({1, 2, 3}, {16, 5, 0, 36, 10, 0})}}},
    .is_not_differentiable = true,
}};

// ---- Mfcc: S. Davis, P. Mermelstein, "Comparison of parametric representations for monosyllabic
// word recognition in continuously spoken sentences", 1980; on the mel scale of the Hidden Markov
// Model Toolkit.

double mel(double frequency) { return 1127.0 * std::log1p(frequency / 700.0); }

// Triangles over the bins of a spectrum, from the centre of one to those of its neighbours. A bin
// has `weight` in the triangle before it, and the rest in the one after it.
class MelFilters {
 public:
  MelFilters(int64_t bins, double rate, int64_t filters, double lowest, double highest)
      : filters_(filters), weight_(bins), before_(bins) {
    const double bottom = mel(lowest),
                 spacing = (mel(highest) - bottom) / static_cast<double>(filters + 1),
                 bin_width = 0.5 * rate / static_cast<double>(bins - 1);
    // A spectrum that ends below `highest` has no result, as in TensorFlow.
    fits_ = highest / bin_width < static_cast<double>(bins);
    if (!fits_) return;
    begin_ = static_cast<int64_t>(1.5 + lowest / bin_width);  // never the constant part
    end_ = static_cast<int64_t>(highest / bin_width) + 1;
    const auto centre = [&](int64_t i) { return bottom + spacing * static_cast<double>(i + 1); };
    int64_t filter = 0;
    for (int64_t i = begin_; i < end_; ++i) {
      const double place = mel(static_cast<double>(i) * bin_width);
      while (filter < filters && centre(filter) < place) ++filter;
      const double left = filter == 0 ? bottom : centre(filter - 1), right = centre(filter);
      before_[i] = filter - 1;
      weight_[i] = (right - place) / (right - left);
    }
  }

  // The magnitudes under each triangle, of a spectrum of energies; nothing if it does not fit.
  std::vector<double> operator()(const float* spectrum) const {
    if (!fits_) return {};
    std::vector<double> out(filters_);
    for (int64_t i = begin_; i < end_; ++i) {
      const double magnitude = std::sqrt(static_cast<double>(spectrum[i])),
                   weighted = magnitude * weight_[i];
      if (before_[i] >= 0) out[before_[i]] += weighted;
      if (before_[i] + 1 < filters_) out[before_[i] + 1] += magnitude - weighted;
    }
    return out;
  }

 private:
  int64_t filters_, begin_ = 0, end_ = 0;
  bool fits_ = false;
  std::vector<double> weight_;
  std::vector<int64_t> before_;
};

BoundKernel prepare_mfcc(const KernelRequest& r) {
  const auto filters = r.attr<int64_t>("filterbank_channel_count"),
             coefficients = r.attr<int64_t>("dct_coefficient_count");
  const double lowest = r.attr<float>("lower_frequency_limit"),
               highest = r.attr<float>("upper_frequency_limit");
  const Shape& spectrogram = r.inputs[0].shape;
  const int64_t bins = spectrogram[2], rows = spectrogram[0] * spectrogram[1];
  check(bins > 1, "a spectrogram must have at least 2 frequencies, got shape ", spectrogram);
  check(filters > 0 && coefficients > 0 && coefficients <= filters, "cannot compute ", coefficients,
        " coefficients (dct_coefficient_count) from ", filters,
        " filters (filterbank_channel_count)");
  check(lowest >= 0 && highest > lowest, "frequencies must be 0 <= lower < upper, got ", lowest,
        " and ", highest);
  return BoundKernel::of([=](const Arguments& a) {
    const int32_t rate = *a.input<int32_t>(1);
    check(rate > 0, "sample_rate must be positive, got ", rate);
    if (rows == 0) return;
    // The cosine transform, type II.
    const double scale = std::sqrt(2.0 / static_cast<double>(filters)),
                 angle = std::numbers::pi / static_cast<double>(filters);
    Tensor table(DType::f64, {coefficients, filters});  // reports it if memory is short
    double* cosines = table.data<double>();
    for (int64_t i = 0; i < coefficients; ++i) {
      for (int64_t j = 0; j < filters; ++j)
        cosines[i * filters + j] =
            scale * std::cos(static_cast<double>(i) * angle * (static_cast<double>(j) + 0.5));
    }
    const MelFilters filter(bins, rate, filters, lowest, highest);
    for (int64_t row = 0; row < rows; ++row) {
      StepEnd::pace(16 * (filters + coefficients));
      std::vector<double> bands = filter(a.input<float>(0) + row * bins);
      for (double& band : bands) band = std::log(band < 1e-12 ? 1e-12 : band);
      for (int64_t i = 0; i < coefficients; ++i) {
        double sum = 0;
        for (size_t j = 0; j < bands.size(); ++j) sum += cosines[i * filters + j] * bands[j];
        a.output<float>()[row * coefficients + i] = static_cast<float>(sum);
      }
    }
  });
}

const Op mfcc_op{{
    .name = "Mfcc",
    .doc = "output[channel, frame, :] = mel frequency cepstral coefficients: the first "
           "dct_coefficient_count of the cosine transform of the logarithms of a spectrum's "
           "magnitudes under filterbank_channel_count triangles between the frequency limits; "
           "spectrogram as of AudioSpectrogram with magnitude_squared.",
    .inputs = {"spectrogram: float", "sample_rate: int32"},
    .outputs = {"output: float"},
    .attrs = {"upper_frequency_limit: float = 4000", "lower_frequency_limit: float = 20",
              "filterbank_channel_count: int = 40", "dct_coefficient_count: int = 13"},
    .shape =
        [](ShapeContext& c) {
          const Shape spectrogram = c.with_rank(0, 3);
          c.with_rank(1, 0);
          const auto coefficients = c.attr<int64_t>("dct_coefficient_count");
          check(coefficients >= 0, "dct_coefficient_count must not be negative, got ",
                coefficients);
          c.set_output(0, {spectrogram[0], spectrogram[1], coefficients});
        },
    .kernels = {cpu_kernel(prepare_mfcc)},
    // One triangle from 0 to 3.5 Hz, over bins of 1 Hz.
    .examples = {{.inputs = {floats({1, 1, 5}, {9, 0, 4, 0, 9}), Tensor::scalar(8)},
                  .attrs = {{"upper_frequency_limit", 3.5F},
                            {"lower_frequency_limit", 0.0F},
                            {"filterbank_channel_count", int64_t{1}},
                            {"dct_coefficient_count", int64_t{1}}},
                  .outputs = {floats({1, 1, 1}, {0.7602399F})}}},
    .is_not_differentiable = true,
}};

// ---- Summaries

BoundKernel prepare_summary(const KernelRequest& r) {
  const Shape& shape = r.inputs[1].shape;
  const auto most = r.attr<int64_t>("max_outputs");
  check(most > 0, "max_outputs must be > 0, got ", most);
  check(shape.rank() == 2 || shape.rank() == 3, "Tensor must be 3-D or 2-D, got: ", shape);
  return BoundKernel::of([=, count = std::min(most, shape[0]), frames = shape[1],
                          channels = shape.rank() == 2 ? 1 : shape[2]](const Arguments& a) {
    const AudioClips clips{.count = count,
                           .frames = frames,
                           .channels = channels,
                           .samples = a.input<float>(1),
                           .rate = *a.input<float>(2)};
    check(clips.rate > 0, "sample_rate must be > 0, got ", clips.rate);
    *a.output<std::string>() = audio_summary(*a.input<std::string>(0), most > 1, clips);
  });
}

constexpr float example_samples[] = {0.5F, -1};
constexpr AudioClips example_clips = {
    .count = 1, .frames = 2, .channels = 1, .samples = example_samples, .rate = 8000};

const Op summary_op{{
    .name = "AudioSummaryV2",
    .doc = "summary = a serialized Summary with the first max_outputs clips of [clip, frame, "
           "channel] (or [clip, frame]) as WAV, called \"TAG/audio/0\" and so on.",
    .inputs = {"tag: string", "tensor: float", "sample_rate: float"},
    .outputs = {"summary: string"},
    .attrs = {"max_outputs: int >= 1 = 3"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(0, 0);
          c.with_rank(2, 0);
          c.set_output(0, {});
        },
    .kernels = {cpu_kernel(prepare_summary)},
    .examples = {{.inputs = {Tensor::scalar("x"), floats({1, 2}, {0.5F, -1}),
                             Tensor::scalar(8000.0F)},
                  .outputs = {Tensor::scalar(audio_summary("x", true, example_clips))}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
