#include "frontends/cpp/graph_files.h"

#include <iostream>

#include "graph/formats/file.h"
#include "graph/import/graph_def.h"

namespace leat {
namespace {

bool is_text(const std::string& path) { return path.ends_with(".pbtxt"); }

}  // namespace

void write_graph(const Graph& graph, const std::string& path) {
  replace_file(path, is_text(path) ? to_graph_def_text(graph) : to_graph_def(graph));
}

Graph read_graph(const std::string& path) {
  const std::string bytes = read_file(path);
  Graph out;
  try {
    for (const std::string& warning :
         is_text(path) ? from_graph_def_text(bytes, out) : from_graph_def(bytes, out))
      std::cerr << "leat: " << path << ": " << warning << std::endl;
  } catch (const Error& error) {
    fail_again(error, error.code(), path, ": ", error.message());
  }
  return out;
}

}  // namespace leat
