// `leat ops`: lists the ops, or describes one of them.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "tools/leat/commands.h"
#include "tools/leat/ops_text.h"
#include "tools/standard_output.h"

namespace leat {
namespace {

struct Flags {
  std::string name, filter;
  bool markdown = false;
};

}  // namespace

void add_ops_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* ops = app.add_subcommand("ops", "List the ops, or describe one: leat ops MatMul");
  const auto name = ops->add_option("name", flags->name, "Describe this op in full");
  const auto filter =
      ops->add_option("--filter", flags->filter, "Only ops with this in the name or description");
  ops->add_flag("--markdown", flags->markdown, "Print all ops as the page docs/ops.md")
      ->excludes(name)
      ->excludes(filter);
  name->excludes(filter);
  ops->footer(R"(
Exit status: 0; 2 if there is no such op.)");
  ops->callback([flags, &exit_status] {
    exit_status = 0;
    std::cout << (flags->markdown       ? page_of_ops()
                  : flags->name.empty() ? list_of_ops(flags->filter)
                                        : description_of_op(flags->name));
    finish_standard_output();
  });
}

}  // namespace leat
