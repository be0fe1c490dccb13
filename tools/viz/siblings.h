// Boxes whose names differ in their numbers only, as one.
#pragma once

#include <string>
#include <vector>

#include "tools/viz/view_model.h"

namespace leat::viz {

// "gradients/MatMul" of "gradients/MatMul_17"; the name itself if there is no number behind it.
std::string without_number(const std::string& name);

// Those of one device and one scope that hold the same ops, and whose arrows go to and come from
// boxes of the same kinds, become one box; few of them stay as they are, and so do those whose name
// without its number is in `apart`.
void fold_siblings(ViewModel& view, const std::vector<std::string>& apart);

}  // namespace leat::viz
