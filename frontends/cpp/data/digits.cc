// Digits drawn from strokes, for a demo that downloads nothing; and batches.
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>

#include "frontends/cpp/data/data.h"

namespace leat::data {
namespace {

constexpr int side = 28;

struct Point {
  double x, y;
};
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

// Part of an ellipse as a polyline; angles in quarter turns, 0 = right, 1 = down.
Stroke arc(Point centre, double rx, double ry, double from, double to) {
  Stroke out;
  constexpr int steps = 16;
  for (int i = 0; i <= steps; ++i) {
    const double angle = (from + (to - from) * i / steps) * std::numbers::pi / 2;
    out.push_back({centre.x + rx * std::cos(angle), centre.y + ry * std::sin(angle)});
  }
  return out;
}

Stroke joined(Stroke a, const Stroke& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// In a box of x in [-1, 1], y in [-1.5, 1.5] (down). Digits that people write in two ways have two
// glyphs.
const std::array<std::vector<Glyph>, 10>& glyphs() {
  static const std::array<std::vector<Glyph>, 10> all = {{
      {{arc({0, 0}, 0.8, 1.4, 0, 4)}},
      {{{{0, -1.4}, {0, 1.4}}}, {{{-0.5, -0.9}, {0.1, -1.4}, {0.1, 1.4}}}},
      {{joined(arc({0, -0.7}, 0.75, 0.7, -2, 0.6), {{-0.8, 1.4}, {0.85, 1.4}})}},
      {{joined(arc({-0.05, -0.7}, 0.7, 0.7, -1.8, 1), arc({-0.05, 0.7}, 0.8, 0.7, -1, 1.8))}},
      {{{{0.4, 1.4}, {0.4, -1.4}, {-0.85, 0.5}, {0.85, 0.5}}},
       {{{-0.6, -1.3}, {-0.7, 0.1}, {0.7, 0.1}}, {{0.6, -1.3}, {0.6, 1.4}}}},
      {{joined({{0.75, -1.4}, {-0.6, -1.4}, {-0.7, -0.2}},
               arc({-0.05, 0.55}, 0.8, 0.85, -1.6, 1.8))}},
      {{joined({{0.5, -1.4}, {-0.4, -0.4}}, arc({0, 0.65}, 0.7, 0.75, -2.3, 2))}},
      {{{{-0.8, -1.4}, {0.8, -1.4}, {-0.2, 1.4}}},
       {{{-0.8, -1.4}, {0.8, -1.4}, {-0.2, 1.4}}, {{-0.4, 0.1}, {0.6, 0.1}}}},
      {{arc({0, -0.72}, 0.62, 0.68, 1, 5), arc({0, 0.7}, 0.75, 0.7, -1, 3)}},
      {{joined(arc({0, -0.6}, 0.7, 0.75, 0, 4), {{0.55, 1.4}})}},
  }};
  return all;
}

double distance_to_segment(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const double t =
      length2 == 0 ? 0 : std::clamp(((p.x - a.x) * dx + (p.y - a.y) * dy) / length2, 0.0, 1.0);
  return std::hypot(p.x - a.x - t * dx, p.y - a.y - t * dy);
}

void draw(int digit, std::mt19937_64& random, float* pixels) {
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto& variants = glyphs()[digit];
  const Glyph& glyph =
      variants[std::uniform_int_distribution<size_t>(0, variants.size() - 1)(random)];
  const double angle = uniform(-0.3, 0.3), shear = uniform(-0.3, 0.3), width = uniform(5.0, 8.0),
               height = uniform(6.0, 7.4);
  const double x0 = 14 + uniform(-2.5, 2.5), y0 = 14 + uniform(-2.0, 2.0), pen = uniform(0.9, 1.7),
               wobble = uniform(0.0, 0.12);
  std::vector<std::pair<Point, Point>> segments;
  for (const Stroke& stroke : glyph) {
    Stroke placed;
    for (Point p : stroke) {
      const double x = (p.x + shear * -p.y + uniform(-wobble, wobble)) * width,
                   y = (p.y + uniform(-wobble, wobble)) * height;
      placed.push_back({x0 + x * std::cos(angle) - y * std::sin(angle),
                        y0 + x * std::sin(angle) + y * std::cos(angle)});
    }
    for (size_t i = 0; i + 1 < placed.size(); ++i) segments.emplace_back(placed[i], placed[i + 1]);
  }
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      double nearest = 1e9;
      for (const auto& [a, b] : segments)
        nearest = std::min(nearest, distance_to_segment({column + 0.5, row + 0.5}, a, b));
      const double ink = std::clamp(pen + 0.5 - nearest, 0.0, 1.0) + uniform(-0.08, 0.08);
      pixels[row * side + column] = static_cast<float>(std::clamp(ink, 0.0, 1.0));
    }
  }
}

Labelled draw_many(int64_t count, std::mt19937_64& random) {
  Labelled out{Tensor(f32, {count, side * side}), Tensor(i32, {count})};
  for (int64_t i = 0; i < count; ++i) {
    const int digit = std::uniform_int_distribution<int>(0, 9)(random);
    out.labels.data<int32_t>()[i] = digit;
    draw(digit, random, out.images.data<float>() + i * side * side);
  }
  return out;
}

}  // namespace

Digits draw_digits(int64_t train, int64_t test, uint64_t seed) {
  check(train > 0 && test > 0, "draw_digits needs at least one training and one test picture, got ",
        train, " and ", test);
  std::mt19937_64 random(seed);
  Labelled first = draw_many(train, random);
  return {std::move(first), draw_many(test, random)};
}

struct Batches::Random {
  std::mt19937_64 engine;
};

Batches::Batches(Batches&&) noexcept = default;
Batches::~Batches() = default;

Batches::Batches(const Labelled& examples, int64_t batch_size, uint64_t seed, int index, int count)
    : examples_(examples),
      batch_size_(batch_size),
      seed_(seed),
      index_(index),
      count_(count),
      random_(std::make_unique<Random>()) {
  check(count > 0 && index >= 0 && index < count, "shard ", index, " of ", count,
        " does not exist");
  const Tensor &images = examples.images, &labels = examples.labels;
  check(images.dtype() == f32 && images.shape().rank() == 2 && labels.dtype() == i32 &&
            labels.shape().rank() == 1 && images.shape()[0] == labels.shape()[0],
        "batches need images, float [n, pixels], and as many labels, int32 [n]; got ",
        images.dtype(), images.shape(), " and ", labels.dtype(), labels.shape());
  restart();
  check(batch_size > 0 && per_epoch() > 0, "cannot make a batch of ", batch_size, ": shard ", index,
        " of ", count, " has ", order_.size(), " examples");
}

void Batches::restart() {
  random_->engine.seed(seed_);
  order_.clear();
  for (int64_t row = index_; row < examples_.size(); row += count_) order_.push_back(row);
  position_ = order_.size();
  next_ = 0;
}

void Batches::seek(int64_t batch) {
  check(batch >= 0, "there is no batch ", batch);
  if (batch < next_) restart();
  for (; next_ < batch; ++next_) skip_to_next();
}

// Takes the rows of the next batch: those before position_.
void Batches::skip_to_next() {
  if (position_ + static_cast<size_t>(batch_size_) > order_.size()) {
    std::shuffle(order_.begin(), order_.end(), random_->engine);
    position_ = 0;
  }
  position_ += static_cast<size_t>(batch_size_);
}

Labelled Batches::next() {
  skip_to_next();
  ++next_;
  size_t position = position_ - static_cast<size_t>(batch_size_);
  const int64_t pixels = examples_.images.shape()[1];
  Labelled out{Tensor(f32, {batch_size_, pixels}), Tensor(i32, {batch_size_})};
  for (int64_t i = 0; i < batch_size_; ++i) {
    const int64_t row = order_[position++];
    std::copy_n(examples_.images.data<float>() + row * pixels, pixels,
                out.images.data<float>() + i * pixels);
    out.labels.data<int32_t>()[i] = examples_.labels.data<int32_t>()[row];
  }
  return out;
}

}  // namespace leat::data
