// bin/leat: the command line of everything that runs. `leat NAME` runs a program leat-NAME beside
// this one, so that a worker does not load its libraries (Graphviz).
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "tools/leat/commands.h"
#include "tools/standard_output.h"

namespace {

constexpr const char* siblings[] = {"viz"};

bool has_command(const CLI::App& app, const std::string& name) {
  const auto commands =
      app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return !commands.empty();
}

// What is closed (>&-) would become a socket of ours that is printed to. Read-only: printing still
// fails.
void keep_standard_descriptors() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDONLY);
  }
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const std::vector<std::string> rest(argv + std::min(argc, 2), argv + argc);
  if (command == "exec-child") leat::exec_child(rest);
  for (const char* sibling : siblings) {
    if (command == sibling) leat::exec_sibling(sibling, rest);
  }

  CLI::App app("Leat: dataflow graphs on one machine or many.", "leat");
  app.footer(
      "\nExit status of every command: 0 for success, 1 for a failure, 2 for a mistake in the "
      "command line or a file;\nmore in `leat COMMAND --help`.");
  app.set_version_flag("--version", "leat " LEAT_VERSION);
  int exit_status = 0;
  app.require_subcommand(1);
  leat::add_task_command(app, exit_status);
  leat::add_up_command(app, exit_status);
  leat::add_run_command(app, exit_status);
  leat::add_compare_command(app, exit_status);
  leat::add_top_command(app, exit_status);
  leat::add_certificates_command(app, exit_status);
  leat::add_ops_command(app, exit_status);
  leat::add_doctor_command(app, exit_status);
  // Only for --help: run above.
  app.add_subcommand("viz", "Draw a graph: leat viz graph.pb -o graph.svg");
  if (!command.empty() && command[0] != '-' && !has_command(app, command)) {
    std::cerr << "leat: there is no command \"" << command << "\"; leat --help lists them\n";
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {  // also --help and --version
    if (app.exit(error) != 0) return 2;
    leat::finish_standard_output();
    return 0;
  } catch (const leat::Error& error) {
    std::cerr << "leat: " << error.message() << "\n";
    const bool is_users =
        error.code() == leat::Code::invalid_argument || error.code() == leat::Code::not_found;
    return is_users ? 2 : 1;
  }
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_descriptors();
  try {
    return run(argc, argv);
  } catch (const std::system_error& error) {
    // std::thread says no more than that.
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::cerr << "leat: " << (is_thread ? "cannot start a thread: " : "") << error.what()
              << (is_thread ? " (check the limits on processes, threads and memory: ulimit -a)"
                            : "")
              << "\n";
    return 1;
  } catch (const std::bad_alloc&) {
    std::cerr << "leat: out of memory\n";
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "leat: " << error.what() << "\n";
    return 1;
  }
}
