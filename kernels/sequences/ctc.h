// Connectionist temporal classification: labels of a sequence whose positions in time are unknown.
// A. Graves, Supervised Sequence Labelling with Recurrent Neural Networks, chapter 7. Shared by the
// loss and the decoders.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/tensor.h"
#include "graph/shape_inference.h"

namespace leat {

template <class T>
inline constexpr T log_zero = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b))
template <class T>
T log_sum(T a, T b) {
  if (a == log_zero<T>) return b;
  if (b == log_zero<T>) return a;
  return std::max(a, b) + std::log1p(std::exp(std::min(a, b) - std::max(a, b)));
}

// Logits [time, batch, classes] with the length of every sequence.
template <class T>
struct Sequences {
  const T* logits;
  int64_t time, batch, classes;
  const int32_t* lengths;

  // `code`: the error for lengths that do not fit, in which TensorFlow's ops differ.
  Sequences(const Tensor& inputs, const Tensor& sequence_length, Code code) {
    const Shape &shape = inputs.shape(), &of_lengths = sequence_length.shape();
    check(shape.rank() == 3, "inputs is not a 3-Tensor, but has shape ", shape);
    check(of_lengths.rank() == 1, "sequence_length is not a vector, but has shape ", of_lengths);
    time = shape[0], batch = shape[1], classes = shape[2];
    check(inputs.elements() > 0, "inputs must not be empty, got shape ", shape);
    if (of_lengths[0] != batch) {
      fail(code, "len(sequence_length) != batch_size. len(sequence_length): ", of_lengths[0],
           " batch_size: ", batch);
    }
    logits = inputs.data<T>();
    lengths = sequence_length.data<int32_t>();
    for (int64_t b = 0; b < batch; ++b) {
      if (lengths[b] > time) {
        fail(code, "sequence_length(", b, ") = ", lengths[b], ", but there are ", time, " steps");
      }
    }
  }
  int64_t offset(int64_t t, int64_t b) const { return (t * batch + b) * classes; }
};

// Infers the batch size, and returns the shape of the logits with it.
inline Shape infer_logits(ShapeContext& c, int lengths) {
  Shape logits = c.with_rank(0, 3);
  const int64_t batch = c.with_rank(lengths, 1)[0];
  if (logits[1] == any) logits.set(1, batch);
  return logits;
}

}  // namespace leat
