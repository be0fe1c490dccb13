// Merges boxes whose names differ only in their numbers.
#pragma once

#include <string>
#include <vector>

#include "tools/viz/view_model.h"

namespace leat::viz {

// "gradients/MatMul" for "gradients/MatMul_17"; the name itself if it has no number.
std::string without_number(const std::string& name);

// Boxes of one device and one scope that hold the same ops, and whose arrows connect to boxes of
// the same kinds, become one box. Small groups stay as they are, and so do boxes whose name without
// its number is in `apart`.
void fold_siblings(ViewModel& view, const std::vector<std::string>& apart);

}  // namespace leat::viz
