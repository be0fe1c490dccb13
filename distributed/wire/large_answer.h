// RunStep's answer when the fetches exceed TensorFlow's message limit of 2 GiB: our own message,
// for our clients. Its first byte cannot begin a protobuf message.
#pragma once

#include <functional>
#include <string>

#include "distributed/grpc/rpc.h"
#include "runtime/session.h"

namespace leat {

// Leaves room in a message for names, shapes and the like beside the tensors' bytes.
inline constexpr uint64_t most_fetched_bytes = uint64_t{INT32_MAX} - (uint64_t{16} << 20);

// `response`: a serialised RunStepResponse without tensors.
Slices encode_large_answer(const std::string& response, const NamedTensors& fetches);
bool is_large_answer(const Bytes& bytes);
// Returns the response. INVALID_ARGUMENT for malformed bytes.
std::string decode_large_answer(const Bytes& bytes,
                                const std::function<void(std::string name, Tensor tensor)>& fetch);

}  // namespace leat
