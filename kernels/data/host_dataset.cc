// _HostDataset: elements that a C++ function of this process returns.
#include "core/host_functions.h"
#include "kernels/data/dataset.h"

namespace leat {
namespace {

class HostDataset final : public ElementSource {
 public:
  HostDataset(ElementTypes types, std::shared_ptr<const HostFunction> function)
      : ElementSource(std::move(types)), function_(std::move(function)) {}

 private:
  std::unique_ptr<DatasetIterator> iterate() const override {
    return iterator([this, is_over = false](Reading&) mutable {
      std::optional<Element> out;
      if (is_over) return out;
      std::optional<std::vector<Tensor>> values = (*function_)();
      is_over = !values;
      if (values) out.emplace(std::make_move_iterator(values->begin()),
                              std::make_move_iterator(values->end()));
      return out;
    });
  }

  const std::shared_ptr<const HostFunction> function_;
};

const Op host_op{dataset_op({.name = "_HostDataset",
                             .doc = "What the C++ function `function` of this process gives each "
                                    "time, until it gives nothing.",
                             .attrs = dataset_attrs({"function: int"}),
                             .is_stateful = true},
                            [](ExecuteContext& c) {
                              return std::make_shared<HostDataset>(
                                  ElementTypes::of(c.node()),
                                  host_function(c.node().attr<int64_t>("function")));
                            })};

}  // namespace
}  // namespace leat
