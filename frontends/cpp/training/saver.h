// Saver: checkpoints of a graph's variables, in TensorFlow's format. Each task writes the variables
// that it holds; their files are merged afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontends/cpp/session.h"
#include "frontends/cpp/training/saved_tensors.h"

namespace leat {

// Make it when all variables have been made; it adds its nodes to the graph. On a cluster all tasks
// that hold variables, and the one that the session dials, must see the same directory.
class Saver {
 public:
  struct Options {
    int max_to_keep = 5;  // older ones of the directory are removed; 0: keep all
    // By their names in the checkpoint. Empty: all variables, by their own names. The parts of a
    // partitioned variable have one name: they are slices of one tensor, which a graph with other
    // parts, or none, can restore.
    std::multimap<std::string, Output> variables = {};
  };
  explicit Saver(Graph& graph, Location at = here()) : Saver(graph, Options{}, at) {}
  Saver(Graph& graph, Options options, Location at = here());
  // Of these variables, by their own names.
  Saver(Graph& graph, std::initializer_list<Output> variables, Location at = here());

  // Writes the checkpoint <path>-<step>, or <path> without a step, as TensorFlow's Saver: the files
  // <path>-<step>.index and .data-00000-of-00001. Of a directory that exists, or a path that ends
  // with "/", it is <path>/model.ckpt-<step>. Directories that are missing are made. Notes it in
  // the file `checkpoint` of its directory. Returns the prefix, for restore(). The checkpoint
  // appears whole or not at all. The path may be file:///…; other URLs are UNIMPLEMENTED.
  //   const std::string prefix = Saver(g).save(session, "ck/model", 100);  // ck/model-100
  std::string save(Session& session, const std::string& path, std::optional<int64_t> step = {});
  // Copies of variables (all_reduce.h) are made equal to them again. NOT_FOUND or INVALID_ARGUMENT
  // lists all variables that are missing or differ; DATA_LOSS names a torn file. NOT_FOUND for "",
  // which latest_checkpoint() returns where there is none.
  void restore(Session& session, const std::string& prefix) const;
  // Restores the last checkpoint that was saved to the path, by the file `checkpoint` of its
  // directory, or, if it is torn, the newest readable one (a line on standard error says so; save()
  // no longer counts or names torn ones). Returns its prefix, or "" if there is none. DATA_LOSS if
  // all are torn, or the file `checkpoint` is.
  std::string restore_latest(Session& session, const std::string& path);
  // Removes what interrupted saves left in the directory. Call it while no save is under way.
  static void remove_remains(const std::string& directory);

 private:
  const int max_to_keep_;
  const std::vector<SavedTensor> tensors_;
  std::vector<std::string> torn_;  // prefixes
  Output prefix_;                  // placeholder
  Node* save_ = nullptr;
  Node* restore_ = nullptr;
};

// The prefix of the last checkpoint of a directory, as its file `checkpoint` names it, for
// Saver::restore(); or of the last one that was saved to that path (Saver::save). "" if there is
// none. It does not look into subdirectories: INVALID_ARGUMENT if `path` is the prefix of a
// checkpoint or another file.
std::string latest_checkpoint(const std::string& path);

}  // namespace leat
