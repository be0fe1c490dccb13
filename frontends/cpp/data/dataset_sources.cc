// The sources of datasets.
#include <fstream>

#include "core/host_functions.h"
#include "frontends/cpp/data/data.h"
#include "frontends/cpp/data/dataset_builder.h"
#include "graph/shape_inference.h"

namespace leat::datasets {
namespace {

Shape row_of(const Shape& shape) { return Shape(shape.dims().subspan(1)); }

Dataset file_dataset(std::string_view op, std::string_view name, const Files& files,
                     const FileOptions& options, Location at) {
  DatasetBuilder build(files, name, at);
  build.set_components({{"", DType::string, {}}});
  return build.add(op, {build.paths(files), build.text(options.compression), build.number(0)});
}

bool is_gzip(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return file.get() == 0x1f && file.get() == 0x8b;
}

}  // namespace

Dataset from_tensor_slices(const std::vector<std::pair<std::string, Tensor>>& tensors,
                           Location at) {
  std::vector<std::string> names;
  std::vector<Tensor> values;
  for (const auto& [name, value] : tensors) {
    names.push_back(name);
    values.push_back(value);
  }
  return from_tensor_slices(values, at).named(names, at);
}

Dataset from_tensor_slices(const std::vector<Tensor>& tensors, Location at) {
  check(!tensors.empty(), "from_tensor_slices (", at, "): there are no tensors");
  DatasetBuilder build("tensors", at);
  std::vector<Output> inputs;
  std::vector<Component> components;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Shape& shape = tensors[i].shape();
    check(shape.rank() > 0, "from_tensor_slices (", at, "): tensor ", i,
          " is a scalar: it has no rows");
    check(shape[0] == tensors[0].shape()[0], "from_tensor_slices (", at, "): tensor ", i, " has ",
          shape[0], " rows, but tensor 0 has ", tensors[0].shape()[0]);
    inputs.push_back(build.value(tensors[i]));
    components.push_back({"", tensors[i].dtype(), row_of(shape)});
  }
  build.set_components(std::move(components));
  return build.add("TensorSliceDataset", inputs);
}

Dataset from_tensor_slices(const std::vector<Output>& tensors, Location at) {
  check(!tensors.empty(), "from_tensor_slices (", at, "): there are no tensors");
  std::vector<Component> components;
  for (size_t i = 0; i < tensors.size(); ++i) {
    check(bool{tensors[i]}, "from_tensor_slices (", at, "): tensor ", i, " is an empty Output");
    const Shape& shape = tensors[i].shape();
    check(shape.rank() > 0, "from_tensor_slices (", at, "): tensor ", i, ", '", tensors[i].name(),
          "' ", shape, ", must have rows: at least one axis");
    components.push_back({"", tensors[i].dtype(), row_of(shape)});
  }
  DatasetBuilder build(tensors[0], "tensors", at);
  build.set_components(std::move(components));
  return build.add("TensorSliceDataset", tensors);
}

Dataset range(const Operand& stop) { return range(Operand(0, stop.at()), stop); }

Dataset range(const Operand& start, const Operand& stop, const Operand& step) {
  const Location at = start.at();
  Output given;  // in whose graph the dataset is
  for (const Operand* each : {&start, &stop, &step}) {
    if (each->is_constant()) {
      check(each->is_integer(), "range (", at, "): start, stop and step must be whole numbers");
    } else {
      given = each->output();
      check(given && is_integer(given.dtype()), "range (", at, "): start, stop and step must be ",
            "integers, got ", given ? concat(given.name(), " ", given.dtype()) : "an empty Output");
    }
  }
  DatasetBuilder build = given ? DatasetBuilder(given, "range", at) : DatasetBuilder("range", at);
  build.set_components({{"", i64, {}}});
  std::vector<Output> inputs;
  for (const Operand* each : {&start, &stop, &step}) {
    const Output value = each->as(build.graph(), i64);
    inputs.push_back(value.dtype() == i64 ? value : cast(value, i64, at));
  }
  check(!step.is_constant() || constant_value(inputs[2]).item<int64_t>() != 0, "range (", at,
        "): the step is 0");
  return build.add("RangeDataset", inputs);
}

Dataset zip(const std::vector<Dataset>& datasets, Location at) {
  check(!datasets.empty(), "zip (", at, "): there are no datasets");
  DatasetBuilder build(datasets[0], "zip", at);
  std::vector<Output> inputs;
  std::vector<Component> components;
  for (const Dataset& dataset : datasets) {
    inputs.push_back(build.taken_over(dataset));
    components.insert(components.end(), dataset.components().begin(), dataset.components().end());
  }
  build.set_components(std::move(components));
  return build.add("ZipDataset", inputs, {{"N", static_cast<int64_t>(inputs.size())}});
}

Dataset text_files(const Files& files, const FileOptions& options, Location at) {
  return file_dataset("TextLineDataset", "text_files", files, options, at);
}

Dataset records(const Files& files, const FileOptions& options, Location at) {
  return file_dataset("TFRecordDataset", "records", files, options, at);
}

Dataset files(std::string_view pattern, Location at) {
  DatasetBuilder build("files", at);
  build.set_components({{"", DType::string, {}}});
  const Output found = op("MatchingFiles", {build.text(std::string(pattern))}, {}, at);
  return build.add("TensorSliceDataset", {found});
}

Dataset csv(const Files& files, const std::vector<CsvColumn>& columns, const CsvOptions& options,
            Location at) {
  check(!columns.empty(), "csv (", at, "): there are no columns");
  DatasetBuilder build(files, "csv", at);
  std::vector<Output> inputs = {build.paths(files),
                                build.text(""),
                                build.number(1 << 16),
                                build.boolean(options.has_header),
                                build.text(std::string(1, options.delimiter)),
                                build.boolean(true),
                                build.text(options.na_value),
                                build.numbers(options.columns)};
  std::vector<Component> components;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Tensor value = columns[i].default_value();
    check(value.elements() <= 1, "csv (", at, "): the default of column ", i,
          " must be a scalar, not ", value.shape());
    components.push_back({"", value.dtype(), {}});
    inputs.push_back(build.value(value.reshaped({value.elements()})));
  }
  build.set_components(std::move(components));
  inputs.push_back(build.numbers({}));  // of no column that is left out
  return build.add("CSVDatasetV2", inputs);
}

Dataset idx(const std::string& file, Location at) {
  const auto [dtype, shape] = data::read_idx_header(file);
  check(shape.rank() > 0, "idx (", at, "): ", file, " holds a scalar: it has no rows");
  const Shape row = row_of(shape);
  const int64_t bytes = row.elements() * static_cast<int64_t>(dtype_size(dtype));
  check(bytes > 0, "idx (", at, "): ", file, " holds ", shape, ": its rows are empty");
  DatasetBuilder build("idx", at);
  build.set_components({{"", DType::string, {}}});
  const Dataset pieces =
      build.add("FixedLengthRecordDatasetV2",
                {build.paths(file), build.number(4 + 4 * shape.rank()), build.number(bytes),
                 build.number(0), build.number(0), build.text(is_gzip(file) ? "GZIP" : "")});
  return pieces.map(
      [dtype = dtype, row, at](Output piece) {
        return reshape(
            op("DecodeRaw", {piece}, {{"out_type", dtype}, {"little_endian", false}}, at), row, at);
      },
      at);
}

Dataset mnist(const std::string& directory, const MnistOptions& options, Location at) {
  data::MnistFiles files;
  try {
    files = data::mnist_files(directory, options.train);
  } catch (const Error& error) {
    fail(error.code(), "mnist (", at, "): ", error.message());
  }
  return zip({idx(files.images, at), idx(files.labels, at)}, at)
      .map(
          [](Output image, Output label) {
            return std::tuple{reshape(cast(image, f32) / 255, {-1}), cast(label, i32)};
          },
          at)
      .named({"image", "label"}, at);
}

Dataset generator(std::function<std::optional<std::vector<Tensor>>()> next,
                  const std::vector<Component>& components, Location at) {
  check(bool{next}, "generator (", at, "): the function is empty");
  check(!components.empty(), "generator (", at, "): its elements have no components");
  DatasetBuilder build("generator", at);
  build.set_components(components);
  return build.add("_HostDataset", {}, {{"function", register_host_function(std::move(next))}});
}

Dataset generator(std::function<std::optional<Tensor>()> next, const Component& component,
                  Location at) {
  check(bool{next}, "generator (", at, "): the function is empty");
  const auto as_list = [next = std::move(next)]() -> std::optional<std::vector<Tensor>> {
    std::optional<Tensor> one = next();
    if (!one) return std::nullopt;
    return std::vector<Tensor>{std::move(*one)};
  };
  return generator(std::function<std::optional<std::vector<Tensor>>()>(as_list),
                   std::vector<Component>{component}, at);
}

}  // namespace leat::datasets
