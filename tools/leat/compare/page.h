// The pictures of a comparison: loss against time, samples, and bytes.
#pragma once

#include <string>

#include "tools/leat/compare/report.h"

namespace leat {

// A page without scripts or other files: three charts, the figures, who was waited for.
std::string to_html(const Comparison& comparison);
// The three charts side by side.
std::string to_svg(const Comparison& comparison);

}  // namespace leat
