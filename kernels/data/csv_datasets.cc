// Datasets of records from files of comma separated values.
#include <algorithm>
#include <utility>

#include "graph/formats/byte_source.h"
#include "kernels/data/csv_field.h"
#include "kernels/data/dataset.h"

namespace leat {
namespace {

struct Dialect {
  Compression compression;
  bool has_header, has_quotes;
  char delimiter;
};

// One file, record by record. Unlike in DecodeCSV, quoted fields may span lines, and a lone '\r'
// ends a record, too.
class CsvFile {
 public:
  CsvFile(const std::string& path, const Dialect& dialect, const FileRoots& roots)
      : source_(path, dialect.compression, roots),
        dialect_(dialect),
        is_at_header_(dialect.has_header) {}

  const std::string& path() const { return source_.path(); }
  int64_t number() const { return number_; }  // of the record that was read last, from 0

  // The fields of the next record; none at the end. INVALID_ARGUMENT if it is damaged; the next
  // call continues with the record after it.
  std::optional<std::vector<std::string>> next() {
    if (std::exchange(is_at_header_, false) && !is_at_end()) {
      read();
      check(mistake_ == nullptr, mistake_, " in the header");
    }
    if (is_at_end()) return std::nullopt;
    ++number_;
    std::vector<std::string> fields = read();
    check(mistake_ == nullptr, mistake_, " in record ", number_);
    return fields;
  }

 private:
  bool is_at_end() { return source_.available().empty(); }
  // Must not be called at the end.
  char peek() { return source_.available()[0]; }
  char take() {
    const char out = peek();
    source_.consume(1);
    return out;
  }

  std::vector<std::string> read() {
    std::vector<std::string> fields;
    mistake_ = nullptr;
    do {
      fields.emplace_back();
    } while (read_field(fields.back()));
    return fields;
  }

  // True if another field follows in the record.
  bool read_field(std::string& field) {
    if (dialect_.has_quotes && !is_at_end() && peek() == '"') {
      take();
      return read_quoted(field);
    }
    while (!is_at_end() && !ends_field(peek())) {
      const char c = take();
      if (dialect_.has_quotes && c == '"') mistake_ = "Unquoted fields cannot have quotes inside";
      field += c;
    }
    return take_end();
  }

  bool ends_field(char c) const { return c == dialect_.delimiter || c == '\n' || c == '\r'; }

  bool take_end() {
    if (is_at_end()) return false;
    const char c = take();
    if (c == '\r' && !is_at_end() && peek() == '\n') take();
    return c == dialect_.delimiter;
  }

  // Called after the opening quote.
  bool read_quoted(std::string& field) {
    while (!is_at_end()) {
      const char c = take();
      if (c == '"') {
        if (is_at_end() || ends_field(peek())) return take_end();
        if (peek() == '"') {
          take();
        } else {
          mistake_ = "Quote inside a string has to be escaped by another quote";
        }
      }
      field += c;
    }
    mistake_ = "Reached end of file without closing quoted field";
    return false;
  }

  ByteSource source_;
  const Dialect dialect_;
  bool is_at_header_;
  int64_t number_ = -1;
  const char* mistake_ = nullptr;  // in the record that is being read
};

// The fields of a record that are the components of an element.
struct Columns {
  std::vector<int64_t> selected;  // empty: all but those excluded
  std::vector<int64_t> excluded;

  static std::vector<int64_t> parse(const Tensor& columns, std::string_view name) {
    check(columns.shape().rank() == 1, "`", name, "` must be a vector.");
    const auto span = columns.span<int64_t>();
    for (size_t i = 0; i < span.size(); ++i) {
      check(span[i] >= 0, name, " should be non-negative indices");
      check(i == 0 || span[i - 1] < span[i], name, " should be strictly increasing indices");
    }
    return {span.begin(), span.end()};
  }

  std::vector<std::string> pick(std::vector<std::string> fields) const {
    std::vector<std::string> out;
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto column = static_cast<int64_t>(i);
      const bool is_wanted = selected.empty()
                                 ? !std::binary_search(excluded.begin(), excluded.end(), column)
                                 : std::binary_search(selected.begin(), selected.end(), column);
      if (is_wanted) out.push_back(std::move(fields[i]));
    }
    return out;
  }
};

class CsvDataset final : public ElementSource {
 public:
  CsvDataset(ElementTypes types, Tensor files, const Dialect& dialect, Columns columns,
             std::string missing, std::vector<Tensor> defaults, FileRoots roots)
      : ElementSource(std::move(types)),
        files_(std::move(files)),
        roots_(std::move(roots)),
        dialect_(dialect),
        columns_(std::move(columns)),
        missing_(std::move(missing)),
        defaults_(std::move(defaults)) {
    check(files_.shape().rank() <= 1, "`filenames` must be a scalar or a vector.");
    check(columns_.selected.empty() || columns_.excluded.empty(),
          "Either select_cols or exclude_cols should be empty");
    check(columns_.selected.empty() || columns_.selected.size() == defaults_.size(),
          "select_cols should match output size: ", columns_.selected.size(), " and ",
          defaults_.size());
    for (const Tensor& value : defaults_) check_field_default(value.shape());
  }

  std::unique_ptr<DatasetIterator> iterate() const override {
    struct State {
      int64_t at = 0;  // the file that is open, or will be
      std::unique_ptr<CsvFile> file;
    };
    return iterator([this, s = State{}](Reading& reading) mutable {
      std::optional<Element> out;
      while (!out && s.at < files_.elements()) {
        reading.check_goes_on();
        if (!s.file) {
          const std::string& path = files_.data<std::string>()[s.at];
          s.file = std::make_unique<CsvFile>(path, dialect_, roots_);
        }
        out = next_of(*s.file);
        if (out) continue;
        s.file.reset();
        ++s.at;
      }
      return out;
    });
  }

 private:
  std::optional<Element> next_of(CsvFile& file) const {
    try {
      std::optional<std::vector<std::string>> fields = file.next();
      if (!fields) return std::nullopt;
      return element_of(columns_.pick(std::move(*fields)), file.number());
    } catch (const Error& error) {
      if (error.code() != Code::invalid_argument) throw;
      fail(error.code(), error.message(), " of file '", file.path(), "'");
    }
  }

  Element element_of(const std::vector<std::string>& fields, int64_t record) const {
    check(fields.size() == defaults_.size(), "Expect ", defaults_.size(), " fields but have ",
          fields.size(), " in record ", record);
    Element out;
    for (size_t i = 0; i < fields.size(); ++i) {
      const Tensor& value = defaults_[i];
      visit_type(FieldTypes{}, value.dtype(), [&]<class T>(TypeTag<T>) {
        Tensor& to = out.emplace_back(dtype_of<T>, Shape{});
        const T* otherwise = value.elements() == 1 ? value.data<T>() : nullptr;
        read_field(fields[i], missing_, otherwise, i, record, *to.data<T>());
        return 0;
      });
    }
    return out;
  }

  const Tensor files_;
  const FileRoots roots_;
  const Dialect dialect_;
  const Columns columns_;
  const std::string missing_;
  const std::vector<Tensor> defaults_;
};

// CSVDataset(filenames, compression_type, buffer_size, header, field_delim, use_quote_delim,
// na_value, select_cols, record_defaults…), in V2 followed by exclude_cols.
ElementSource::Pointer csv_dataset(const ExecuteContext& c, bool has_excluded) {
  const auto buffer_size = scalar_input<int64_t>(c, 2, "buffer_size");
  check(buffer_size > 0, "buffer_size should be positive");
  const auto delimiter = scalar_input<std::string>(c, 4, "field_delim");
  check(delimiter.size() == 1, "field_delim should be only 1 char");
  const Dialect dialect{
      .compression = parse_compression(scalar_input<std::string>(c, 1, "compression_type")),
      .has_header = scalar_input<bool>(c, 3, "header"),
      .has_quotes = scalar_input<bool>(c, 5, "use_quote_delim"),
      .delimiter = delimiter[0]};
  const int defaults = static_cast<int>(c.node().attr<std::vector<DType>>("output_types").size());
  Columns columns{Columns::parse(c.input(7), "select_cols"), {}};
  if (has_excluded) columns.excluded = Columns::parse(c.input(8 + defaults), "exclude_cols");
  std::vector<Tensor> values;
  for (int i = 0; i < defaults; ++i) values.push_back(c.input(8 + i));
  return std::make_shared<CsvDataset>(
      ElementTypes::of(c.node()), c.input(0), dialect, std::move(columns),
      scalar_input<std::string>(c, 6, "na_value"), std::move(values), files_of(c.device()));
}

OpDef csv_op(std::string name, std::string doc, bool has_excluded) {
  OpDef op{.name = std::move(name),
           .doc = std::move(doc),
           .inputs = {"filenames: string", "compression_type: string", "buffer_size: int64",
                      "header: bool", "field_delim: string", "use_quote_delim: bool",
                      "na_value: string", "select_cols: int64", "record_defaults: output_types"},
           .attrs = {"output_types: list({float, double, int32, int64, string}) >= 1",
                     "output_shapes: list(shape) >= 1"},
           .is_stateful = true};
  if (has_excluded) op.inputs.push_back("exclude_cols: int64");
  return dataset_op(std::move(op), [=](ExecuteContext& c) { return csv_dataset(c, has_excluded); });
}

const Op csv_v1_op{csv_op("CSVDataset", "CSVDatasetV2 without exclude_cols.", false)};
const Op csv_v2_op{csv_op(
    "CSVDatasetV2",
    "The records of files of comma separated values: a component for each of record_defaults, as "
    "DecodeCSV. select_cols: the columns that are wanted; exclude_cols: those that are not.",
    true)};

}  // namespace
}  // namespace leat
