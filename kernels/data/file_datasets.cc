// Datasets of the records of files.
#include "graph/formats/record_file.h"
#include "kernels/data/dataset.h"

namespace leat {
namespace {

class FileDataset final : public ElementSource {
 public:
  using Open = std::function<OpenedFile(const std::string& path)>;
  FileDataset(Tensor files, Open open)
      : ElementSource({{DType::string}, {Shape{}}}),
        files_(std::move(files)),
        open_(std::move(open)) {
    check(files_.shape().rank() <= 1, "`filenames` must be a scalar or a vector.");
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      int64_t at = 0;  // the file that is open, or will be
      OpenedFile file;
    };
    return iterator([this, s = State{}](Reading& reading) mutable {
      std::optional<Element> out;
      for (; s.at < files_.shape().elements(); ++s.at, s.file.reset()) {
        reading.check_goes_on();
        if (!s.file) s.file = open_(files_.data<std::string>()[s.at]);
        std::optional<RecordFile::Record> record;
        try {
          record = s.file->next();
        } catch (const Error&) {  // the rest of a damaged file is not read
          ++s.at;
          s.file.reset();
          throw;
        }
        if (!record) continue;
        out.emplace(1, Tensor::scalar(std::move(record->value)));
        break;
      }
      return out;
    });
  }

 private:
  const Tensor files_;
  const Open open_;
};

Compression compression_of(const ExecuteContext& c, int input) {
  return parse_compression(scalar_input<std::string>(c, input, "compression_type"));
}

void check_buffer_size(const ExecuteContext& c, int input) {
  const auto size = scalar_input<int64_t>(c, input, "buffer_size");
  check(size >= -1, "`buffer_size` must be >= 0 (0 == default), or -1, got ", size);
}

const Op lines_op{
    dataset_op({.name = "TextLineDataset",
                .doc = "The lines of text files.",
                .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64"},
                .attrs = {metadata_attr},
                .is_stateful = true},
               [](ExecuteContext& c) {
                 check_buffer_size(c, 2);
                 return std::make_shared<FileDataset>(
                     c.input(0), [compression = compression_of(c, 1),
                                  roots = files_of(c.device())](const std::string& path) {
                       return open_lines(path, 0, compression, roots);
                     });
               })};
const Op records_op{
    dataset_op({.name = "TFRecordDataset",
                .doc = "The records of TFRecord files.",
                .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64"},
                .attrs = {metadata_attr},
                .is_stateful = true},
               [](ExecuteContext& c) {
                 check_buffer_size(c, 2);
                 return std::make_shared<FileDataset>(
                     c.input(0), [compression = compression_of(c, 1),
                                  roots = files_of(c.device())](const std::string& path) {
                       return open_records(path, compression, roots);
                     });
               })};

ElementSource::Pointer fixed_length(const ExecuteContext& c, Compression compression) {
  const FixedLength bytes = {.header = scalar_input<int64_t>(c, 1, "header_bytes"),
                             .record = scalar_input<int64_t>(c, 2, "record_bytes"),
                             .footer = scalar_input<int64_t>(c, 3, "footer_bytes"),
                             .fits = true};
  bytes.check_bytes();
  check_buffer_size(c, 4);
  return std::make_shared<FileDataset>(
      c.input(0), [bytes, compression, roots = files_of(c.device())](const std::string& path) {
        return open_fixed_length(path, bytes, compression, roots);
      });
}

const Op fixed_length_op{
    dataset_op({.name = "FixedLengthRecordDataset",
                .doc = "Pieces of record_bytes each, between a file's header and its footer.",
                .inputs = {"filenames: string", "header_bytes: int64", "record_bytes: int64",
                           "footer_bytes: int64", "buffer_size: int64"},
                .attrs = {metadata_attr},
                .is_stateful = true},
               [](ExecuteContext& c) { return fixed_length(c, Compression::none); })};
const Op fixed_length_v2_op{
    dataset_op({.name = "FixedLengthRecordDatasetV2",
                .doc = "FixedLengthRecordDataset of files that may be compressed.",
                .inputs = {"filenames: string", "header_bytes: int64", "record_bytes: int64",
                           "footer_bytes: int64", "buffer_size: int64", "compression_type: string"},
                .attrs = {metadata_attr},
                .is_stateful = true},
               [](ExecuteContext& c) { return fixed_length(c, compression_of(c, 5)); })};

}  // namespace
}  // namespace leat
