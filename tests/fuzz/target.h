// A fuzz target: bytes from outside, and the code that reads them first. Each *_fuzz.cc defines
// both functions. It is built twice: with libFuzzer (clang, LEAT_FUZZ=ON) as fuzz_NAME, and with
// any compiler as replay_NAME, whose main (replay.cc) runs the seeds, the inputs that once found
// something (corpus/NAME/), and mutations of them for some seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "graph/import/proto_codec.h"

// Ends the process if the input finds a mistake.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace leat::fuzz {

// No input may take gigabytes.
inline const bool expansions_are_small = (limit_expansions(256u << 20), true);

// Valid inputs to start from.
std::vector<std::string> seeds();

// Any bytes must yield a value or an error that is the sender's fault. INTERNAL is our mistake, and
// so is any other exception.
template <class Action>
void expect_no_mistake_of_ours(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != Code::internal) return;
    std::cerr << "a mistake of ours: " << error.message() << std::endl;
    std::abort();
  }
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace leat::fuzz
