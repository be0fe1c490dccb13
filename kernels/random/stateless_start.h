// Where the generator of a stateless random op starts, and the requirements of its shape function
// for these inputs: a seed of two numbers, or the key and the counter derived from one and an
// algorithm number.
#pragma once

#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/random/random_stream.h"

namespace leat {

// TensorFlow's algorithm numbers. Automatic is Philox on a CPU.
inline constexpr int32_t philox = 1, automatic = 3;

// The generator that the inputs from input 1 on describe: a seed, if the op has an attribute Tseed,
// else key, counter and algorithm.
class StatelessStart {
 public:
  explicit StatelessStart(const KernelRequest& r)
      : has_seed_(r.node.has("Tseed")), seed_type_(r.inputs[1].dtype) {
    check(!has_seed_ || seed_type_ == DType::i32 || seed_type_ == DType::i64,
          "Invalid seed type: ", seed_type_);
  }

  Philox operator()(const Arguments& a) const {
    if (has_seed_) return StatelessSeed::of(a, 1, seed_type_).generator();
    const int32_t algorithm = *a.input<int32_t>(3);
    check(algorithm == philox || algorithm == automatic, "Unsupported algorithm id: ", algorithm);
    const uint64_t* counter = a.input<uint64_t>(2);
    Philox out(*a.input<uint64_t>(1), counter[1]);
    out.skip(counter[0]);
    return out;
  }

 private:
  bool has_seed_;
  DType seed_type_;
};

inline void check_seed(const ShapeContext& c, int input) {
  const Shape seed = c.with_rank(input, 1);
  check(seed[0] == any || seed[0] == 2, "seed must have shape [2], not ", seed);
}

inline void check_key_and_counter(const ShapeContext& c) {
  const Shape key = c.with_rank(1, 1), counter = c.with_rank(2, 1);
  check(key[0] == any || key[0] == 1, "key must have shape [1], not ", key);
  check(counter[0] == any || counter[0] >= 2,
        "counter must be a vector with length at least 2, got shape ", counter);
  c.with_rank(3, 0);
}

// The output has the shape given by input 0.
inline void infer_stateless(ShapeContext& c) {
  if (c.node().has("Tseed")) {
    check_seed(c, 1);
  } else {
    check_key_and_counter(c);
  }
  c.set_output(0, c.shape_from_value(0));
}

}  // namespace leat
