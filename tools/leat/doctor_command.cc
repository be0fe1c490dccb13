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
  CLI::App* doctor = app.add_subcommand("doctor",
                                        "Show what this build can do here, or which tasks reach "
                                        "each other: leat doctor grpc://host:port");
  doctor->add_option("target", flags->target,
                     "A task of a cluster: grpc://host:port (default: only this machine)");
  add_tls_flags(*doctor, flags->tls);
  doctor->footer(R"(
With a target: a line for each task of its cluster. "reaches" is what the task itself reports about the others, and whether
tensors and steps go to them through shared memory (of one host) or gRPC; this machine cannot ask a task that it does not reach.

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
