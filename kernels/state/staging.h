// Shared by staging areas and staging maps: tuples, limits, the form of their ops.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/state/resource.h"
#include "core/state/waiting_state.h"
#include "graph/op_def.h"

namespace leat {

// A component of a staging map may not have arrived yet, or may already have been taken.
using StagedTuple = std::vector<std::optional<Tensor>>;

uint64_t bytes_of(const StagedTuple& tuple);

struct StagingLimits {
  uint64_t capacity = 0, memory = 0;  // 0: unlimited

  static StagingLimits of(const NodeView& node);
  // RESOURCE_EXHAUSTED if so many bytes can never fit.
  void check_bytes(uint64_t bytes) const;
  bool has_space(size_t elements, uint64_t bytes, uint64_t more) const;
  std::string to_string() const;
};

// Sets the outputs from `first` on. INVALID_ARGUMENT if their number or dtypes differ.
void set_staged(ExecuteContext& c, const StagedTuple& tuple, int first);

// A `done` that first passes on the taken tuple.
template <class Out, class Taken, class Done>
auto giving(std::shared_ptr<Out> out, Taken taken, Done done) {
  return [out = std::move(out), taken = std::move(taken), done = std::move(done)](Status status) {
    try {  // the operation that serves it must not fail for an element of the wrong types
      if (status.is_ok()) taken(*out);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  };
}

// Adds the attributes that all staging ops have.
OpDef staging_op(OpDef op, Kernel kernel,
                 std::function<std::shared_ptr<Resource>(const NodeView&)> make);

}  // namespace leat
