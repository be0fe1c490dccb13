// Tables for people: columns as wide as their longest cell, two blanks apart.
#pragma once

#include <string>
#include <vector>

namespace leat {

// A line per row, without blanks at its end. Cells are aligned on the left, those of column
// `right_aligned` on the right. Rows have as many cells as the first one.
std::string aligned(const std::vector<std::vector<std::string>>& rows, int right_aligned = -1);

}  // namespace leat
