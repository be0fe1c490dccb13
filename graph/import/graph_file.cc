#include "graph/import/graph_file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "core/crc32c.h"
#include "core/error.h"
#include "graph/formats/proto/event.pb.h"
#include "graph/formats/table_reader.h"
#include "graph/import/proto_codec.h"
#include "graph/proto/graph.pb.h"
#include "graph/proto/saved_graph.pb.h"

namespace leat {
namespace {

namespace io = google::protobuf::io;

template <class Message>
bool parse(std::string_view bytes, Message& message) {
  if (bytes.size() > std::numeric_limits<int>::max()) return false;
  io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                             static_cast<int>(bytes.size()));
  return message.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

// Bytes of one kind may parse as another, with nodes that are none.
bool is_graph(const tensorflow::GraphDef& graph) {
  return graph.node_size() > 0 &&
         std::all_of(graph.node().begin(), graph.node().end(),
                     [](const auto& node) { return !node.name().empty() && !node.op().empty(); });
}

// The first graph that has nodes.
bool take(tensorflow::SavedModel& model, tensorflow::GraphDef& graph) {
  for (auto& meta : *model.mutable_meta_graphs()) {
    if (!is_graph(meta.graph_def())) continue;
    graph.Swap(meta.mutable_graph_def());
    return true;
  }
  return false;
}
bool take(tensorflow::MetaGraphDef& meta, tensorflow::GraphDef& graph) {
  if (!is_graph(meta.graph_def())) return false;
  graph.Swap(meta.mutable_graph_def());
  return true;
}

template <class Holder>
bool parse_from(std::string_view bytes, tensorflow::GraphDef& graph) {
  Holder holder;
  return parse(bytes, holder) && take(holder, graph);
}

bool parse_binary(std::string_view bytes, tensorflow::GraphDef& graph) {
  // What is of another kind is no error.
  const google::protobuf::LogSilencer quiet;
  if (parse_from<tensorflow::SavedModel>(bytes, graph) ||
      parse_from<tensorflow::MetaGraphDef>(bytes, graph))
    return true;
  return parse(bytes, graph) && graph.node_size() > 0;
}

// ---- Records

constexpr size_t record_header = sizeof(uint64_t) + sizeof(uint32_t);

// Takes the first record off the bytes. Nothing if there is no whole one.
std::optional<std::string_view> take_record(std::string_view& bytes) {
  uint64_t length = 0;
  uint32_t crc = 0;
  if (bytes.size() < record_header) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  std::memcpy(&crc, bytes.data() + sizeof length, sizeof crc);
  if (crc != masked_crc(crc32c(bytes.data(), sizeof length))) return std::nullopt;
  bytes.remove_prefix(record_header);
  if (bytes.size() < sizeof crc || length > bytes.size() - sizeof crc) return std::nullopt;
  const std::string_view record = bytes.substr(0, length);
  bytes.remove_prefix(length + sizeof crc);
  return record;
}

struct Records {
  size_t count = 0, events = 0;
};

// The last graph of an event file; nothing is found in files of other records.
bool parse_events(std::string_view bytes, tensorflow::GraphDef& graph, Records& records) {
  bool is_found = false;
  while (const std::optional<std::string_view> record = take_record(bytes)) {
    ++records.count;
    tensorflow::Event event;
    if (!parse(*record, event) || event.wall_time() == 0) continue;
    ++records.events;
    tensorflow::GraphDef found;
    if ((!event.graph_def().empty() && parse(event.graph_def(), found) && is_graph(found)) ||
        (!event.meta_graph_def().empty() &&
         parse_from<tensorflow::MetaGraphDef>(event.meta_graph_def(), found))) {
      graph.Swap(&found);
      is_found = true;
    }
  }
  return is_found;
}

// ---- What else there is

struct Magic {
  size_t at;
  std::string_view bytes;
  const char* what;
};
constexpr const char* weights_only = "it holds values, and the graph is in the .meta beside it";
constexpr Magic magics[] = {
    {0, "\x89HDF", "an HDF5 file, as Keras saves weights in"},
    {0, "PK\x03\x04", "a zip archive, as .keras, .npz and PyTorch's files are"},
    {4, "TFL3", "a TensorFlow Lite model"},
    {0, "\x89PNG", "a picture (PNG)"},
    {0, "\xff\xd8\xff", "a picture (JPEG)"},
    {0, "%PDF", "a PDF"},
    {0, "\x1f\x8b", "compressed with gzip: unpack it first"},
    {0, "\x93NUMPY", "a NumPy array"},
    {0, "SQLite format 3", "an SQLite database"},
    {0,
     "\x7f"
     "ELF",
     "a program or a library"},
    {0, "\x80\x02", "a Python pickle"},
    {0, "\x80\x03", "a Python pickle"},
    {0, "\x80\x04", "a Python pickle"},
    {0, "\x80\x05", "a Python pickle"},
};

// "" if it cannot be seen.
std::string what_else(std::string_view bytes, std::string_view origin, const Records& records) {
  for (const Magic& magic : magics)
    if (bytes.size() > magic.at && bytes.substr(magic.at).starts_with(magic.bytes))
      return magic.what;
  if (records.events > 0)
    return concat("an event file without a graph (", records.events,
                  " events): the program that wrote it added none");
  if (records.count > 0)
    return concat("a TFRecord file with ", records.count,
                  records.count == 1 ? " record" : " records");
  if (ends_as_table(bytes))
    return concat("the index of a checkpoint, or a checkpoint of format V1: ", weights_only);
  if (origin.find(".data-") != origin.npos)
    return concat("the data file of a checkpoint: ", weights_only);
  if (bytes.starts_with("model_checkpoint_path:")) return "the checkpoint list of its directory";
  // ModelProto: ir_version, producer_name.
  if (bytes.size() > 2 && bytes[0] == '\x08' && bytes[2] == '\x12')
    return "another protobuf message, perhaps an ONNX model";
  return "";
}

}  // namespace

void read_graph_file(std::string_view bytes, std::string_view origin, tensorflow::GraphDef& graph) {
  if (parse_binary(bytes, graph)) return;
  Records records;
  if (parse_events(bytes, graph, records)) return;
  const std::string other = what_else(bytes, origin, records);
  check(other.empty(), origin, " is not a graph but ", other);
  const bool is_text = std::none_of(bytes.begin(), bytes.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\r' && c != '\t';
  });
  check(is_text && !bytes.empty(), origin, " is not a GraphDef (", bytes.size(),
        " bytes, neither binary nor text)");
  check(bytes.size() <= std::numeric_limits<int>::max(), origin, " is larger than 2 GiB");
  graph.Clear();
  const std::string problem = parse_text(bytes, graph);
  check(problem.empty(), origin, " is not a GraphDef: ", problem);
  if (graph.node_size() > 0) return;
  tensorflow::MetaGraphDef meta;
  tensorflow::SavedModel model;
  if (parse_text(bytes, meta).empty() && take(meta, graph)) return;
  if (parse_text(bytes, model).empty() && take(model, graph)) return;
  fail(Code::invalid_argument, origin, " has no nodes");
}

}  // namespace leat
