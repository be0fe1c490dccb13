// The master's interface to a session: over the wire (remote_master.h), or in this process if the
// program is the task itself (local_master.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"

namespace leat {

struct StepAnswer {
  std::vector<Tensor> fetches;  // in the order asked for
  RunMetadata metadata;
};

// A running step.
class StartedStep {
 public:
  virtual ~StartedStep() = default;
  // Call once. Waits for the step's end; throws its error.
  virtual StepAnswer wait() = 0;
};

// Thread-safe. Every call blocks until the answer or its timeout, and throws leat::Error.
class MasterClient {
 public:
  virtual ~MasterClient() = default;

  struct Created {
    std::string handle;
    int64_t version = 0;
  };
  virtual Created create_session(std::string graph_def, const SessionOptions& options,
                                 std::chrono::milliseconds timeout) = 0;
  // Adds the nodes of `graph_def` to a session that is at `version`; returns the new one.
  virtual int64_t extend_session(const std::string& handle, std::string graph_def, int64_t version,
                                 std::chrono::milliseconds timeout) = 0;
  // Begins a step. Feeds are in the order of the signature; options.timeout is above 0.
  virtual std::unique_ptr<StartedStep> start_step(const std::string& handle,
                                                  const StepSignature& signature,
                                                  std::span<const Tensor> feeds,
                                                  const RunOptions& options) = 0;
  virtual std::vector<DeviceDescription> list_devices(const std::string& handle,
                                                      std::chrono::milliseconds timeout) = 0;
  virtual void close_session(const std::string& handle, std::chrono::milliseconds timeout) = 0;
};

}  // namespace leat
