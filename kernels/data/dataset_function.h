// Functions that datasets call, together with their captured values.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/function.h"
#include "kernels/data/dataset.h"

namespace leat {

// Thread-safe.
class DatasetFunction {
 public:
  // `attr`: the attribute of the node of `c` that names the function.
  DatasetFunction(ExecuteContext& c, std::string_view attr);

  Element call(const Element& element, Reading& reading) const;
  // None if the function ends the sequence with OUT_OF_RANGE. With `preserves_count` that is
  // INVALID_ARGUMENT instead: the function must return a result for each element.
  std::optional<Element> call_or_end(const Element& element, bool preserves_count,
                                     Reading& reading) const;
  ElementSource::Pointer call_for_dataset(const Element& element, Reading& reading) const;
  // INVALID_ARGUMENT "`predicate` must return a scalar bool." unless it returns one; `what` names
  // the function.
  template <class T>
  T call_for_scalar(const Element& element, std::string_view what, Reading& reading) const {
    const Element result = call(element, reading);
    check(result.size() == 1 && result[0].dtype() == dtype_of<T> && result[0].elements() == 1, "`",
          what, "` must return a scalar ", dtype_of<T> == DType::boolean ? "bool" : "int64", ".");
    return result[0].item<T>();
  }

 private:
  const std::string name_;
  std::shared_ptr<const CallableFunction> function_;
  std::vector<Tensor> captured_;
};

// The input with the captured values of an op with one function, and its attributes.
inline const char* const captured_arg = "other_arguments: Targuments";
std::vector<std::string> function_attrs(std::vector<std::string> more);
// The position of the i-th input after the captured values.
int behind_captured(const ExecuteContext& c, int i);
// Calls run one at a time, but the requested number must be valid.
int64_t checked_calls(int64_t calls);

}  // namespace leat
