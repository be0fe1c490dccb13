#include "frontends/cpp/strategies/parts/partitioners.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace leat::partitioners {
namespace {

void check_positive(std::string_view partitioner, std::string_view what, int64_t value) {
  check(value > 0, "the partitioner ", partitioner, " needs a positive ", what, ", got ", value);
}

void check_axis(std::string_view partitioner, int axis, const Shape& shape) {
  check(axis >= 0 && axis < shape.rank(), "the partitioner ", partitioner, " cuts axis ", axis,
        ", but the variable is ", shape, ": give an axis in [0, ", shape.rank(), ")");
}

// As floating-point: a variable may have more bytes than an int64 counts.
double element_bytes(DType dtype, int64_t bytes_per_string) {
  return static_cast<double>(dtype == DType::string ? bytes_per_string
                                                    : static_cast<int64_t>(dtype_size(dtype)));
}

}  // namespace

Partitioner fixed_size(int64_t parts, int axis) {
  check_positive("fixed_size", "number of parts", parts);
  return [=](const Shape&, DType) { return Partitioning{axis, parts}; };
}

Partitioner axis_size(int64_t max_bytes, SizeOptions options) {
  check_positive("axis_size", "max_bytes", max_bytes);
  check_positive("axis_size", "bytes_per_string", options.bytes_per_string);
  check(options.max_parts >= 0,
        "the partitioner axis_size needs max_parts >= 0 (0: no limit), got ", options.max_parts);
  return [=](const Shape& shape, DType dtype) {
    check_axis("axis_size", options.axis, shape);
    const int64_t rows = std::max<int64_t>(1, shape[options.axis]);
    const double row_bytes = static_cast<double>(shape.elements()) / static_cast<double>(rows) *
                             element_bytes(dtype, options.bytes_per_string);
    const double fitting = std::floor(static_cast<double>(max_bytes) / std::max(row_bytes, 1.0));
    const int64_t rows_per_part = fitting < 1 ? 1 : static_cast<int64_t>(fitting);
    const int64_t parts = (rows - 1) / rows_per_part + 1;
    return Partitioning{options.axis,
                        options.max_parts > 0 ? std::min(options.max_parts, parts) : parts};
  };
}

Partitioner min_max(int64_t max_parts, MinMaxOptions options) {
  check_positive("min_max", "max_parts", max_parts);
  check_positive("min_max", "min_bytes", options.min_bytes);
  check_positive("min_max", "bytes_per_string", options.bytes_per_string);
  return [=](const Shape& shape, DType dtype) {
    check_axis("min_max", options.axis, shape);
    const double bytes =
        static_cast<double>(shape.elements()) * element_bytes(dtype, options.bytes_per_string);
    const double wanted = std::ceil(bytes / static_cast<double>(options.min_bytes));
    const int64_t most = std::max<int64_t>(1, std::min(shape[options.axis], max_parts));
    return Partitioning{options.axis, wanted < static_cast<double>(most)
                                          ? std::max<int64_t>(1, static_cast<int64_t>(wanted))
                                          : most};
  };
}

}  // namespace leat::partitioners
