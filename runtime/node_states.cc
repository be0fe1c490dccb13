#include "runtime/node_states.h"

#include <map>
#include <string>

namespace leat {

struct NodeStates::Table {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<void>, std::less<>> states;
};

NodeStates::NodeStates() : table_(std::make_unique<Table>()) {}
NodeStates::~NodeStates() = default;

std::mutex& NodeStates::mutex() { return table_->mutex; }

std::shared_ptr<void>& NodeStates::of(std::string_view node) {
  const auto it = table_->states.find(node);
  return it != table_->states.end() ? it->second : table_->states[std::string(node)];
}

}  // namespace leat
