// The sub-commands of `leat`. Each adds itself to the command line; its callback stores the
// process's exit status in `exit_status`. main prints a leat::Error from a callback: status 2 for
// the user's mistake, else 1.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace leat {

void add_task_command(CLI::App& app, int& exit_status);  // task_command.cc: one task of a cluster
void add_up_command(CLI::App& app, int& exit_status);    // up_command.cc: every task of this host
void add_run_command(CLI::App& app,
                     int& exit_status);  // up_command.cc: the same, and a program per worker
void add_compare_command(CLI::App& app,
                         int& exit_status);  // compare/: `run` with strategy after strategy
void add_top_command(CLI::App& app, int& exit_status);  // top_command.cc: who waits for what

void add_certificates_command(CLI::App& app, int& exit_status);  // certificates_command.cc
void add_ops_command(CLI::App& app, int& exit_status);           // ops_command.cc: what an op does
void add_doctor_command(CLI::App& app, int& exit_status);  // doctor_command.cc: what works here

// `leat exec-child PARENT PROGRAM ARGS…`: becomes PROGRAM, which dies with the process PARENT. Call
// it first in main; never returns.
[[noreturn]] void exec_child(const std::vector<std::string>& arguments);

// Asks for SIGTERM when the process that has started this one dies.
void end_with_parent();

// `leat NAME …` runs the program leat-NAME beside this one (leat-viz). Never returns.
[[noreturn]] void exec_sibling(const std::string& name, const std::vector<std::string>& arguments);

// The path of this executable.
std::string own_path();

}  // namespace leat
