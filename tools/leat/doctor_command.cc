// `leat doctor`: what is built in, which devices and libraries exist, which tasks reach each other.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "tools/leat/commands.h"
#include "tools/leat/doctor_text.h"
#include "tools/leat/tls_flags.h"
#include "tools/standard_output.h"

namespace leat {
namespace {

struct Flags {
  std::string target;
  TlsPaths tls;
};

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* doctor = app.add_subcommand(
      "doctor", "What this build can do here; who reaches whom: leat doctor grpc://host:port");
  doctor->add_option("target", flags->target,
                     "A task of a cluster: grpc://host:port; none: this machine only");
  add_tls_flags(*doctor, flags->tls);
  doctor->footer(R"(
Of a cluster: a line for each task. "reaches" is what the task itself says of the others; a task that this machine does not
reach cannot be asked.

Exit status: 0; 1 if a task does not reach another or does not answer; 2 for a mistake in the command line.)");
  doctor->callback([flags, &exit_status] {
    exit_status = 0;
    std::string text = description_of_this_machine();
    if (!flags->target.empty()) {
      if (flags->target.find("://") == std::string::npos) flags->target = "grpc://" + flags->target;
      set_client_tls(flags->tls);
      bool all = true;
      text += "cluster\n" + to_text(who_reaches_whom(flags->target), all);
      if (!all) exit_status = 1;
    }
    std::cout << text;
    finish_standard_output();
  });
}

}  // namespace leat
