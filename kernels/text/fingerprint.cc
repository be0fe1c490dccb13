// Fingerprint: an eight-byte hash of a row of any type.
#include <cstring>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"
#include "kernels/text/string_hash.h"

namespace leat {
namespace {

constexpr int64_t size = sizeof(uint64_t);

// The first eight bytes of a fingerprint are the lowest ones.
void write_fingerprint(std::string_view bytes, uint8_t* to) {
  const uint64_t fingerprint = farm_fingerprint(bytes);
  std::memcpy(to, &fingerprint, size);
}

// A row of several strings: the fingerprint of their fingerprints.
void write_fingerprint(const std::string* row, int64_t n, uint8_t* to) {
  if (n == 1) return write_fingerprint(*row, to);
  std::string bytes(static_cast<size_t>(n * size), '\0');
  for (int64_t i = 0; i < n; ++i)
    write_fingerprint(row[i], reinterpret_cast<uint8_t*>(bytes.data()) + i * size);
  write_fingerprint(bytes, to);
}

BoundKernel prepare(const KernelRequest& r) {
  const Shape& shape = r.inputs[0].shape;
  const int64_t rows = shape[0], n = rows == 0 ? 0 : shape.elements() / rows;
  return BoundKernel::of([=, dtype = r.inputs[0].dtype](const Arguments& a) {
    const std::string& method = *a.input<std::string>(1);
    check(method == "farmhash64", "Unsupported fingerprint method: ", method);
    const auto row_bytes = n * static_cast<int64_t>(dtype_size(dtype));
    for (int64_t i = 0; i < rows; ++i) {
      StepEnd::pace(64);
      uint8_t* to = a.output<uint8_t>() + i * size;
      if (dtype == DType::string) {
        write_fingerprint(a.input<std::string>(0) + i * n, n, to);
      } else {
        write_fingerprint({a.input<char>(0) + i * row_bytes, static_cast<size_t>(row_bytes)}, to);
      }
    }
  });
}

const Op op{{
    .name = "Fingerprint",
    .doc = "fingerprint[i, :] = FarmHash's Fingerprint64 of the bytes of data[i, …] (of several "
           "strings: of their fingerprints); method must be farmhash64.",
    .inputs = {"data: T", "method: string"},
    .outputs = {"fingerprint: uint8"},
    .attrs = {"T: type"},
    .shape =
        [](ShapeContext& c) {
          const Shape data = c.with_rank_at_least(0, 1);
          c.with_rank(1, 0);
          c.set_output(0, {data.has_rank() ? data[0] : any, size});
        },
    .kernels = {{.types = {{"T", AllTypes::list()}}, .prepare = prepare}},
    .examples = {{.inputs = {texts({"a", "b"}), Tensor::scalar<std::string>("farmhash64")},
                  .outputs = {Tensor::of<uint8_t>({2, 8}, {227, 117, 223, 182, 101, 66, 69, 179, 22,
                                                           241, 200, 94, 33, 96, 178, 163})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
