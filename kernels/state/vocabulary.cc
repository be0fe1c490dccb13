#include "kernels/state/vocabulary.h"

#include "core/error.h"
#include "graph/formats/file.h"

namespace leat {

std::vector<std::string> lines_of(const std::string& path, int64_t at_most,
                                  const FileRoots& roots) {
  const std::string text = read_file(path, roots);
  if (text.empty()) fail(Code::out_of_range, "the vocabulary file ", path, " is empty");
  std::vector<std::string> lines;
  std::string line;
  for (size_t i = 0; i < text.size() && static_cast<int64_t>(lines.size()) < at_most; ++i) {
    if (text[i] != '\n' && text[i] != '\r') line += text[i];
    if (text[i] != '\n' && i + 1 < text.size()) continue;
    check(!line.empty(), "Invalid content in ", path, ": empty line found at position ", i + 1,
          ".");
    lines.push_back(std::move(line));
    line.clear();
  }
  return lines;
}

}  // namespace leat
