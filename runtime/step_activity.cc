#include "runtime/step_activity.h"

#include <algorithm>
#include <cstdio>

namespace leat {

std::string seconds_text(std::chrono::nanoseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s",
                static_cast<double>(std::max<int64_t>(time.count(), 0)) / 1e9);
  return text;
}

std::string StepActivity::to_string() const {
  return what + (from.empty() ? "" : " from " + from) +
         (ns > 0 ? ", for " + seconds_text(std::chrono::nanoseconds(ns)) : "");
}

}  // namespace leat
