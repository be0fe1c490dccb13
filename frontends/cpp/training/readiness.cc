#include "frontends/cpp/training/readiness.h"

#include <algorithm>
#include <thread>

namespace leat {

Readiness::Readiness(Graph& graph)
    : initializer_(&initialize_variables(graph)),
      table_initializer_(
          graph.collection("table_initializers").empty() ? nullptr : &initialize_tables(graph)),
      own_initializer_(graph.collection("own_initializers").empty()
                           ? nullptr
                           : &initialize_own_variables(graph)),
      copies_(graph.collection("copy_initializers").empty() ? nullptr : &update_copies(graph)),
      variables_(graph.collection("variables")) {
  const NameScope scope(graph, "readiness");
  for (const Output& variable : variables_) {
    const ColocationScope with(graph, {variable});
    checks_.push_back(is_variable_initialized(variable));
  }
}

void Readiness::initialize(Session& session) const { session.run({*initializer_}); }

void Readiness::fill_tables(Session& session) const {
  if (table_initializer_ != nullptr) session.run({*table_initializer_});
}

void Readiness::initialize_own(Session& session, bool is_chief) const {
  if (own_initializer_ != nullptr) session.run({*own_initializer_});
  if (copies_ != nullptr && !is_chief) session.run({*copies_});
}

std::vector<std::string> Readiness::uninitialized(Session& session) const {
  std::vector<std::string> out;
  if (variables_.empty()) return out;
  const std::vector<Tensor> flags = session.run({}, checks_);
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i].item<bool>()) out.push_back(variable_name(variables_[i]));
  }
  return out;
}

void Readiness::wait(Session& session, std::chrono::milliseconds limit) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  std::chrono::milliseconds pause(5);
  for (;;) {
    const std::vector<std::string> missing = uninitialized(session);
    if (missing.empty()) return;
    if (Clock::now() + pause > end) {
      fail(Code::deadline_exceeded, "after ", limit.count(), " ms ", missing.size(), " of ",
           variables_.size(), " variables are still uninitialised (first: ", missing.front(),
           "); the chief initialises them: is its program running, against the same ps tasks?");
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

}  // namespace leat
