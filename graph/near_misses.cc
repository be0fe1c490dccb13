// Edit distance with a bound: long lists of nodes are searched only to write an error.
#include "graph/near_misses.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace leat {
namespace {

bool is_same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// In half edits: another case of the same letter costs one, any other edit (a swap of neighbours,
// too) two.
int distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before(width), above(width), row(width);
  for (size_t j = 0; j < width; ++j) above[j] = static_cast<int>(2 * j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(2 * i);
    for (size_t j = 1; j < width; ++j) {
      const int change = a[i - 1] == b[j - 1] ? 0 : is_same_letter(a[i - 1], b[j - 1]) ? 1 : 2;
      row[j] = std::min({above[j] + 2, row[j - 1] + 2, above[j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 2);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above.back();
}

std::string_view last_part(std::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

}  // namespace

std::vector<std::string> near_misses(std::string_view wanted,
                                     const std::vector<std::string_view>& candidates) {
  // A third of the letters; of names of one or two letters, only their case.
  const int limit = std::max(1, 2 * (static_cast<int>(wanted.size()) / 3));
  std::vector<std::pair<int, std::string_view>> found;
  for (std::string_view candidate : candidates) {
    const auto longer = static_cast<int>(std::max(candidate.size(), wanted.size()));
    const auto shorter = static_cast<int>(std::min(candidate.size(), wanted.size()));
    int far = 2 * (longer - shorter) <= limit ? distance(wanted, candidate) : limit + 1;
    // A name without its scope: "MatMul" for "logits/MatMul".
    if (far > limit && wanted.size() > 1 && candidate.size() > wanted.size() &&
        last_part(candidate) == wanted) {
      far = limit;
    }
    if (far <= limit) found.emplace_back(far, candidate);
  }
  std::sort(found.begin(), found.end());
  if (found.size() > 3) found.resize(3);
  std::vector<std::string> out;
  for (const auto& [far, candidate] : found) out.emplace_back(candidate);
  return out;
}

std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& candidates) {
  const std::vector<std::string> near = near_misses(wanted, candidates);
  if (near.empty()) return "";
  std::string out = "; did you mean ";
  for (size_t i = 0; i < near.size(); ++i) {
    if (i > 0) out += i + 1 == near.size() ? " or " : ", ";
    out += "'" + near[i] + "'";
  }
  return out + "?";
}

}  // namespace leat
