// Iterators: state of a task that reads a dataset (dataset.h) one element at a time, for any number
// of steps.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/function.h"
#include "core/state/resource.h"
#include "kernels/data/dataset.h"
#include "kernels/state/queue.h"

namespace leat {

// One step reads at a time; the others wait in line, and leave it when their step ends.
// Thread-safe.
class Iterator : public Resource, public std::enable_shared_from_this<Iterator> {
 public:
  // `factory`: makes the dataset when the first element is requested (OneShotIterator).
  Iterator(std::string name, ElementTypes types, std::optional<WrittenFunction> factory = {});

  static std::shared_ptr<Iterator> of(const NodeView& node);
  void check_fits(const NodeView& node) const override;
  std::string state() const override;

  const ElementTypes& types() const { return types_; }
  // Starts at the beginning. Steps that are reading finish with the previous dataset.
  void begin(ElementSource::Pointer dataset);
  // Passes the next element to `take`, or none at the end, on a thread that may wait; `c` is the
  // calling step. FAILED_PRECONDITION without a dataset.
  using Take = std::function<void(std::optional<Element>)>;
  void next(ExecuteContext& c, Take take, std::function<void(Status)> done);

  // The string that stands for the iterator on one device, and back.
  std::string handle(const std::string& device);
  static std::shared_ptr<Iterator> find(const std::string& handle, const std::string& device);
  // INVALID_ARGUMENT, with the component, unless its elements have these types.
  void check_types(const ElementTypes& wanted) const;

 private:
  // A reading of one dataset, from its beginning to its end.
  struct Source;
  std::optional<Element> read(Source& source, ExecuteContext& c);

  const ElementTypes types_;
  const std::optional<WrittenFunction> factory_;
  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<Source> source_;
  int64_t number_ = 0;  // used in handles; 0: not assigned
};

}  // namespace leat
