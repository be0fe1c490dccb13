#include "frontends/cpp/data/record_writer.h"

#include <iostream>

#include "core/visit_dtype.h"
#include "graph/formats/example.h"
#include "graph/formats/records.h"

namespace leat {

RecordWriter::~RecordWriter() {
  try {
    close();
  } catch (const Error& error) {
    std::cerr << "leat: " << error.message() << std::endl;
  }
}

void RecordWriter::write(std::string_view record) {
  if (is_closed_)
    fail(Code::failed_precondition, "RecordWriter: ", path(),
         " is closed; write() comes before close()");
  file_.append(framed_record(record));
}

void RecordWriter::close() {
  if (is_closed_) return;
  file_.flush();
  file_.close();
  is_closed_ = true;
}

namespace {

Feature feature_of(const std::string& name, const Tensor& value, Location at) {
  Feature out;
  visit_dtype(value.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_same_v<T, std::string>) {
      out = value.to_vector<std::string>();
    } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      const auto numbers = value.span<T>();
      out = std::vector<float>(numbers.begin(), numbers.end());
    } else if constexpr (std::is_integral_v<T>) {
      const auto numbers = value.span<T>();
      out = std::vector<int64_t>(numbers.begin(), numbers.end());
    }
  });
  check(out.index() != 0, "serialize_example (", at, "): the feature '", name,
        "' must be floating-point numbers, integers, bools or texts, got ", value.dtype());
  return out;
}

}  // namespace

std::string serialize_example(const std::vector<std::pair<std::string, Literal>>& features,
                              Location at) {
  Features out;
  for (const auto& [name, value] : features) {
    check(!name.empty(), "serialize_example (", at, "): a feature needs a name");
    const bool is_new = out.emplace(name, feature_of(name, value.tensor(at), at)).second;
    check(is_new, "serialize_example (", at, "): there are two features '", name, "'");
  }
  return serialized_example(out);
}

}  // namespace leat
