// What staging areas and staging maps have in common: tuples, limits, the form of their ops.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/resource.h"
#include "core/waiting_state.h"
#include "graph/op_def.h"

namespace leat {

// A component of a staging map may not have come yet, or have been taken already.
using StagedTuple = std::vector<std::optional<Tensor>>;

uint64_t bytes_of(const StagedTuple& tuple);

struct StagingLimits {
  uint64_t capacity = 0, memory = 0;  // 0: none

  static StagingLimits of(const NodeView& node);
  // RESOURCE_EXHAUSTED if there can never be space for so much.
  void check_bytes(uint64_t bytes) const;
  bool has_space(size_t elements, uint64_t bytes, uint64_t more) const;
  std::string to_string() const;
};

// Sets the outputs from `first` on. INVALID_ARGUMENT if they are of another number or other dtypes.
void set_staged(ExecuteContext& c, const StagedTuple& tuple, int first);

// A `done` that first passes on what was taken.
template <class Out, class Taken, class Done>
auto giving(std::shared_ptr<Out> out, Taken taken, Done done) {
  return [out = std::move(out), taken = std::move(taken), done = std::move(done)](Status status) {
    try {  // whoever serves it has nothing to do with an element of the wrong types
      if (status.is_ok()) taken(*out);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  };
}

// With the attributes that all of them have.
OpDef staging_op(OpDef op, Kernel kernel,
                 std::function<std::shared_ptr<Resource>(const NodeView&)> make);

}  // namespace leat
