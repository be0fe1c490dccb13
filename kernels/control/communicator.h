// Collectives between GPUs, whoever computes them: NCCL in the plug-in
// (kernels/cuda/nccl_communicator.cu), streams that wait for each other where tests run the plug-in
// on the host (tests/support/cuda/host_communicator.cc). Kernels see only this.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/device.h"
#include "core/dtype.h"
#include "graph/ops/collective_result.h"

namespace leat {

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  DType dtype = DType::f32;  // f32, f64, f16 or bf16
  int64_t elements = 0;      // of the input; of reduce_scatter a multiple of the members
  bool is_mean = false;      // else the sum; of all_gather neither
};

// A GPU's place in a group. All members must make the same calls in the same order. One thread at
// a time may use it, but for abort().
class Communicator {
 public:
  virtual ~Communicator() = default;  // aborts
  // Have all members met? Does not wait. INTERNAL if they cannot.
  virtual bool is_ready() = 0;
  // Only enqueues. `out` may be `in`, but not of reduce_scatter and all_gather.
  virtual void run(const CollectiveCall& call, const void* in, void* out, Stream& stream) = 0;
  // Ends what is enqueued, on this GPU; outputs then mean nothing, and nothing can follow.
  virtual void abort() = 0;
};

// A library that connects GPUs. Thread-safe.
class CommunicatorLibrary {
 public:
  virtual ~CommunicatorLibrary() = default;
  // Of a new group: bytes that its members exchange. INTERNAL if the library cannot make one.
  virtual std::string new_id() = 0;
  // Does not wait for the other members.
  virtual std::unique_ptr<Communicator> make(Device& device, const std::string& id, int rank,
                                             int members) = 0;
};

// The GPU plug-in's; null if there is none on this machine. It is opened by the first call.
CommunicatorLibrary* communicator_library();

}  // namespace leat
