#include "kernels/state/staging.h"

namespace leat {

// A string counts with its text and the 24 bytes that a string object has in TensorFlow.
uint64_t bytes_of(const StagedTuple& tuple) {
  uint64_t out = 0;
  for (const auto& tensor : tuple) {
    if (!tensor) continue;
    if (tensor->dtype() != DType::string) {
      out += tensor->bytes();
      continue;
    }
    for (const std::string& text : tensor->span<std::string>()) out += 24 + text.size();
  }
  return out;
}

StagingLimits StagingLimits::of(const NodeView& node) {
  return {.capacity = static_cast<uint64_t>(node.attr<int64_t>("capacity")),
          .memory = static_cast<uint64_t>(node.attr<int64_t>("memory_limit"))};
}

void StagingLimits::check_bytes(uint64_t bytes) const {
  if (memory == 0 || bytes <= memory) return;
  fail(Code::resource_exhausted, "Attempted to insert tensors with combined size of '", bytes,
       "' bytes into Staging Area with a memory limit of '", memory, "'.");
}

bool StagingLimits::has_space(size_t elements, uint64_t bytes, uint64_t more) const {
  return (capacity == 0 || elements < capacity) && (memory == 0 || bytes + more <= memory);
}

std::string StagingLimits::to_string() const {
  std::string out;
  if (capacity > 0) out += concat(" of at most ", capacity);
  if (memory > 0) out += concat(", in at most ", memory, " bytes");
  return out;
}

void set_staged(ExecuteContext& c, const StagedTuple& tuple, int first) {
  const auto& dtypes = c.node().attr<std::vector<DType>>("dtypes");
  check(tuple.size() == dtypes.size(), "Mismatch stage/unstage: ", tuple.size(), " vs. ",
        dtypes.size());
  for (size_t i = 0; i < tuple.size(); ++i) {
    check(tuple[i]->dtype() == dtypes[i], "Mismatch stage/unstage: component ", i, " is of dtype ",
          tuple[i]->dtype(), ", not ", dtypes[i]);
    c.set_output(first + static_cast<int>(i), *tuple[i]);
  }
}

OpDef staging_op(OpDef op, Kernel kernel,
                 std::function<std::shared_ptr<Resource>(const NodeView&)> make) {
  op.attrs.insert(op.attrs.end(), {"capacity: int >= 0 = 0", "memory_limit: int >= 0 = 0",
                                   "container: string = ''", "shared_name: string = ''"});
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.make_resource = std::move(make);
  op.is_not_differentiable = true;
  return op;
}

}  // namespace leat
