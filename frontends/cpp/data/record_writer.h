// Writes TFRecord files, which datasets::records() and TensorFlow read.
//   RecordWriter writer("digits.tfrecord");
//   writer.write(serialize_example({{"image", examples}, {"label", 3}}));
//   writer.close();
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/formats/file.h"
#include "graph/ops/operand.h"

namespace leat {

// One file, uncompressed, of any number of records: bytes with checksums. An existing file is
// overwritten. Not thread-safe. Errors are those of files: NOT_FOUND if there is no such directory,
// PERMISSION_DENIED, RESOURCE_EXHAUSTED if the disk is full. tf.io.TFRecordWriter.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path) : file_(path) {}
  // Calls close(); only prints an error to stderr.
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;

  const std::string& path() const { return file_.path(); }
  void write(std::string_view record);
  void flush() { file_.flush(); }  // readers see what was written so far
  // Writes what is left. write() after it is FAILED_PRECONDITION.
  void close();

 private:
  FileWriter file_;
  bool is_closed_ = false;
};

// A serialized tf.train.Example, what parse_example() reads: of each feature the name and a value,
// a number, a list or a Tensor, whose elements are stored in row-major order, without the shape.
// Floating-point numbers become a float list, integers and bools an int64 list, texts a bytes list.
// INVALID_ARGUMENT for other dtypes, an empty name, or one that occurs twice.
std::string serialize_example(const std::vector<std::pair<std::string, Literal>>& features,
                              Location at = here());

}  // namespace leat
