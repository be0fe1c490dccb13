// Ops from a shared library.
#pragma once

#include <string>
#include <vector>

namespace leat {

// Loads a shared library whose ops register themselves (`const Op op{{…}};`, custom_op.h), and
// returns the names of the ops it adds, sorted; none if it was loaded before. It must be linked
// with the same libleat.so, and stays loaded until the process ends. As tf.load_op_library.
// NOT_FOUND, with the loader's message, if it cannot be loaded; INVALID_ARGUMENT if it
// registers nothing, or an op that does not fit; its other ops stay registered.
std::vector<std::string> load_op_library(const std::string& path);

}  // namespace leat
