#include "distributed/master/local_master.h"

#include <atomic>
#include <future>
#include <map>
#include <mutex>

#include "distributed/master/master.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A master answers before its deadline, so its caller waits a little longer.
constexpr milliseconds deadline_margin = std::chrono::seconds(2);

class Registry {
 public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  void add(const std::string& target, const std::shared_ptr<Master>& master) {
    std::lock_guard lock(mutex_);
    masters_[target] = master;
  }
  // Not one that has taken its place.
  void remove(const std::string& target, const Master* master) {
    std::lock_guard lock(mutex_);
    const auto found = masters_.find(target);
    if (found == masters_.end()) return;
    const auto current = found->second.lock();
    if (current == nullptr || current.get() == master) masters_.erase(found);
  }
  std::shared_ptr<Master> find(const std::string& target) const {
    std::lock_guard lock(mutex_);
    const auto found = masters_.find(target);
    return found == masters_.end() ? nullptr : found->second.lock();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Master>> masters_;
};

// What a callback will bring.
template <class Value>
class Answer {
 public:
  Answer() : value_(promise_->get_future()) {}

  // For the callback; later calls do nothing.
  std::function<void(Value)> taker() const {
    return [promise = promise_, is_set = is_set_](Value value) {
      if (!is_set->exchange(true)) promise->set_value(std::move(value));
    };
  }
  Value wait(Clock::time_point deadline, const char* what, const std::string& whose) {
    if (value_.wait_until(deadline) != std::future_status::ready) {
      fail(Code::deadline_exceeded, what, " on ", whose, " was not answered within its deadline");
    }
    return value_.get();
  }

 private:
  std::shared_ptr<std::promise<Value>> promise_ = std::make_shared<std::promise<Value>>();
  std::shared_ptr<std::atomic<bool>> is_set_ = std::make_shared<std::atomic<bool>>(false);
  std::future<Value> value_;
};

class LocalStep final : public StartedStep {
 public:
  LocalStep(std::string target, Clock::time_point deadline)
      : target_(std::move(target)), deadline_(deadline) {}

  ClusterStep::Done done() const { return outcome_.taker(); }

  StepAnswer wait() override {
    StepOutcome outcome = outcome_.wait(deadline_, "a step", target_);
    throw_if_error(outcome.status);
    return {std::move(outcome.fetches), std::move(outcome.metadata)};
  }

 private:
  const std::string target_;
  const Clock::time_point deadline_;
  Answer<StepOutcome> outcome_;
};

class LocalMaster final : public MasterClient {
 public:
  LocalMaster(std::string target, const std::shared_ptr<Master>& master)
      : target_(std::move(target)), master_(master) {}

  Created create_session(std::string graph_def, const SessionOptions& options,
                         milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    Answer<std::pair<Status, std::string>> created;
    master()->create_session(std::move(graph_def), options, deadline,
                             [take = created.taker()](const Status& status, std::string handle) {
                               take({status, std::move(handle)});
                             });
    auto [status, handle] = created.wait(deadline + deadline_margin, "CreateSession", target_);
    throw_if_error(status);
    return {std::move(handle), 0};
  }

  int64_t extend_session(const std::string& handle, std::string graph_def, int64_t version,
                         milliseconds timeout) override {
    const Clock::time_point deadline = Clock::now() + timeout;
    Answer<std::pair<Status, int64_t>> extended;
    master()->extend_session(handle, std::move(graph_def), version, deadline,
                             [take = extended.taker()](const Status& status, int64_t grown) {
                               take({status, grown});
                             });
    const auto [status, grown] =
        extended.wait(deadline + deadline_margin, "ExtendSession", target_);
    throw_if_error(status);
    return grown;
  }

  std::unique_ptr<StartedStep> start_step(const std::string& handle, const StepSignature& signature,
                                          std::span<const Tensor> feeds,
                                          const RunOptions& options) override {
    const Clock::time_point deadline = Clock::now() + options.timeout;
    ClientRequest request;
    for (size_t i = 0; i < feeds.size(); ++i)
      request.feeds.emplace_back(signature.feeds[i], feeds[i]);
    request.fetches = signature.fetches;
    request.targets = signature.targets;
    request.options = options;
    request.any_size = true;
    request.times = {deadline, deadline + deadline_margin, options.timeout};
    auto step = std::make_unique<LocalStep>(target_, deadline + deadline_margin);
    master()->session(handle)->run(std::move(request), step->done());
    return step;
  }

  std::vector<DeviceDescription> list_devices(const std::string& handle,
                                              milliseconds timeout) override {
    using Devices = std::vector<DeviceDescription>;
    Answer<std::pair<Status, Devices>> listed;
    master()->list_devices(handle, [take = listed.taker()](const Status& status, Devices devices) {
      take({status, std::move(devices)});
    });
    auto [status, devices] = listed.wait(Clock::now() + timeout, "ListDevices", target_);
    throw_if_error(status);
    return devices;
  }

  void close_session(const std::string& handle, milliseconds timeout) override {
    const std::shared_ptr<Master> master = master_.lock();
    if (master == nullptr) return;  // and its sessions with it
    Answer<Status> closed;
    master->close_session(handle, [take = closed.taker()](const Status& status) { take(status); });
    throw_if_error(closed.wait(Clock::now() + timeout, "CloseSession", target_));
  }

 private:
  std::shared_ptr<Master> master() const {
    std::shared_ptr<Master> master = master_.lock();
    if (master == nullptr)
      fail(Code::unavailable, "the task at ", target_, ", in this process, has ended");
    return master;
  }

  const std::string target_;
  const std::weak_ptr<Master> master_;
};

}  // namespace

std::shared_ptr<const void> register_local_master(const std::string& target,
                                                  const std::shared_ptr<Master>& master) {
  Registry::instance().add(target, master);
  return std::shared_ptr<const void>(master.get(), [target](const void* registered) {
    Registry::instance().remove(target, static_cast<const Master*>(registered));
  });
}

std::unique_ptr<MasterClient> find_local_master(const std::string& target) {
  const std::shared_ptr<Master> master = Registry::instance().find(target);
  return master == nullptr ? nullptr : std::make_unique<LocalMaster>(target, master);
}

}  // namespace leat
