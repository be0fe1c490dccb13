// Converts between the messages of TensorFlow's MasterService and our values, in both directions,
// so that client (remote_master) and master (master_service) cannot disagree. For .cc files that
// speak the protocol.
#pragma once

#include "runtime/session.h"

namespace tensorflow {
class ConfigProto;
class DeviceAttributes;
class RunMetadata;
class RunOptions;
}  // namespace tensorflow

namespace leat {

// Methods of the service; the wire's path is this + name.
inline constexpr const char* master_service = "/tensorflow.MasterService/";

// Does not write the target and threads. INVALID_ARGUMENT or UNIMPLEMENTED for options of
// TensorFlow's client that a task does not support.
void write_options(const SessionOptions& options, tensorflow::ConfigProto& proto);
SessionOptions read_options(const tensorflow::ConfigProto& proto);

// UNIMPLEMENTED for tfdbg's watches.
void write_options(const RunOptions& options, tensorflow::RunOptions& proto);
RunOptions read_options(const tensorflow::RunOptions& proto);

// Events as TensorFlow's StepStats: times in micro- and nanoseconds, inputs in the label.
void write_metadata(const RunMetadata& metadata, tensorflow::RunMetadata& proto);
RunMetadata read_metadata(const tensorflow::RunMetadata& proto);

void write_device(const DeviceDescription& device, tensorflow::DeviceAttributes& proto);
DeviceDescription read_device(const tensorflow::DeviceAttributes& proto);

}  // namespace leat
