#include "runtime/node_error.h"

namespace leat {

Error uninitialized(const Variable& variable, const Node& reader, const Device& device) {
  std::string message = concat("Attempting to use uninitialized value ", variable.name(), " (on ",
                               device.name(), ")");
  if (reader.location.is_known()) {
    message += concat(", which ", reader.op->name, " (", reader.location,
                      ") reads; call session.initialize() or restore a checkpoint first");
  }
  return Error(with_node({Code::failed_precondition, std::move(message)}, reader.name));
}

Status status_at(const Node& node, const Device& device) {
  return status_at(node, device, status_of_current_exception());
}

Status status_at(const Node& node, const Device& device, Status status) {
  if (!status.node.empty()) return status;
  std::string place = concat(" (", node.op->name, " on ", device.name());
  if (node.location.is_known()) place += concat(", ", node.location);
  status.message += place + ")";
  return with_node(std::move(status), node.name);
}

}  // namespace leat
