// Vocabularies: text files with a word per line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/file_roots.h"

namespace leat {

// The first lines, at most `at_most`. OUT_OF_RANGE if the file is empty, INVALID_ARGUMENT if a line
// is empty.
std::vector<std::string> lines_of(const std::string& path, int64_t at_most, const FileRoots& roots);

}  // namespace leat
