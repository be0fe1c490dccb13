// `leat compare -- PROGRAM`: the same program with one strategy after the other.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "core/error.h"
#include "graph/formats/file.h"
#include "tools/leat/commands.h"
#include "tools/leat/compare/page.h"
#include "tools/leat/compare/report.h"
#include "tools/leat/compare/strategy_run.h"
#include "tools/leat/console.h"
#include "tools/leat/process.h"
#include "tools/leat/slow_tasks.h"
#include "tools/standard_output.h"

namespace leat {
namespace {

constexpr const char* usual_strategies[] = {"one_device",
                                            "parameter_server",
                                            "parameter_server:staleness=0",
                                            "parameter_server:staleness=2",
                                            "all_reduce",
                                            "local_sgd",
                                            "easgd",
                                            "bmuf"};
constexpr int most_tasks = 256;

struct Flags {
  std::vector<std::string> strategies, program, slow;
  int workers = 4, servers = 1;
  std::filesystem::path directory = "leat-compare";
  std::string title;
  double timeout = 0;  // seconds; 0: none
};

std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> out;
  for (const std::string& list : lists) {
    for (size_t begin = 0, end = 0; end != list.npos; begin = end + 1) {
      end = list.find(',', begin);
      const std::string name = list.substr(begin, end == list.npos ? end : end - begin);
      check(!name.empty(), "--strategies \"", list,
            "\" has an empty name; write for example all_reduce,local_sgd:steps=5");
      check(std::find(out.begin(), out.end(), name) == out.end(), "--strategies names ", name,
            " twice");
      out.push_back(name);
    }
  }
  return out;
}

std::string counted(int count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

// An option's value may be a path.
std::string folder_name(std::string strategy) {
  std::replace(strategy.begin(), strategy.end(), '/', '_');
  return strategy;
}

class Comparer {
 public:
  explicit Comparer(Flags flags) : flags_(std::move(flags)) {
    comparison_.title = flags_.title;
    comparison_.setting = fmt::format("{}, {}; {}", counted(flags_.workers, "worker"),
                                      counted(flags_.servers, "parameter server"), shown_program());
    if (!flags_.slow.empty()) comparison_.setting += "; slowed down: " + joined(flags_.slow, ", ");
  }
  int run();

 private:
  int run(const std::string& strategy);
  StrategyRun plan(const std::string& strategy) const;
  std::string problem_of(const StrategyOutcome& outcome, const TrainingCurve& curve,
                         const StrategyRun& run) const;
  std::string shown_program() const {
    std::vector<std::string> words = flags_.program;
    words[0] = std::filesystem::path(words[0]).filename();
    return joined(words);
  }
  void write(const char* name, const std::string& text) const {
    replace_file((flags_.directory / name).string(), text);
  }
  void say(const std::string& text) { console_.line("leat:", text); }

  const Flags flags_;
  StopSignals signals_;
  Console& console_ = Console::standard();
  Comparison comparison_;
};

StrategyRun Comparer::plan(const std::string& strategy) const {
  const std::string folder = folder_name(strategy);
  StrategyRun run{
      .records = flags_.directory / "records" / folder,
      .logs = flags_.directory / "logs" / folder,
      .timeout = std::chrono::milliseconds(static_cast<int64_t>(flags_.timeout * 1000))};
  const std::string cluster =
      flags_.servers > 0 ? fmt::format("local:ps={},worker={}", flags_.servers, flags_.workers)
                         : fmt::format("local:worker={}", flags_.workers);
  run.command = {own_path(), "run", cluster, "--log-dir", run.logs.string()};
  for (const std::string& slow : flags_.slow) run.command.push_back("--slow=" + slow);
  run.command.insert(run.command.end(), {"--", flags_.program[0], "--strategy", strategy});
  run.command.insert(run.command.end(), flags_.program.begin() + 1, flags_.program.end());
  return run;
}

// Returns the signal that asks to end everything, or 0.
int Comparer::run(const std::string& strategy) {
  const size_t number = comparison_.results.size() + 1;
  const std::string label = fmt::format("{}/{} {}", number, flags_.strategies.size(), strategy);
  StrategyRun run = plan(strategy);
  if (!console_.is_terminal()) say(label);
  run.on_look = [&](std::chrono::duration<double> time, double bytes) {
    console_.redraw("leat:",
                    fmt::format("{}: {:.0f} s, {} sent", label, time.count(), bytes_text(bytes)));
  };
  const StrategyOutcome outcome = run_strategy(run, signals_);
  if (outcome.stop_signal != 0) {
    say(fmt::format("{}: stopped", signal_name(outcome.stop_signal)));
    return outcome.stop_signal;
  }
  StrategyResult result{.name = strategy};
  try {
    result.curve = merge(read_records(run.records));
  } catch (const Error& error) {
    result.problem = error.message();
  }
  add_bytes(outcome.samples, result.curve);
  result.waits = outcome.samples.waits();
  if (result.problem.empty()) result.problem = problem_of(outcome, result.curve, run);
  if (result.problem.empty()) {
    say(fmt::format("{}: {} steps in {:.1f} s, loss {:.4f}", label, result.curve.steps,
                    result.curve.seconds(), result.curve.final_loss()));
  } else {
    console_.end_redraw();
    std::cout << std::flush;
    std::cerr << "leat: " << strategy << " failed: " << result.problem << "\n";
    if (!outcome.ending.is_success()) {
      for (const std::string& line : outcome.last_lines) std::cerr << "    " << line << "\n";
    }
  }
  comparison_.results.push_back(std::move(result));
  return 0;
}

std::string Comparer::problem_of(const StrategyOutcome& outcome, const TrainingCurve& curve,
                                 const StrategyRun& run) const {
  const std::string logs = "; logs in " + run.logs.string();
  if (outcome.is_late)
    return fmt::format("it did not end within {} s (--timeout){}", flags_.timeout, logs);
  if (!outcome.ending.is_success())
    return fmt::format("{} ended with {}{}", shown_program(), outcome.ending.describe(), logs);
  if (curve.is_empty())
    return fmt::format(
        "{} recorded no step: it must train with a TrainingSession of the Training "
        "that a strategy returns{}",
        shown_program(), logs);
  return "";
}

int Comparer::run() {
  for (const std::string& strategy : flags_.strategies) {
    if (const int signal = run(strategy); signal != 0) return 128 + signal;
  }
  write("compare.json", to_json(comparison_));
  write("compare.html", to_html(comparison_));
  write("compare.svg", to_svg(comparison_));
  std::cout << "\n" << to_text(comparison_) << "\n";
  say(fmt::format("curves in {}, compare.svg and compare.json",
                  (flags_.directory / "compare.html").string()));
  finish_standard_output();
  const bool has_failed =
      std::any_of(comparison_.results.begin(), comparison_.results.end(),
                  [](const StrategyResult& result) { return !result.problem.empty(); });
  return has_failed ? 1 : 0;
}

// Of the usual ones, those that need no parameter server if there is none.
std::vector<std::string> usual_ones(int servers) {
  std::vector<std::string> out;
  for (const char* name : usual_strategies) {
    const std::string_view text = name;
    if (servers == 0 && (text.starts_with("parameter_server") || text == "easgd")) continue;
    out.emplace_back(name);
  }
  return out;
}

}  // namespace

void add_compare_command(CLI::App& app, int& exit_status) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "compare", "Train with several strategies, one after the other, and draw their losses");
  command
      ->add_option("--strategies", flags->strategies,
                   "Names with options, separated by commas; may be repeated (default: " +
                       joined(usual_ones(1), ",") + ")")
      ->allow_extra_args(false);
  command->add_option("--workers", flags->workers, "Worker tasks, all on this host")
      ->check(CLI::Range(1, most_tasks))
      ->capture_default_str();
  command->add_option("--ps", flags->servers, "Parameter servers, all on this host")
      ->check(CLI::Range(0, most_tasks))
      ->capture_default_str();
  command->add_option("--slow", flags->slow, slow_help)->allow_extra_args(false);
  command->add_option("--out", flags->directory, "Folder for the results")->capture_default_str();
  command->add_option("--title", flags->title, "Title of the page (default: the program's name)");
  command
      ->add_option("--timeout", flags->timeout,
                   "Seconds after which a strategy that has not ended is stopped (default: none)")
      ->check(CLI::Range(0.1, 1e7));
  command->add_option("program", flags->program, "The program and its arguments, after --")
      ->required();
  command->footer(R"(
Runs `leat run local:ps=P,worker=W -- PROGRAM --strategy S ARGUMENTS…` for each strategy S. The program makes its strategy
from --strategy and trains with a TrainingSession, which records every step (LEAT_TRAINING_RECORD). The steps of a
strategy's programs count together; time begins with its first step. Meanwhile leat looks at the cluster as `leat top` does.

Results, in the folder of --out:
  compare.html         a page with the loss against time, samples and bytes, and the table
  compare.svg          the three charts as a picture
  compare.json         all figures and curves
  records/STRATEGY/    a file per program: a line per step
  logs/STRATEGY/       what the tasks and programs wrote

The columns of the table:
  steps, samples       of all programs together
  seconds              from the beginning of the first step to the end of the last
  bytes/sample         tensors that tasks sent each other since the first step, without what clients fetch
  final loss           the mean of the last 5 % of the steps
  s to loss …          seconds to the greatest of the final losses; all reach that one
  most waited for      a task, queue, clock or accumulator, and its share of all waits of steps that were seen

Examples:
  leat compare -- ./mnist --epochs 2
  leat compare --strategies all_reduce,local_sgd:steps=5 --workers 8 --ps 0 --out runs/1 -- ./mnist
  leat compare --slow worker:1=10 --strategies parameter_server,parameter_server:staleness=0:backup_workers=1 -- ./mnist

If a strategy fails, its last lines are shown and the others still run.

Exit status: 0; 1 if a strategy failed; 2 for a mistake in the command line; 126 or 127 if the program cannot be run or does
not exist; 128 + n after Ctrl-C or another signal n.)");
  command->callback([flags, &exit_status] {
    flags->strategies =
        flags->strategies.empty() ? usual_ones(flags->servers) : split(flags->strategies);
    check(!flags->directory.empty(), "--out needs the name of a folder");
    try {
      flags->program[0] = find_program(flags->program[0]);
    } catch (const Error& error) {
      std::cerr << "leat: " << error.message() << "\n";
      exit_status = error.code() == Code::not_found ? 127 : 126;
      return;
    }
    if (flags->title.empty())
      flags->title =
          std::filesystem::path(flags->program[0]).filename().string() + ": strategies compared";
    exit_status = Comparer(*flags).run();
  });
}

}  // namespace leat
