// RunStep's answer where TensorFlow's message, of 2 GiB, cannot hold the fetches: a message of our
// own, for clients of ours. It begins with a byte that is no message of protobuf.
#pragma once

#include <functional>
#include <string>

#include "distributed/grpc/rpc.h"
#include "runtime/session.h"

namespace leat {

// Beyond what the tensors' bytes are, a message has names, shapes and the like.
inline constexpr uint64_t most_fetched_bytes = uint64_t{INT32_MAX} - (uint64_t{16} << 20);

// `response`: a serialised RunStepResponse without tensors.
Slices encode_large_answer(const std::string& response, const NamedTensors& fetches);
bool is_large_answer(const Bytes& bytes);
// Returns the response. INVALID_ARGUMENT for malformed bytes.
std::string decode_large_answer(const Bytes& bytes,
                                const std::function<void(std::string name, Tensor tensor)>& fetch);

}  // namespace leat
