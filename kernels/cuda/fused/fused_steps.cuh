// A list of steps that one kernel applies to each element, or to each row: loads, functors,
// reductions, stores. The kernel reads each value from memory once, writes each result once, and
// keeps what is between in registers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace leat::cuda {

constexpr int most_steps = 48;
constexpr int most_registers = 24;
constexpr int most_memory = 24;     // operands and results
constexpr int most_columns = 4096;  // of a row

enum class Format : uint8_t { f32, f16, bf16, boolean };

struct Step {
  // A functor's number (step_of), or one of these. A reduction gives all elements of the row its
  // result; store_of_row stores that.
  static constexpr uint8_t load = 0, store = 1, store_of_row = 2, move = 3;
  static constexpr uint8_t sum = 4, mean = 5, product = 6, largest = 7, smallest = 8;
  uint8_t code = load;
  uint8_t out = 0;  // register; of a store: the one that is stored
  uint8_t a = 0, b = 0, c = 0;
  Format format = Format::f32;  // of the memory, or of the result: 16 bits are rounded to
  uint8_t memory = 0;           // its number
  float parameter = 0;          // of a functor that has one
  // The element of an operand for element e of the result: e / inner % period.
  uint32_t inner = 1, period = 0;  // 0: e itself
};

struct Steps {
  void* memory[most_memory];
  Step list[most_steps];
  int count = 0;
};

// The code of an op's functor, or of its reduction; -1 if it is not among them. AddN is Add, again
// and again.
int step_of(std::string_view op);

// `columns` is 0 if there are only elements, as many as `rows`.
void run_steps(const Steps& steps, int64_t rows, int64_t columns, cudaStream_t stream);

}  // namespace leat::cuda
