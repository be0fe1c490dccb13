#include "frontends/cpp/saver.h"

#include <gtest/gtest.h>

#include "graph/formats/checkpoint.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

TEST(Saver, SavesWhatItIsTold) {
  Graph graph;
  const Output a = variable(graph, "a", {}, initializers::constant(1.0)),
               b = variable(graph, "b", {}, initializers::constant(2.0));
  Node& init = initialize_variables(graph);
  Saver only_b(graph, {.variables = {{"other", b}}});
  const ScratchDirectory directory;
  Session session(graph);
  session.run({init});
  const std::string prefix = only_b.save(session, directory.path(), 1);
  const CheckpointReader reader(prefix);
  ASSERT_EQ(reader.variables().size(), 1U);
  EXPECT_EQ(reader.variables()[0].name, "other");
  session.run({*assign(b, a).node});
  only_b.restore(session, prefix);
  EXPECT_EQ(session.run({}, {b})[0].value<float>(), 2);
  EXPECT_THROW(Saver(graph, {.variables = {{"sum", a + b}}}), Error);
}

}  // namespace
}  // namespace leat
