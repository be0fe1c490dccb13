// "Did you mean …": suggestions for NOT_FOUND errors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leat {

// At most three candidates that differ from `wanted` by few edits (case counts little), nearest
// first.
std::vector<std::string> near_misses(std::string_view wanted,
                                     const std::vector<std::string_view>& candidates);

// The same as the end of a sentence: "; did you mean 'a' or 'b'?", or "" if nothing is near.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string_view>& candidates);

}  // namespace leat
