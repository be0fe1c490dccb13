#include "core/state/deferred_values.h"

#include <algorithm>

namespace leat {
namespace {

class DeferredVariant final : public Variant {
 public:
  static constexpr std::string_view kind_name = "the exchanged values of a partial run";

  explicit DeferredVariant(std::shared_ptr<DeferredValues> values) : values(std::move(values)) {}

  std::string_view kind() const override { return kind_name; }
  std::unique_ptr<Variant> copy() const override {
    return std::make_unique<DeferredVariant>(*this);
  }

  const std::shared_ptr<DeferredValues> values;
};

}  // namespace

Tensor deferred_variant(std::shared_ptr<DeferredValues> values) {
  return variant_tensor(std::make_unique<DeferredVariant>(std::move(values)));
}

DeferredValues& deferred_values_of(const Tensor& variant) {
  return *variant_as<DeferredVariant>(variant).values;
}

std::string DeferredValues::state() const {
  const std::lock_guard lock(mutex_);
  return concat(name(), " has ", feeds_.size(), " feeds and ", fetches_.size(), " fetches");
}

void DeferredValues::give(std::vector<std::pair<std::string, Tensor>> feeds) {
  change([&] {
    for (auto& [name, value] : feeds) feeds_.emplace(name, std::move(value));
  });
}

void DeferredValues::await_feed(const std::string& feed, std::function<void(const Tensor&)> given,
                                Cancellation& cancellation, Done done) {
  when_possible(
      [this, feed, given = std::move(given)] {
        const auto found = feeds_.find(feed);
        if (found == feeds_.end()) return false;
        const Tensor value = std::move(found->second);
        feeds_.erase(found);
        given(value);
        return true;
      },
      cancellation, std::move(done));
}

void DeferredValues::deliver(const std::string& fetch, Tensor value) {
  change([&] { fetches_.emplace(fetch, std::move(value)); });
}

// With the lock held.
bool DeferredValues::has_all(const std::vector<std::string>& fetches) const {
  return std::ranges::all_of(fetches, [&](const auto& name) { return fetches_.contains(name); });
}

// A step that has ended may have delivered before.
void DeferredValues::take(std::vector<std::string> fetches, Cancellation& cancellation,
                          Taken done) {
  const auto names = std::make_shared<const std::vector<std::string>>(std::move(fetches));
  when_possible([this, names] { return has_all(*names); }, cancellation,
                [this, names, done = std::move(done)](const Status& status) {
                  std::vector<Tensor> out;
                  bool are_there = false;
                  {
                    const std::lock_guard lock(mutex_);
                    are_there = has_all(*names);
                    for (const std::string& name : *names) {
                      if (are_there) out.push_back(std::move(fetches_.extract(name).mapped()));
                    }
                  }
                  done(are_there ? Status() : status, std::move(out));
                });
}

}  // namespace leat
