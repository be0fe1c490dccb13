#include "frontends/cpp/strategies/parts/embedding_lookup.h"

namespace leat {
namespace {

// For each id the part that has its row, and the row there; of the ids' dtype.
struct Places {
  Output part, row;
};

Places in_turns(const Output& ids, int64_t parts) { return {ids % parts, floor_div(ids, parts)}; }

// The first `longer` parts have `rows` + 1 rows each, the others `rows`.
Places in_order(const Output& ids, int64_t parts, int64_t all_rows) {
  const int64_t rows = all_rows / parts, longer = all_rows % parts;
  const Output part = maximum(floor_div(ids, rows + 1), floor_div(ids - longer, rows));
  // Where it begins, part · rows and one more for each longer part before it.
  return {part, ids - part * rows - minimum(part, longer)};
}

Output extents_of_row(Graph& graph, const Shape& table, Location at) {
  Tensor extents(i32, {table.rank() - 1});
  for (int i = 1; i < table.rank(); ++i)
    extents.data<int32_t>()[i - 1] = static_cast<int32_t>(table[i]);
  return constant(graph, extents, "row_shape", at);
}

Output gather_beside(const Output& part, const Output& rows, Location at) {
  const ColocationScope with(part.graph(), {part});
  return take(part, rows, 0, at);
}

}  // namespace

Output embedding_lookup(const PartitionedVariable& table, Output ids, PartitionStrategy strategy,
                        Location at) {
  check(ids && (ids.dtype() == DType::i32 || ids.dtype() == DType::i64), "embedding_lookup (", at,
        ") in '", table.name(), "' needs ids, int32 or int64, got ",
        ids ? concat(ids.name(), " ", ids.dtype()) : "none");
  Graph& graph = ids.graph();
  check(&graph == &table.graph(), "embedding_lookup (", at, "): the ids '", ids.name(),
        "' are in another graph than '", table.name(), "'");
  check(table.axis() == 0, "embedding_lookup (", at, "): '", table.name(), "' ", table.shape(),
        " is cut along axis ", table.axis(), ", so no part has a whole row: cut it along axis 0");
  const auto count = static_cast<int64_t>(table.parts().size());
  const NameScope scope(graph, "embedding_lookup");
  if (count == 1) return identity(gather_beside(table.parts().front(), ids, at), at);

  const Output flat = reshape(ids, {-1}, at);
  const auto [place, row] = strategy == PartitionStrategy::div
                                ? in_order(flat, count, table.shape()[0])
                                : in_turns(flat, count);
  const Output part = cast(place, i32, at);
  const Output positions = arange(graph, size_of(flat, i32, at), at);
  const std::vector<Output> rows_of = dynamic_partition(row, part, count, at),
                            positions_of = dynamic_partition(positions, part, count, at);
  std::vector<Output> found;
  for (size_t i = 0; i < rows_of.size(); ++i)
    found.push_back(gather_beside(table.parts()[i], rows_of[i], at));
  const Output shape =
      concatenate({shape_of(ids, i32, at), extents_of_row(graph, table.shape(), at)}, 0, at);
  return reshape(dynamic_stitch(positions_of, found, at), shape, at);
}

}  // namespace leat
