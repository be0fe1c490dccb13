#include "kernels/data/iterator.h"

#include <charconv>
#include <map>
#include <random>

#include "core/execution/blocking_work.h"
#include "core/execution/step_end.h"

namespace leat {
namespace {

// Iterators that are referred to by strings. The numbers are random, so that others cannot guess
// them.
class Handles {
 public:
  int64_t add(std::weak_ptr<Iterator> iterator) {
    const std::lock_guard lock(mutex_);
    std::erase_if(iterators_, [](const auto& entry) { return entry.second.expired(); });
    int64_t number = 0;
    while (number == 0 || iterators_.contains(number)) {
      number = static_cast<int64_t>((uint64_t{random_()} << 32 | random_()) >> 1);
    }
    iterators_.emplace(number, std::move(iterator));
    return number;
  }
  std::shared_ptr<Iterator> find(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = iterators_.find(number);
    return found == iterators_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::random_device random_;
  std::map<int64_t, std::weak_ptr<Iterator>> iterators_;
};

Handles& handles() {
  static Handles all;
  return all;
}

constexpr std::string_view handle_prefix = "iterator:";

}  // namespace

struct Iterator::Source {
  Source() { leave(); }
  void leave() { turns->put({}); }

  // The thread that reads holds its one element, and only this thread uses the members below.
  const std::shared_ptr<TensorQueue> turns =
      std::make_shared<TensorQueue>("", TensorQueue::Options{.kind = "Iterator"});
  ElementSource::Pointer dataset;
  std::unique_ptr<DatasetIterator> iterator;
};

Iterator::Iterator(std::string name, ElementTypes types, std::optional<WrittenFunction> factory)
    : Resource(std::move(name)), types_(std::move(types)), factory_(std::move(factory)) {
  if (factory_) source_ = std::make_shared<Source>();
}

std::shared_ptr<Iterator> Iterator::of(const NodeView& node) {
  std::optional<WrittenFunction> factory;
  if (node.has("dataset_factory")) factory = WrittenFunction::of(node, "dataset_factory");
  return std::make_shared<Iterator>(resource_name(node), ElementTypes::of(node),
                                    std::move(factory));
}

void Iterator::check_fits(const NodeView& node) const {
  try {
    check_same_types(types_, ElementTypes::of(node));
  } catch (const Error& error) {
    fail(Code::invalid_argument, "the iterator '", name(), "' has other elements than node '",
         node.name, "' expects: ", error.message());
  }
}

std::string Iterator::state() const {
  const std::lock_guard lock(mutex_);
  return concat("iterator '", name(), source_ ? "' reads its dataset" : "' has no dataset yet");
}

void Iterator::check_types(const ElementTypes& wanted) const { check_same_types(wanted, types_); }

void Iterator::begin(ElementSource::Pointer dataset) {
  check(!factory_, "'", name(), "' is a one-shot iterator, which already has its dataset");
  check_same_types(types_, dataset->types());
  auto source = std::make_shared<Source>();
  source->iterator = dataset->make_iterator();
  source->dataset = std::move(dataset);
  const std::lock_guard lock(mutex_);
  source_.swap(source);
}

void Iterator::next(ExecuteContext& c, Take take, std::function<void(Status)> done) {
  std::shared_ptr<Source> source;
  {
    const std::lock_guard lock(mutex_);
    source = source_;
  }
  if (!source) {
    fail(Code::failed_precondition,
         "GetNext() failed because the iterator has not been initialized. Ensure that you have run "
         "the initializer operation for this iterator before getting the next element.");
  }
  source->turns->dequeue(
      1, false, c.cancellation(),
      [self = shared_from_this(), source, &c, take = std::move(take), done = std::move(done),
       end = StepEnd::of_thread()](const Status& status, const std::vector<TensorQueue::Element>&) {
        if (!status.is_ok()) return done(status);
        const auto work = [self, source, &c, take, done, end] {
          Status result;
          try {
            const StepEnd::Scope scope(end);
            take(self->read(*source, c));
          } catch (...) {
            result = status_of_current_exception();
          }
          source->leave();
          done(result);
        };
        try {
          run_waiting(work);
        } catch (...) {  // no thread
          const Status status = status_of_current_exception();
          source->leave();
          done(status);
        }
      });
}

// Runs on a thread that may wait.
std::optional<Element> Iterator::read(Source& source, ExecuteContext& c) {
  Reading reading(c.cancellation());
  reading.check_goes_on();
  if (!source.iterator) {
    const auto made = compile_function(c, *factory_)->run({}, c.cancellation());
    check(made.size() == 1,
          "The dataset_factory function must return a single scalar of dtype "
          "DT_VARIANT.");
    source.dataset = dataset_of(made[0]);
    check_same_types(types_, source.dataset->types());
    source.iterator = source.dataset->make_iterator();
  }
  return source.iterator->next(reading);
}

// ---- Handles ----

std::string Iterator::handle(const std::string& device) {
  const std::lock_guard lock(mutex_);
  if (number_ == 0) number_ = handles().add(weak_from_this());
  return concat(handle_prefix, number_, ":", device);
}

std::shared_ptr<Iterator> Iterator::find(const std::string& handle, const std::string& device) {
  int64_t number = 0;
  const char* const end = handle.data() + handle.size();
  const char* at = handle.data() + std::min(handle.size(), handle_prefix.size());
  if (handle.starts_with(handle_prefix)) at = std::from_chars(at, end, number).ptr;
  check(number > 0 && at != end && *at == ':', "Could not parse string_handle '", handle,
        "': it was not returned by Iterator.string_handle()");
  const std::string_view made_at(at + 1, end);
  check(made_at == device, "Attempted create an iterator on device \"", device,
        "\" from handle defined on device \"", made_at,
        "\": place the op that takes the handle on that device");
  std::shared_ptr<Iterator> out = handles().find(number);
  if (!out) fail(Code::not_found, "the iterator of handle '", handle, "' no longer exists");
  return out;
}

}  // namespace leat
