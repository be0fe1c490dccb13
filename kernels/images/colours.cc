// leat: cpu+cuda
// Colours of images, the last axis being red, green, blue: RGBToHSV, HSVToRGB.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise.h"
#include "kernels/images/pixels.h"

namespace leat {
namespace {

// ---- Colour spaces

struct ToHsv {
  template <class C>
  LEAT_DEVICE static void convert(const C* rgb, C* hsv) {
    const C red = rgb[0], green = rgb[1], blue = rgb[2];
    const C value = std::max({red, green, blue}), range = value - std::min({red, green, blue});
    C hue = 0;
    if (range > 0) {
      const C sector = 1 / (6 * range);
      hue = red == value     ? sector * (green - blue)
            : green == value ? sector * (blue - red) + C(2) / 6
                             : sector * (red - green) + C(4) / 6;
      if (hue < 0) hue += 1;
    }
    hsv[0] = hue;
    hsv[1] = value > 0 ? range / value : 0;
    hsv[2] = value;
  }
};

struct ToRgb {
  template <class C>
  LEAT_DEVICE static void convert(const C* hsv, C* rgb) {
    const C hue = hsv[0] * 6, saturation = hsv[1], value = hsv[2];
    const C full[3] = {std::abs(hue - 3) - 1, 2 - std::abs(hue - 2), 2 - std::abs(hue - 4)};
    for (int i = 0; i < 3; ++i)
      rgb[i] = (1 - saturation + saturation * std::clamp(full[i], C(0), C(1))) * value;
  }
};

void infer_colours(ShapeContext& c) {
  const Shape image = c.with_rank_at_least(0, 1);
  if (!image.has_rank()) return c.set_output(0, image);
  check(image.rank() >= 1, "input must be at least 1D: ", image);
  const int64_t channels = image[image.rank() - 1];
  if (channels != any && channels != 3) {
    fail(Code::failed_precondition, "input must have 3 channels but input only has ", channels,
         " channels.");
  }
  c.set_output(0, image);
}

template <class Conversion, class T>
struct ConvertPixel {
  LEAT_DEVICE void operator()(int64_t i, const Pointers& p) const {
    ComputeType<T> in[3], out[3];
    read_pixel(p.input<T>(0), i, in);
    Conversion::convert(in, out);
    write_pixel(out, i, p.output<T>());
  }
};

template <class Conversion>
std::vector<Kernel> colour_kernels() {
  return typed_kernels("T", FloatTypes{}, []<class T>(TypeTag<T>, const KernelRequest& r) {
    return bind_indexed(r, r.inputs[0].shape.elements() / 3, 150, ConvertPixel<Conversion, T>{});
  });
}

const char* const floating = "T: {half, bfloat16, float, double} = float";

// d(hsv)/d(rgb), which depends on the largest and the smallest channel.
void hsv_gradient(Gradient& g) {
  const auto channel = [](Output x, int i) {
    const auto at = [&](int32_t first) { return constant(x.graph(), ints({first, i})); };
    return op("StridedSlice",
              {x, at(0), constant(x.graph(), ints({0, i + 1})), constant(x.graph(), ints({1, 1}))},
              {{"ellipsis_mask", int64_t{1}}, {"shrink_axis_mask", int64_t{2}}});
  };
  const Output red = channel(g.x(), 0), green = channel(g.x(), 1), blue = channel(g.x(), 2);
  const Output value = channel(g.y(), 2), saturation = channel(g.y(), 1);
  const Output range = saturation * value;
  const auto is_largest = [&](Output x) { return op("Equal", {x, value}); };
  const auto both = [](Output a, Output b) { return op("LogicalAnd", {a, b}); };
  const auto negated = [](Output a) { return op("LogicalNot", {a}); };
  const Output red_leads = is_largest(red),
               green_leads = both(is_largest(green), negated(red_leads)),
               blue_leads = negated(op("LogicalOr", {red_leads, green_leads}));
  const Output least = op("Minimum", {op("Minimum", {red, green}), blue});
  const auto is_least = [&](Output x) { return op("Equal", {x, least}); };
  const Output red_trails = is_least(red),
               green_trails = both(is_least(green), negated(red_trails)),
               blue_trails = negated(op("LogicalOr", {red_trails, green_trails}));
  const auto number = [&](Output flag) { return op("Cast", {flag}, {{"DstT", g.x().dtype()}}); };
  const Output dhue = channel(g.dy(), 0), dsaturation = channel(g.dy(), 1),
               dvalue = channel(g.dy(), 2);
  const auto divided = [](Output a, Output b) { return op("DivNoNan", {a, b}); };
  // saturation = 1 - least / value; hue = (second - third) / (6 range) + constant, where the second
  // and third follow the leading channel around the circle.
  const Output by_largest = dvalue + dsaturation * divided(least, value * value);
  const Output by_least = -divided(dsaturation, value);
  const Output difference =
      op("Select", {red_leads, green - blue, op("Select", {green_leads, blue - red, red - green})});
  const Output by_difference = divided(dhue, 6 * range);
  const Output by_range = -divided(dhue * difference, 6 * (range * range));
  const auto by_channel = [&](Output leads, Output trails, Output leads_before,
                              Output leads_after) {
    return (number(leads) * (by_largest + by_range) + number(trails) * (by_least - by_range)) +
           (number(leads_before) - number(leads_after)) * by_difference;
  };
  g.dx() = stack({by_channel(red_leads, red_trails, blue_leads, green_leads),
                  by_channel(green_leads, green_trails, red_leads, blue_leads),
                  by_channel(blue_leads, blue_trails, green_leads, red_leads)},
                 -1);
}

const Op to_hsv_op{{
    .name = "RGBToHSV",
    .doc = "Pixels [red, green, blue] of the last axis, in [0, 1], as [hue, saturation, value]; 0 "
           "is red, 1/3 green, 2/3 blue.",
    .inputs = {"images: T"},
    .outputs = {"output: T"},
    .attrs = {floating},
    .shape = infer_colours,
    .gradient = hsv_gradient,
    .kernels = colour_kernels<ToHsv>(),
    .examples = {{.inputs = {floats({2, 3}, {0, 0.5, 0, 0.5, 0.25, 0.5})},
                  .outputs = {floats({2, 3}, {1.0F / 3, 1, 0.5, 5.0F / 6, 0.5, 0.5})}}},
}};

const Op to_rgb_op{{
    .name = "HSVToRGB",
    .doc = "The inverse of RGBToHSV.",
    .inputs = {"images: T"},
    .outputs = {"output: T"},
    .attrs = {floating},
    .shape = infer_colours,
    .kernels = colour_kernels<ToRgb>(),
    .examples = {{.inputs = {floats({2, 3}, {1.0F / 3, 1, 0.5, 5.0F / 6, 0.5, 0.5})},
                  .outputs = {floats({2, 3}, {0, 0.5, 0, 0.5, 0.25, 0.5})}}},
}};

}  // namespace
}  // namespace leat
