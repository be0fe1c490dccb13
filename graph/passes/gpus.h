// Whether a session's ops run on GPUs.
#pragma once

#include <cstdint>

namespace leat {

// Where an op goes that has kernels for CPUs and for GPUs, and whose node requests neither.
enum class Gpus : uint8_t { prefer, avoid };

}  // namespace leat
