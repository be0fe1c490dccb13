#include "kernels/control/tile_program.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/execution/step_end.h"
#include "kernels/cpu.h"
#include "kernels/one_thread.h"

namespace leat {
namespace {

constexpr double least_chunk_ns = 20'000;

// Adds what a tile or a range has to the sums of a range.
void add(const TileProgram::Sum& sum, const void* from, std::byte* sums) {
  const auto plus = [&]<class T>(TypeTag<T>) {
    const T* x = static_cast<const T*>(from);
    T* y = reinterpret_cast<T*>(sums + sum.offset);
    vectorized([=, n = sum.elements]() LEAT_INLINE {
      LEAT_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < n; ++i) y[i] += x[i];
    });
  };
  if (sum.dtype == DType::f32) return plus(TypeTag<float>{});
  plus(TypeTag<double>{});
}

}  // namespace

// On several threads if the temporaries are on the stack.
template <class Piece>
void TileProgram::run_pieces(const Arguments& a, int64_t pieces, double piece_ns,
                             const Piece& piece) const {
  if (!is_on_stack()) {
    auto* const temporaries = static_cast<std::byte*>(a.workspace);
    repeat(a, temporaries);
    for (int64_t i = 0; i < pieces; ++i) {
      StepEnd::ask();
      piece(i, temporaries, *a.stream);
    }
    return;
  }
  const auto grain = static_cast<int64_t>(1 + least_chunk_ns / piece_ns);
  a.stream->parallel_for(pieces, grain, [&](int64_t begin, int64_t end) {
    alignas(alignment) std::byte temporaries[stack_bytes];
    OneThread stream;
    repeat(a, temporaries);
    for (int64_t i = begin; i < end; ++i) piece(i, temporaries, stream);
  });
}

void TileProgram::run(const Arguments& a) const {
  const double tile_ns = std::max(1.0, cost_ns / static_cast<double>(tiles));
  if (ranges > 0) {
    const double range_ns = tile_ns * static_cast<double>(tiles) / static_cast<double>(ranges);
    run_pieces(a, ranges, range_ns, [&](int64_t range, std::byte* temporaries, Stream& stream) {
      std::byte* const own = sums_of(a, range);
      std::memset(own, 0, sum_bytes);
      const int64_t end = first_tile(range + 1);
      for (int64_t tile = first_tile(range); tile < end; ++tile)
        run_tile(a, tile, temporaries, own, stream);
    });
    for (int64_t range = 1; range < ranges; ++range) {
      for (const Sum& sum : sums) add(sum, sums_of(a, range) + sum.offset, sums_of(a, 0));
    }
    for (const Sum& sum : sums) {
      std::memcpy(a.outputs[sum.result], sums_of(a, 0) + sum.offset, sum.bytes());
    }
    return;
  }
  run_pieces(a, tiles, tile_ns, [&](int64_t tile, std::byte* temporaries, Stream& stream) {
    run_tile(a, tile, temporaries, nullptr, stream);
  });
}

void TileProgram::repeat(const Arguments& a, std::byte* temporaries) const {
  for (const Repeated& value : repeated) {
    const void* from = address(value.from, a, 0, temporaries);
    for (int64_t row = 0; row < rows; ++row) {
      std::memcpy(temporaries + value.offset + static_cast<size_t>(row) * value.bytes, from,
                  value.bytes);
    }
  }
}

std::byte* TileProgram::sums_of(const Arguments& a, int64_t range) const {
  return static_cast<std::byte*>(a.workspace) + (is_on_stack() ? 0 : temporary_bytes) +
         static_cast<size_t>(range) * sum_bytes;
}

void* TileProgram::address(const Place& place, const Arguments& a, int64_t tile,
                           std::byte* temporaries) const {
  switch (place.kind) {
    case Place::Kind::input:
      return static_cast<std::byte*>(a.inputs[place.index]) + tile * place.stride;
    case Place::Kind::output:
      return static_cast<std::byte*>(a.outputs[place.index]) + tile * place.stride;
    case Place::Kind::constant:
      return const_cast<void*>(constants[static_cast<size_t>(place.index)].raw());
    case Place::Kind::temporary:
      return temporaries + place.offset;
  }
  return nullptr;
}

void TileProgram::run_tile(const Arguments& a, int64_t tile, std::byte* temporaries,
                           std::byte* to_sums, Stream& stream) const {
  std::array<void*, most_operands> inputs, outputs;
  const bool is_last = tile + 1 == tiles && last_rows != rows;
  for (size_t m = 0; m < steps.size(); ++m) {
    const Step& step = steps[m];
    const BoundKernel& kernel = is_last ? bound[m].last : bound[m].full;
    for (size_t i = 0; i < step.inputs.size(); ++i)
      inputs[i] = address(step.inputs[i], a, tile, temporaries);
    for (size_t o = 0; o < step.outputs.size(); ++o)
      outputs[o] = address(step.outputs[o], a, tile, temporaries);
    if (kernel.function != nullptr) {
      kernel.function(kernel.bound.get(),
                      {inputs.data(), outputs.data(), temporaries + step.workspace, &stream});
    }
    for (const View& view : kernel.views) {
      const auto output = static_cast<size_t>(view.output);
      const auto its_rows = static_cast<size_t>(is_last ? last_rows : rows);
      const size_t bytes = step.sum >= 0 ? sums[static_cast<size_t>(step.sum)].bytes()
                                         : step.row_bytes[output] * its_rows;
      const auto* from = static_cast<std::byte*>(inputs[static_cast<size_t>(view.input)]);
      std::memcpy(outputs[output], from + view.offset, bytes);
    }
    if (step.sum >= 0) add(sums[static_cast<size_t>(step.sum)], outputs[0], to_sums);
  }
}

}  // namespace leat
