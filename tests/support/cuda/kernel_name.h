// Names of functions that no dynamic symbol table lists.
#pragma once

#include <string>

namespace cuda_on_host {

// "leat::(anonymous namespace)::softmax_kernel<false, float>(…)": from the symbol table of the file
// that the function was loaded from. "kernel at 0x…" if that was stripped.
std::string kernel_name(const void* function);

}  // namespace cuda_on_host
