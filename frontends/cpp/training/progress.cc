#include "frontends/cpp/training/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace leat {

using Clock = std::chrono::steady_clock;

namespace {

std::string format(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

}  // namespace

Progress::Progress(int64_t steps, int64_t samples_per_step)
    : steps_(steps),
      samples_per_step_(samples_per_step),
      is_terminal_(isatty(STDOUT_FILENO) != 0),
      start_(Clock::now()) {}

Progress::~Progress() { finish(); }

void Progress::update(int64_t step, double loss, const std::string& more) {
  if (first_step_ == 0) first_step_ = step;
  const bool is_last = steps_ > 0 && step >= steps_;
  const auto since_drawn = Clock::now() - (drawn_step_ > 0 ? drawn_ : start_);
  const bool is_due =
      is_terminal_ ? since_drawn >= std::chrono::milliseconds(100)
                   : (steps_ > 0 && step - drawn_step_ >= std::max<int64_t>(1, steps_ / 20)) ||
                         since_drawn >= std::chrono::seconds(2);
  if (is_due || is_last) draw(step, loss, more, is_last);
}

void Progress::draw(int64_t step, double loss, const std::string& more, bool is_last) {
  drawn_ = Clock::now();
  drawn_step_ = step;
  const double seconds = std::chrono::duration<double>(drawn_ - start_).count();
  const double rate = static_cast<double>(step - first_step_ + 1) / std::max(seconds, 1e-9);
  const std::string speed =
      samples_per_step_ > 0
          ? format("%.1fk samples/s", rate * static_cast<double>(samples_per_step_) / 1000)
          : format("%.4g steps/s", rate);
  const char* const begin = is_terminal_ ? "\r\033[K" : "";
  const char* const end = is_terminal_ && !is_last ? "" : "\n";
  is_open_ = is_terminal_ && !is_last;
  if (steps_ == 0) {
    std::printf("%sstep %lld  loss %.4f%s  %s%s", begin, static_cast<long long>(step), loss,
                more.c_str(), speed.c_str(), end);
    std::fflush(stdout);
    return;
  }
  constexpr int width = 20;
  const int filled = static_cast<int>(width * step / std::max<int64_t>(steps_, 1));
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < width) bar += '>';
  bar.resize(width, ' ');
  std::printf("%sstep %*lld/%lld [%s] %3lld%%  loss %.4f%s  %s%s", begin,
              static_cast<int>(std::to_string(steps_).size()), static_cast<long long>(step),
              static_cast<long long>(steps_), bar.c_str(),
              static_cast<long long>(100 * std::min(step, steps_) / std::max<int64_t>(steps_, 1)),
              loss, more.c_str(), speed.c_str(), end);
  std::fflush(stdout);
}

void Progress::finish() {
  if (!is_open_) return;
  std::printf("\n");
  std::fflush(stdout);
  is_open_ = false;
}

}  // namespace leat
