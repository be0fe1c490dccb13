// The chief initialises the variables of a cluster; everybody else waits for it.
#pragma once

#include <chrono>
#include <vector>

#include "frontends/cpp/session.h"
#include "frontends/cpp/variables.h"

namespace leat {

// Make it when all variables have been made. The chief calls initialize(), the others wait().
class Readiness {
 public:
  explicit Readiness(Graph& graph);

  void initialize(Session& session) const;
  // Fills the tables: for a session whose variables have their values from a checkpoint, or from
  // the chief. Tables that are filled already stay as they are.
  void fill_tables(Session& session) const;
  // Gives values to what checkpoints lack: variables that are this program's own (add_copy_root).
  // Of a program that is not the chief also the copies of variables.
  void initialize_own(Session& session, bool is_chief) const;
  // Names of variables that have no value yet.
  std::vector<std::string> uninitialized(Session& session) const;
  // Returns when all are initialised. DEADLINE_EXCEEDED, after `limit`, says how many are not,
  // which is the first, and who should have done it.
  void wait(Session& session, std::chrono::milliseconds limit = std::chrono::minutes(1)) const;

 private:
  Node* initializer_;
  Node* table_initializer_;  // null if there are no tables
  Node* own_initializer_;    // null if there are no such variables
  Node* copies_;             // null if there are none
  std::vector<Output> variables_;
  std::vector<Output> checks_;  // whether each has a value
};

}  // namespace leat
