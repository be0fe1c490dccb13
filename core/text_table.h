// Tables for people: columns as wide as their longest cell, two spaces apart.
#pragma once

#include <string>
#include <vector>

namespace leat {

// One line per row, without trailing spaces. Cells are left-aligned, those of column
// `right_aligned` right-aligned. All rows have as many cells as the first.
std::string aligned(const std::vector<std::vector<std::string>>& rows, int right_aligned = -1);

}  // namespace leat
