// `leat top grpc://host:port`: who in the cluster waits for what, from whom, and since when.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "core/error.h"
#include "distributed/cluster_view.h"
#include "distributed/master/remote_master.h"
#include "tools/leat/commands.h"
#include "tools/leat/tls_flags.h"
#include "tools/standard_output.h"

namespace leat {
namespace {

struct Flags {
  std::string target;
  double every = 0;     // seconds; 0: once
  std::string session;  // to close
  TlsPaths tls;
};

void show(const Flags& flags) {
  const std::string text = to_text(view_cluster(flags.target));
  const bool is_screen = flags.every > 0 && isatty(STDOUT_FILENO) != 0;
  if (is_screen) std::cout << "\033[H\033[2J";
  std::cout << text;
  finish_standard_output();
}

}  // namespace

void add_top_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* top = app.add_subcommand(
      "top", "Show what a cluster does and waits for: leat top grpc://host:port");
  top->add_option("target", flags->target, "Any task of the cluster: grpc://host:port")->required();
  top->add_option("--every", flags->every,
                  "Seconds between updates, until Ctrl-C (default: show once)")
      ->check(CLI::Range(0.1, 86400.0));
  top->add_option("--close", flags->session,
                  "Close this session of the task, whose client is gone, and show nothing");
  add_tls_flags(*top, flags->tls);
  top->footer(R"(
The first table lists the tasks with their devices, and why one does not answer. The second has a line for everything
that a step does or waits for now: on which task, for how long, and which task owes it; the step that has run longest
comes first. Lines without a step show what a master waits for (a task that does not answer, a graph that is being
compiled), and sessions whose clients have asked for nothing for a minute.

Exit status: 0; 1 if the task does not answer; 2 for a mistake in the command line.)");
  top->callback([flags, &exit_status] {
    if (flags->target.find("://") == std::string::npos) flags->target = "grpc://" + flags->target;
    exit_status = 0;
    set_client_tls(flags->tls);
    if (!flags->session.empty()) return close_session(flags->target, flags->session);
    show(*flags);
    while (flags->every > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(flags->every));
      std::cout << '\n';
      show(*flags);
    }
  });
}

}  // namespace leat
