// A view as text: Graphviz DOT (for svg, png and pdf) and JSON.
#pragma once

#include <string>

#include "tools/viz/view_model.h"

namespace leat::viz {

// Devices as coloured boxes, cables dashed and labelled, control edges thin and dotted, a legend
// below.
std::string to_dot(const ViewModel& view, const std::string& title);

std::string to_json(const ViewModel& view);

// Lays out DOT and renders it: `format` is svg, png or pdf. UNIMPLEMENTED if Leat was built without
// Graphviz, INTERNAL if Graphviz fails.
std::string draw(const std::string& dot, const std::string& format);

}  // namespace leat::viz
