// Training data in memory: idx files (MNIST's format), drawn digits in place of missing files, and
// batches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace leat::data {

// Reads one idx file, gzip-compressed or not (format: http://yann.lecun.com/exdb/mnist; big-endian
// magic, dims, data). The dtype follows from the magic: u8, i8, i16, i32, f32 or f64. NOT_FOUND if
// it cannot be opened, DATA_LOSS if it is damaged: both name the file, and what was expected where.
Tensor read_idx(const std::string& path);

// The header of such a file. The same errors.
struct IdxHeader {
  DType dtype;
  Shape shape;
};
IdxHeader read_idx_header(const std::string& path);

// The paths of MNIST's files in a directory, to train or to test with: see load_mnist().
struct MnistFiles {
  std::string images, labels;
};
MnistFiles mnist_files(const std::string& directory, bool train);

// Examples and their classes: row i of both belongs together.
struct Labelled {
  Tensor images;  // f32 [n, pixels], 0 (black) to 1
  Tensor labels;  // i32 [n]
  int64_t size() const { return labels.elements(); }
};

struct Digits {
  Labelled train, test;
};

// The four MNIST files of a directory, under either spelling (train-images-idx3-ubyte,
// train-images.idx3-ubyte), each with or without .gz. NOT_FOUND lists what was looked for;
// DATA_LOSS if sizes of images and labels differ.
Digits load_mnist(const std::string& directory);

// Digits drawn by this program: glyphs made of strokes, shifted, rotated, sheared, scaled, of
// varying pen width, with noise; 28 x 28. The same seed gives the same pictures.
Digits draw_digits(int64_t train, int64_t test, uint64_t seed = 1);

// Shuffled batches of one shard of the examples (shard `index` of `count`), epoch after epoch. The
// examples are not copied: they must outlive it. Not thread-safe.
class Batches {
 public:
  Batches(const Labelled& examples, int64_t batch_size, uint64_t seed, int index = 0,
          int count = 1);
  Batches(Labelled&& examples, int64_t batch_size, uint64_t seed, int index = 0,
          int count = 1) = delete;
  Batches(Batches&&) noexcept;
  ~Batches();
  // The next batch; every epoch shuffles the shard and skips the rest that does not fill a batch.
  Labelled next();
  // Makes next() return batch number `batch`, counted from the beginning: to resume training there.
  void seek(int64_t batch);
  int64_t per_epoch() const { return static_cast<int64_t>(order_.size()) / batch_size_; }

 private:
  void restart();
  void skip_to_next();

  const Labelled& examples_;
  int64_t batch_size_;
  uint64_t seed_;
  int index_, count_;
  struct Random;  // std::mt19937_64: <random> takes long to compile
  std::unique_ptr<Random> random_;
  std::vector<int64_t> order_;  // row numbers of this shard
  size_t position_ = 0;
  int64_t next_ = 0;  // the number of the next batch
};

}  // namespace leat::data
