// What a training step computes again, so that it need not keep it.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

// The backward part of a step reads values of the forward part. A step may keep only some of them
// and compute the others again when it needs them (Chen, Xu, Zhang, Guestrin: Training Deep Nets
// with Sublinear Memory Cost, arXiv:1604.06174): less memory for up to one more forward part. All
// results stay the same, to the bit.
enum class Recompute : uint8_t {
  nothing,    // all values are kept
  layers,     // what enters a layer is kept: its inside is computed again
  automatic,  // the plan with the least memory, as inferred shapes tell: O(√n) of n equal layers
};

// "none", "layers" or "auto". INVALID_ARGUMENT, which lists these, for another text.
Recompute recompute_from_text(std::string_view text);

}  // namespace leat
