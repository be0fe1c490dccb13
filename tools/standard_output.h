// For commands whose result is their output.
#pragma once

#include <iostream>

#include "core/error.h"

namespace leat {

// DATA_LOSS if the output was not written: a full disk, a closed descriptor.
inline void finish_standard_output() {
  std::cout.flush();
  if (!std::cout) fail(Code::data_loss, "cannot write to standard output");
}

}  // namespace leat
