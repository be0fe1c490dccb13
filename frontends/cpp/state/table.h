// Tables: maps from keys to values, such as words to their numbers.
//   Table ids(g, "ids", {"red", "green"}, {0, 1}, -1);
//   Output id = ids.lookup(words);                           // -1 for a word that is not there
//   Table words = Table::from_file(g, "words", "vocabulary.txt", -1);
#pragma once

#include <string>
#include <string_view>

#include "graph/ops.h"

namespace leat {

struct TableOptions {
  std::string container = {};  // "" = the task's default container
  // Sessions whose graphs give the same name share it; "" = each session has its own.
  std::string shared_name = {};
};

// Where a key or a value of a text file comes from: a column, counted from 0, or one of these.
inline constexpr int64_t line_number = -1, whole_line = -2;

// The defaults read a vocabulary, one word per line, that maps words to their line numbers from 0.
struct TableFileOptions {
  DType keys = DType::string, values = i64;  // string, int32, int64, float32 or float64
  int64_t key_column = whole_line, value_column = line_number;
  int64_t lines = -1;     // how many to read, which the file must have; -1: all
  char delimiter = '\t';  // between columns
  std::string container = {};
  std::string shared_name = {};
};

struct TableEntries {
  Output keys, values;
};

// The common part of both kinds of table. The shape of a result is that of the keys, then that of a
// value.
class AnyTable {
 public:
  // The value of each key, of any shape; the table's default value where a key is not there.
  Output lookup(const Operand& keys, Location at = here()) const;
  Output size(Location at = here()) const;  // int64: the number of entries
  // All, in any order: TensorFlow's export().
  TableEntries entries(Location at = here()) const;

  Output handle() const { return handle_; }  // for other ops on tables
  DType key_dtype() const { return keys_; }
  DType value_dtype() const { return values_; }

 protected:
  AnyTable(Graph& graph, std::string_view op, std::string_view name, DType keys,
           const Literal& default_value, DType values, AttrMap attrs, Location at);

  std::string what(std::string_view operation, Location at) const;
  Output checked_keys(const Operand& keys, std::string_view operation, Location at) const;
  Node& add(std::string_view op, std::string_view operation, std::vector<Output> inputs,
            AttrMap attrs, Location at) const;
  const Shape& value_shape() const { return default_.shape(); }

 private:
  std::string name_;  // as the user gave it
  DType keys_, values_;
  Tensor default_;
  Output handle_;
};

// A table that is filled once, by initialize_variables(); TrainingSession does that in each
// session, also where the variables come from a checkpoint. lookup() before that fails with
// FAILED_PRECONDITION. Cheap to copy; valid as long as its graph.
class Table : public AnyTable {
 public:
  // keys[i] -> values[i], vectors. Integers written in braces are int64 here.
  Table(Graph& graph, std::string_view name, const Literal& keys, const Literal& values,
        const Literal& default_value, const TableOptions& options = {}, Location at = here());
  // keys[i] -> i, int64: words and their numbers. TensorFlow's index_table_from_tensor.
  //   Table words = Table::from_vocabulary(g, "words", {"the", "cat", "sat"});
  static Table from_vocabulary(Graph& graph, std::string_view name, const Literal& keys,
                               int64_t default_value = -1, const TableOptions& options = {},
                               Location at = here());
  // From a text file of the task where the table is. Each line is an entry.
  static Table from_file(Graph& graph, std::string_view name, std::string_view file,
                         const Literal& default_value, const TableFileOptions& options = {},
                         Location at = here());

  // What initialize_variables() runs for this table.
  Node& initializer() const { return *initializer_; }

 private:
  Table(Graph& graph, std::string_view name, const Literal& default_value,
        const TableFileOptions& options, Location at);
  void set_initializer(std::string_view op, std::vector<Output> inputs, AttrMap attrs, Location at);

  Node* initializer_ = nullptr;
};

// A table that steps change; empty at first, and not part of checkpoints. The default value may be
// a vector: then all values are vectors of that length.
class MutableTable : public AnyTable {
 public:
  MutableTable(Graph& graph, std::string_view name, DType keys, DType values,
               const Literal& default_value, const TableOptions& options = {},
               Location at = here());

  // Sets the values of keys, new or not: shapes as those of lookup().
  Node& insert(const Operand& keys, const Operand& values, Location at = here()) const;
  Node& remove(const Operand& keys, Location at = here()) const;  // missing keys are fine
};

}  // namespace leat
