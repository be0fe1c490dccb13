// Ops on readers (reader.h).
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/data/reader.h"
#include "kernels/named_resource.h"

namespace leat {
namespace {

using Done = std::function<void(Status)>;

Reader& reader(const ExecuteContext& c) {
  auto* out = dynamic_cast<Reader*>(c.resource(0).get());
  check(out != nullptr, "'", c.resource(0)->name(), "' is not a reader");
  return *out;
}

std::shared_ptr<TensorQueue> names(const ExecuteContext& c) {
  auto out = std::dynamic_pointer_cast<TensorQueue>(c.resource(1));
  check(out != nullptr, "'", c.resource(1)->name(), "' is not a queue");
  check(out->options().dtypes == std::vector{DType::string}, "the queue '", out->name(),
        "' does not hold file names: its elements must be one string each");
  return out;
}

// ---- Kernels

// `give` sets the outputs from the records read. It runs on a thread of other work, which must not
// see what it throws.
template <class Give>
void read(ExecuteContext& c, int64_t count, Give give, Done done) {
  reader(c).read(
      count, names(c), files_of(c.device()), c.cancellation(),
      [give, done = std::move(done)](Status status, std::vector<RecordFile::Record> records) {
        try {
          if (status.is_ok()) give(std::move(records));
        } catch (...) {
          status = status_of_current_exception();
        }
        done(status);
      });
}

void read_one(ExecuteContext& c, Done done) {
  const auto give = [&c](std::vector<RecordFile::Record> records) {
    c.set_output(0, Tensor::scalar(std::move(records[0].key)));
    c.set_output(1, Tensor::scalar(std::move(records[0].value)));
  };
  read(c, 1, give, std::move(done));
}

void read_up_to(ExecuteContext& c, Done done) {
  const auto count = c.input(2).item<int64_t>();
  check(count > 0, "num_records must be positive, got ", count);
  const auto give = [&c](std::vector<RecordFile::Record> records) {
    const auto n = static_cast<int64_t>(records.size());
    Tensor keys(DType::string, {n}), values(DType::string, {n});
    for (int64_t i = 0; i < n; ++i) {
      keys.data<std::string>()[i] = std::move(records[i].key);
      values.data<std::string>()[i] = std::move(records[i].value);
    }
    c.set_output(0, std::move(keys));
    c.set_output(1, std::move(values));
  };
  read(c, count, give, std::move(done));
}

void reset(ExecuteContext& c, Done done) { reader(c).reset(c.cancellation(), std::move(done)); }

template <int64_t (Reader::*count)() const>
void count_of(ExecuteContext& c) {
  c.set_output(0, Tensor::scalar((reader(c).*count)()));
}

// ---- Ops

std::shared_ptr<Resource> make_reader(const NodeView& node) {
  return std::make_shared<Reader>(resource_name(node), Reader::Options::of(node));
}

OpDef reader_op(std::string name, std::string doc, std::vector<std::string> attrs = {}) {
  attrs.insert(attrs.end(), {"container: string = ''", "shared_name: string = ''"});
  return {
      .name = std::move(name),
      .doc = "reader_handle = a reader that returns " + std::move(doc) + ".",
      .outputs = {"reader_handle: resource"},
      .attrs = std::move(attrs),
      .kernels = {cpu_kernel([](const KernelRequest&) { return BoundKernel{}; })},
      .is_stateful = true,
      .make_resource = make_reader,
      .is_private_resource = true,
  };
}

const Op lines_op{reader_op("TextLineReaderV2",
                            "the lines of text files; keys are \"FILE:LINE\", counted from 1",
                            {"skip_header_lines: int = 0"})};
const Op records_op{reader_op("TFRecordReaderV2",
                              "the records of TFRecord files; keys are \"FILE:POSITION\"",
                              {"compression_type: string = ''"})};
const Op fixed_length_op{
    reader_op("FixedLengthRecordReaderV2",
              "pieces of record_bytes each, every hop_bytes (0: record_bytes) between a file's "
              "header and its footer; keys are \"FILE:NUMBER\", counted from 0",
              {"header_bytes: int = 0", "record_bytes: int", "footer_bytes: int = 0",
               "hop_bytes: int = 0", "encoding: string = ''"})};
const Op whole_op{reader_op("WholeFileReaderV2", "whole files; their names are the keys")};
const Op identity_op{reader_op("IdentityReaderV2", "the names themselves, as key and as value")};

OpDef operation(OpDef op, Kernel kernel) {
  op.inputs.insert(op.inputs.begin(), "reader_handle: resource");
  op.kernels = {std::move(kernel)};
  op.is_stateful = true;
  op.is_not_differentiable = true;
  return op;
}

const Op read_op{operation({.name = "ReaderReadV2",
                            .doc = "The reader's next record; waits until the queue has the name "
                                   "of a file. OUT_OF_RANGE once the queue is closed and empty.",
                            .inputs = {"queue_handle: resource"},
                            .outputs = {"key: string", "value: string"},
                            .shape =
                                [](ShapeContext& c) {
                                  c.set_output(0, {});
                                  c.set_output(1, {});
                                }},
                           {.execute_async = read_one})};
const Op read_up_to_op{
    operation({.name = "ReaderReadUpToV2",
               .doc = "The reader's next num_records records, or what the file has left of them.",
               .inputs = {"queue_handle: resource", "num_records: int64"},
               .outputs = {"keys: string", "values: string"},
               .shape =
                   [](ShapeContext& c) {
                     c.set_output(0, {any});
                     c.set_output(1, {any});
                   }},
              {.execute_async = read_up_to})};
const Op records_produced_op{
    operation({.name = "ReaderNumRecordsProducedV2",
               .doc = "records_produced = the number of records that the reader has returned.",
               .outputs = {"records_produced: int64"},
               .shape = shapes::scalar()},
              {.execute = count_of<&Reader::records>})};
const Op units_completed_op{operation(
    {.name = "ReaderNumWorkUnitsCompletedV2",
     .doc = "units_completed = the number of files that the reader has read to their end.",
     .outputs = {"units_completed: int64"},
     .shape = shapes::scalar()},
    {.execute = count_of<&Reader::files>})};
const Op reset_op{
    operation({.name = "ReaderResetV2",
               .doc = "Restarts the reader with the next file; its counters start from 0 again."},
              {.execute_async = reset})};

}  // namespace
}  // namespace leat
