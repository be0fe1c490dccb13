#include "kernels/data/dataset_function.h"

#include <algorithm>

namespace leat {

DatasetFunction::DatasetFunction(ExecuteContext& c, std::string_view attr)
    : name_(concat(c.node().op, " node '", c.node().name, "'")) {
  const WrittenFunction written = WrittenFunction::of(c.node(), attr);
  const int64_t first = written.captured_from, count = written.captured;
  check(count >= 0 && first >= 0 && first <= c.num_inputs() && count <= c.num_inputs() - first,
        name_, ": its function '", attr, "' captures more values than the node has");
  function_ = compile_function(c, written);
  for (int64_t i = 0; i < count; ++i) {
    const int input = static_cast<int>(first + i);
    const std::string argument = concat("argument:", written.arguments - count + i);
    const auto is_among = [&](const std::vector<std::string>& arguments) {
      return std::find(arguments.begin(), arguments.end(), argument) != arguments.end();
    };
    captured_.push_back(is_among(written.variables) ? Tensor::scalar(false)  // never read
                        : is_among(written.handles) ? resource_handle(c.resource(input))
                                                    : c.input(input));
  }
}

Element DatasetFunction::call(const Element& element, Reading& reading) const {
  std::vector<Tensor> arguments = element;
  arguments.insert(arguments.end(), captured_.begin(), captured_.end());
  check(static_cast<int>(arguments.size()) == function_->arguments(), name_, ": its function has ",
        function_->arguments(), " arguments, but elements have ", element.size(),
        " components, and it captures ", captured_.size(), " values");
  return function_->run(std::move(arguments), reading.cancellation());
}

std::optional<Element> DatasetFunction::call_or_end(const Element& element, bool preserves_count,
                                                    Reading& reading) const {
  try {
    return call(element, reading);
  } catch (const Error& error) {
    if (error.code() != Code::out_of_range) throw;
    if (preserves_count) {
      fail_again(error, Code::invalid_argument,
                 "Function invocation produced OutOfRangeError: ", error.message());
    }
    return {};
  }
}

ElementSource::Pointer DatasetFunction::call_for_dataset(const Element& element,
                                                         Reading& reading) const {
  const Element result = call(element, reading);
  check(result.size() == 1 && result[0].dtype() == DType::variant, name_,
        ": its function must return a dataset");
  return dataset_of(result[0]);
}

std::vector<std::string> function_attrs(std::vector<std::string> more) {
  more.insert(more.end(), {"Targuments: list(type) >= 0", metadata_attr});
  return dataset_attrs(std::move(more));
}

int behind_captured(const ExecuteContext& c, int i) {
  return 1 + static_cast<int>(c.node().attr<std::vector<DType>>("Targuments").size()) + i;
}

int64_t checked_calls(int64_t calls) {
  check(calls > 0 || calls == -1, "num_parallel_calls must be greater than zero.");
  return calls;
}

}  // namespace leat
