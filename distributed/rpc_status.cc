#include "distributed/rpc_status.h"

#include "distributed/proto/worker.pb.h"

namespace leat {
namespace {

constexpr const char* node_entry = "leat.node";
// What a peer takes beside the message has a limit: a longer name is left out.
constexpr size_t longest_node = 500;

}  // namespace

RpcStatus to_rpc_status(const Status& status) {
  RpcStatus out{static_cast<int>(status.code), status.message};
  if (status.node.empty() || status.node.size() > longest_node) return out;
  wire::StatusPayloads payloads;
  (*payloads.mutable_payloads())[node_entry] = status.node;
  out.details = payloads.SerializeAsString();
  return out;
}

std::string node_of(const RpcStatus& status) {
  wire::StatusPayloads payloads;
  if (status.details.empty() || !payloads.ParseFromString(status.details)) return {};
  const auto found = payloads.payloads().find(node_entry);
  return found == payloads.payloads().end() ? std::string() : found->second;
}

}  // namespace leat
