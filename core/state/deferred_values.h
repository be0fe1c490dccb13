// Values that a client and its running step exchange: the feeds and fetches of a partial run.
// graph/passes/defer.cc adds the nodes that use them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/state/waiting_state.h"
#include "core/variant.h"

namespace leat {

// The values of one step. Feeds and fetches are named "node:index". Thread-safe.
class DeferredValues final : public WaitingState {
 public:
  explicit DeferredValues(std::string name) : WaitingState(std::move(name)) {}

  std::string state() const override;

  // ---- The client's side ----
  void give(std::vector<std::pair<std::string, Tensor>> feeds);
  // Waits for all `fetches`. `done` gets them in this order, or the status of `cancellation`.
  using Taken = std::function<void(const Status&, std::vector<Tensor>)>;
  void take(std::vector<std::string> fetches, Cancellation& cancellation, Taken done);

  // ---- The step's side ----
  void await_feed(const std::string& feed, std::function<void(const Tensor&)> given,
                  Cancellation& cancellation, Done done);
  void deliver(const std::string& fetch, Tensor value);

 private:
  bool has_all(const std::vector<std::string>& fetches) const;

  std::map<std::string, Tensor> feeds_, fetches_;
};

// How a step receives them: as a variant feed.
Tensor deferred_variant(std::shared_ptr<DeferredValues> values);
// INVALID_ARGUMENT for any other variant.
DeferredValues& deferred_values_of(const Tensor& variant);

}  // namespace leat
