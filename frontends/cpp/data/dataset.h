// Datasets: pipelines that read, transform and batch training data. They are part of the graph and
// run beside the step, on the device where `next` is made.
//
//   auto digits = datasets::mnist(directory).shuffle(10'000, 1).repeat(epochs).batch(100);
//   Batch batch = digits.next(g);   // batch["image"]: [100, 784], batch["label"]: [100]
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "frontends/cpp/control_flow/values.h"
#include "frontends/cpp/data/csv.h"

namespace leat {

// One tensor of each element. In a batch, all shapes begin with its size.
struct Component {
  std::string name;  // "" if it has none
  DType dtype;
  Shape shape;
  Component(std::string name, DType dtype, const Shape& shape = {})
      : name(std::move(name)), dtype(dtype), shape(shape) {}
  Component(DType dtype, const Shape& shape = {}) : dtype(dtype), shape(shape) {}  // NOLINT
};

class DatasetBuilder;

// An Output for each component.
class Batch {
 public:
  Batch(std::vector<Output> components, std::vector<std::string> names = {})
      : components_(std::move(components)), names_(std::move(names)) {}

  Output operator[](int i) const;
  Output operator[](std::string_view name) const;  // NOT_FOUND lists the names
  int size() const { return static_cast<int>(components_.size()); }
  auto begin() const { return components_.begin(); }
  auto end() const { return components_.end(); }
  const std::vector<Output>& components() const { return components_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<Output> components_;
  std::vector<std::string> names_;
};

struct BatchOptions {
  bool drop_remainder = false;  // leave out the last batch if it is smaller
};
struct PaddedBatchOptions {
  std::vector<Shape> shapes = {};    // to pad to; `any`, or none: the batch's largest
  std::vector<Literal> values = {};  // to pad with; none: 0 and ""
  bool drop_remainder = false;
};
struct ShuffleOptions {
  bool reshuffle = true;  // another order in each repetition
};
struct InterleaveOptions {
  int64_t cycle_length = 4;  // how many datasets are open at a time
  int64_t block_length = 1;  // how many elements come from one before the next
};

// The features of a serialized tf.train.Example, a string scalar: an Output for each, by name.
// Dtypes are f32, i64 or str. A feature of shape {any, …} takes as many values as the record has,
// none if it lacks the feature. Another feature that a record lacks is INVALID_ARGUMENT in the
// step.
//   Batch batch = datasets::records({"train.tfrecord"})
//                     .map([](Output record) {
//                       return parse_example(record, {{"image", f32, {784}}, {"label", i64}});
//                     })
//                     .batch(100)
//                     .next(g);
//   Output image = batch["image"];
Batch parse_example(Output serialized, const std::vector<Component>& features,
                    Location at = here());

// A sequence of elements, each of one or more tensors. Cheap to copy. Every method returns another
// dataset; none reads anything before a step runs `next`. Passed functions get an Output for each
// component (or all in a std::vector<Output>), and must use nothing of another graph: make
// constants with constant(x.graph(), …).
class Dataset {
 public:
  const std::vector<Component>& components() const { return components_; }
  // The same with names for its components.
  Dataset named(std::vector<std::string> names, Location at = here()) const;

  // ---- Which elements, in which order ----
  // Each is drawn from a buffer of the next `buffer` ones. Seed 0: another order in each run.
  Dataset shuffle(int64_t buffer, int64_t seed = 0, const ShuffleOptions& options = {},
                  Location at = here()) const;
  Dataset repeat(int64_t count = -1, Location at = here()) const;  // -1: without end
  Dataset take(int64_t count, Location at = here()) const;
  Dataset skip(int64_t count, Location at = here()) const;
  // Elements index, index + count, …: what one of `count` workers reads.
  Dataset shard(int64_t count, int64_t index, Location at = here()) const;
  // What one of `count` workers reads, each with its own part of the elements: as if shard() came
  // right after the source. So a batch of a share is as large as one of the whole, and a shuffle
  // is one of the share. Where there is a take(), skip(), flat_map(), interleave(), zip(),
  // concatenate() or a cache in a file, the last of these counts as the source.
  Dataset share(int64_t count, int64_t index, Location at = here()) const;
  Dataset concatenate(const Dataset& other, Location at = here()) const;
  template <class F>
  Dataset filter(const F& predicate, Location at = here()) const {
    return filtered(tracer(predicate, at), at);
  }

  // ---- What becomes of them ----
  // The components of what `f` returns have names if it is a Batch: that of parse_example().
  template <class F>
  Dataset map(const F& f, Location at = here()) const {
    std::vector<std::string> names;
    const auto traced = [&](const std::vector<Output>& x) -> std::vector<Operand> {
      decltype(auto) result = call(f, x, at);
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(result)>, Batch>) {
        names = result.names();
        return values::list(result.components());
      } else {
        return values::list(result);
      }
    };
    const Dataset out = mapped(traced, at);
    return names.empty() ? out : out.named(std::move(names), at);
  }
  // f returns a dataset for each element: reads all of one, then all of the next.
  template <class F>
  Dataset flat_map(const F& f, Location at = here()) const {
    return interleave(f, {.cycle_length = 1}, at);
  }
  // The same from several at a time, in turns.
  template <class F>
  Dataset interleave(const F& f, const InterleaveOptions& options = {},
                     Location at = here()) const {
    return interleaved(dataset_tracer(f, at), options, at);
  }
  Dataset batch(int64_t size, const BatchOptions& options = {}, Location at = here()) const;
  // For elements whose shapes differ.
  Dataset padded_batch(int64_t size, const PaddedBatchOptions& options = {},
                       Location at = here()) const;

  // ---- How they are read ----
  // Keeps what was read, in memory or in that file, for the next repetition.
  Dataset cache(std::string_view file = "", Location at = here()) const;
  Dataset prefetch(int64_t count, Location at = here()) const;

  // The next element in each step. OUT_OF_RANGE at the end of the dataset. Two `next` nodes read
  // the dataset independently; each session starts from the beginning.
  Batch next(Graph& graph, Location at = here()) const;

 private:
  friend class DatasetBuilder;
  using Tracer = std::function<std::vector<Operand>(const std::vector<Output>&)>;
  using DatasetTracer = std::function<Dataset(const std::vector<Output>&)>;

  Dataset(std::shared_ptr<Graph> graph, Output variant, std::vector<Component> components)
      : graph_(std::move(graph)), variant_(variant), components_(std::move(components)) {}

  Dataset mapped(const Tracer& f, Location at) const;
  Dataset filtered(const Tracer& predicate, Location at) const;
  Dataset interleaved(const DatasetTracer& f, const InterleaveOptions& options, Location at) const;
  void check_arity(int taken, Location at) const;

  template <class F>
  decltype(auto) call(const F& f, const std::vector<Output>& x, Location at) const {
    if constexpr (std::is_invocable_v<F, const std::vector<Output>&>) {
      return f(x);
    } else {
      constexpr int count = values::arity<F>();
      static_assert(count > 0,
                    "a function of a dataset takes one to eight Outputs, or all in a "
                    "std::vector<Output>");
      check_arity(count, at);
      return values::apply<count>(f, x);
    }
  }
  template <class F>
  Tracer tracer(const F& f, Location at) const {
    return [=, this](const std::vector<Output>& x) { return values::list(call(f, x, at)); };
  }
  template <class F>
  DatasetTracer dataset_tracer(const F& f, Location at) const {
    return [=, this](const std::vector<Output>& x) -> Dataset { return call(f, x, at); };
  }

  std::shared_ptr<Graph> graph_;  // where its nodes are
  Output variant_;
  std::vector<Component> components_;
};

// Sources of data. Paths are those of the task that reads: a list, or an Output of strings to
// interleave a dataset of files.
namespace datasets {

class Files {
 public:
  Files(const char* file) : files_(std::vector<std::string>{file}) {}             // NOLINT
  Files(std::string file) : files_(std::vector<std::string>{std::move(file)}) {}  // NOLINT
  Files(std::initializer_list<std::string> files) : files_(std::vector<std::string>(files)) {}
  Files(std::vector<std::string> files) : files_(std::move(files)) {}  // NOLINT
  Files(Output files) : files_(files) {}                               // NOLINT

 private:
  friend class leat::DatasetBuilder;
  std::variant<std::vector<std::string>, Output> files_;
};

// The rows of tensors, side by side.
Dataset from_tensor_slices(const std::vector<Tensor>& tensors, Location at = here());
inline Dataset from_tensor_slices(const Tensor& tensor, Location at = here()) {
  return from_tensor_slices(std::vector<Tensor>{tensor}, at);
}
// With names: from_tensor_slices({{"image", images}, {"label", labels}}).
Dataset from_tensor_slices(const std::vector<std::pair<std::string, Tensor>>& tensors,
                           Location at = here());
// Of Outputs, in a function that returns a dataset: the rows of a list that each element holds.
//   Dataset words = datasets::text_files({"a.txt"}).flat_map([](Output line) {
//     return datasets::from_tensor_slices(string_split(line[{newaxis}]).values);
//   });
Dataset from_tensor_slices(const std::vector<Output>& tensors, Location at = here());
inline Dataset from_tensor_slices(Output tensor, Location at = here()) {
  return from_tensor_slices(std::vector<Output>{tensor}, at);
}
// 0, 1, …: int64. The bounds are whole numbers, or Outputs in a function that returns a dataset.
Dataset range(const Operand& stop);
Dataset range(const Operand& start, const Operand& stop, const Operand& step = 1);
// Elements side by side, until one dataset ends.
Dataset zip(const std::vector<Dataset>& datasets, Location at = here());

struct FileOptions {
  std::string compression = "";  // "GZIP", "ZLIB"
};
// Lines without their ends; the contents of TFRecord files; the files that a pattern matches.
Dataset text_files(const Files& files, const FileOptions& options = {}, Location at = here());
Dataset records(const Files& files, const FileOptions& options = {}, Location at = here());
Dataset files(std::string_view pattern, Location at = here());

struct CsvOptions {
  bool has_header = false;
  char delimiter = ',';
  std::string na_value = "";          // counts as an empty field
  std::vector<int64_t> columns = {};  // which to read; none: all
};
// A component for each column: csv("a.csv", {f32, 0, "unknown"}).
Dataset csv(const Files& files, const std::vector<CsvColumn>& columns,
            const CsvOptions& options = {}, Location at = here());

// An idx file (format: http://yann.lecun.com/exdb/mnist), compressed or not: its slices along the
// first axis. This program reads the file's header, the task that runs the dataset the rest.
Dataset idx(const std::string& file, Location at = here());
struct MnistOptions {
  bool train = true;  // the digits to train with, else those to test
};
// The digits of a directory that has MNIST's files: "image", f32 [784] from 0 (black) to 1, and
// "label", i32.
Dataset mnist(const std::string& directory, const MnistOptions& options = {}, Location at = here());

struct ImageOptions {
  // {height, width} to resize all images to, bilinearly; none: images keep their sizes, so batches
  // need padded_batch().
  std::vector<int64_t> size = {};
  int64_t channels = 3;  // 1 (gray), 3 (RGB) or 4 (RGBA)
};
// Pictures in folders, one folder for each class: `directory/cat/1.jpg`. JPEG, PNG, BMP and GIF
// (the first frame). "image", f32 [height, width, channels] from 0 to 1, and "label", i32: the
// position of the folder's name in image_classes(). They come in the order of their paths:
// shuffle() with a buffer for all mixes the classes. This program lists the folders, the task that
// runs the dataset reads the files. NOT_FOUND if there are no pictures.
Dataset images(const std::string& directory, const ImageOptions& options = {},
               Location at = here());
// The names of the folders in `directory`, sorted.
std::vector<std::string> image_classes(const std::string& directory, Location at = here());

// Calls `next` for each element, a tensor for each component, until it returns none. The call is in
// this process: a dataset on a task elsewhere fails with NOT_FOUND.
Dataset generator(std::function<std::optional<std::vector<Tensor>>()> next,
                  const std::vector<Component>& components, Location at = here());
// The same for one component: generator([] { return std::optional(Tensor::scalar(1)); }, i32).
Dataset generator(std::function<std::optional<Tensor>()> next, const Component& component,
                  Location at = here());

}  // namespace datasets

}  // namespace leat
