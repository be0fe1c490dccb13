// An MNIST perceptron whose updates are counted, for tools/load/run.py: on every ps task a variable
// counts each worker's updates, in the step that makes them and after them. A log records every
// answered step, every checkpoint and every recovery with the counts they saw, so that checks.py
// can detect updates that were lost or made twice.
//   --mode async: every worker's program trains. sync: the chief's program drives all workers.
#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>

#include "frontends/cpp/data/data.h"
#include "frontends/cpp/nn/nn.h"
#include "frontends/cpp/strategies/parameter_server.h"
#include "frontends/cpp/training/training_hooks.h"
#include "frontends/cpp/training/training_session.h"
#include "graph/formats/checkpoint.h"
#include "graph/formats/checkpoint_state.h"

namespace {

using namespace leat;

constexpr int64_t pixels = 28 * 28;

struct Flags {
  std::string mode = "async";
  std::string directory, log;
  int64_t steps = 20'000, checkpoint_steps = 500, batch = 50, hidden = 128;
  double pause = 0;
};

// Seconds, the same clock in all processes of the machine.
double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string list(const std::vector<Tensor>& rows) {
  std::string out;
  for (const Tensor& row : rows) {
    std::string numbers;
    for (const int64_t value : row.span<const int64_t>())
      numbers += concat(numbers.empty() ? "" : ", ", value);
    out += concat(out.empty() ? "[" : ", [", numbers, "]");
  }
  return concat("[", out, "]");
}

// One JSON object a line. A line is written at once: a killed process leaves no half of one.
class Log {
 public:
  Log(const std::string& path, int worker) : file_(path, std::ios::app), worker_(worker) {
    check(file_.good(), "cannot write ", path);
  }
  // Something that lasted from `begin` until now.
  template <class... Parts>
  void write(std::string_view event, double begin, const Parts&... parts) {
    std::ostringstream line;
    line.precision(15);
    line << R"({"event": ")" << event << R"(", "worker": )" << worker_ << R"(, "begin": )" << begin
         << R"(, "end": )" << now();
    (line << ... << parts) << "}\n";
    file_ << line.str() << std::flush;
  }

 private:
  std::ofstream file_;
  const int worker_;
};

// What the program builds.
struct Model {
  std::vector<Output> inputs;
  Output loss, global_step;
  std::vector<Output> counts;  // of each ps task, as they are after this program's update
  Node* train = nullptr;
};

// Counts the updates of `workers`: an int64 [all workers] on every ps task.
std::vector<Output> count_updates(Graph& graph, const ParameterServer& strategy,
                                  const ClusterSpec& cluster, const std::vector<int>& workers,
                                  Node& train) {
  std::vector<Output> out;
  for (const auto& [index, address] : cluster.jobs().at("ps")) {
    const DeviceScope on_ps(graph, concat("/job:ps/task:", index));
    VariableOptions options;
    options.trainable = false;
    const Output count = variable(graph, concat("updates_", index), {strategy.workers()},
                                  initializers::zeros(), i64, options);
    const ControlScope after_update(graph, {&train});
    std::vector<Output> added;
    for (const int worker : workers) {
      const DeviceScope on_worker(graph, concat("/job:worker/task:", worker));
      Tensor one(i64, {strategy.workers()});
      for (int w = 0; w < strategy.workers(); ++w) one.span<int64_t>()[w] = w == worker ? 1 : 0;
      const Output sent = constant(graph, one, concat("one_of_", worker));
      const ColocationScope with(graph, {count});
      added.push_back(assign_add(count, sent));
    }
    const ColocationScope with(graph, {count});
    std::vector<Node*> updates;
    for (const Output& update : added) updates.push_back(update.node);
    const ControlScope after_all(graph, updates);
    out.push_back(identity(count));
  }
  return out;
}

Model build(Graph& graph, const Flags& flags, const ParameterServer& strategy,
            const ClusterSpec& cluster, const std::vector<int>& workers) {
  Model out;
  const auto on_worker = strategy.replica(graph, workers.front());
  VariableOptions step_options;
  step_options.trainable = false;
  out.global_step = variable(graph, "global_step", {}, initializers::zeros(), i64, step_options);
  nn::DenseOptions hidden_options, logits_options;
  hidden_options.activation = relu;
  hidden_options.kernel_initializer = initializers::glorot_uniform({.seed = 1});
  logits_options.kernel_initializer = initializers::glorot_uniform({.seed = 2});
  hidden_options.name = "hidden";
  logits_options.name = "logits";
  const nn::Dense hidden(graph, pixels, flags.hidden, hidden_options);
  const nn::Dense logits(graph, flags.hidden, 10, logits_options);
  std::vector<Output> losses;
  for (const int worker : workers) {
    const auto there = strategy.replica(graph, worker);
    const NameScope scope(graph, concat("replica_", worker));
    const Output images = placeholder(graph, "images", f32, {any, pixels});
    const Output labels = placeholder(graph, "labels", i32, {any});
    losses.push_back(mean(nn::softmax_cross_entropy(logits(hidden(images)), labels)));
    out.inputs.insert(out.inputs.end(), {images, labels});
  }
  out.loss = losses.front();
  out.train = workers.size() == 1
                  ? &strategy.minimize(Adam{1e-3}, losses.front(), {.global_step = out.global_step})
                  : &strategy.minimize(Adam{1e-3}, losses, {.global_step = out.global_step});
  out.counts = count_updates(graph, strategy, cluster, workers, *out.train);
  return out;
}

// What the last checkpoint of the directory holds.
std::string last_checkpoint(const Flags& flags, size_t ps_tasks) {
  const std::string prefix = CheckpointState::read(flags.directory).model_checkpoint_path;
  check(!prefix.empty(), "there is no checkpoint in ", flags.directory);
  const CheckpointReader reader(prefix);
  std::vector<Tensor> counts;
  for (size_t p = 0; p < ps_tasks; ++p) counts.push_back(reader.read(concat("updates_", p)));
  return concat(R"(, "checkpoint": ")", prefix, R"(", "step": )",
                reader.read("global_step").item<int64_t>(), R"(, "counts": )", list(counts));
}

void run(const Flags& flags) {
  const auto resolved = cluster_from_environment();
  check(resolved && resolved->task, "tools/load/run.py starts this: TF_CONFIG is not set");
  const ParameterServer strategy(resolved->spec);
  std::vector<int> workers = {resolved->task->index};
  if (flags.mode == "sync") {
    check(resolved->is_chief(), "only the chief's program trains synchronously");
    for (int w = 1; w < strategy.workers(); ++w) workers.push_back(w);
  }
  Graph graph;
  const Model model = build(graph, flags, strategy, resolved->spec, workers);
  const data::Digits digits = data::draw_digits(1500, 1);
  std::vector<data::Batches> shares;
  for (const int worker : workers)
    shares.emplace_back(digits.train, flags.batch, 1, worker, strategy.workers());

  Log log(flags.log, resolved->task->index);
  double begin = now();
  log.write("start", begin);
  std::vector<Output> fetches = {model.loss};
  fetches.insert(fetches.end(), model.counts.begin(), model.counts.end());
  SessionOptions session;
  session.target = "grpc://" + resolved->spec.address(*resolved->task);
  TrainingSession loop(graph, {.train = model.train,
                               .global_step = model.global_step,
                               .inputs = model.inputs,
                               .fetches = fetches,
                               .session = session,
                               .is_chief = resolved->is_chief(),
                               .directory = flags.directory,
                               .checkpoint_steps = flags.checkpoint_steps});
  loop.add(std::make_unique<StopAtStep>(flags.steps));
  const size_t ps_tasks = model.counts.size();
  std::string saved;
  const auto note_recovery = [&] {
    if (!resolved->is_chief()) return log.write("ready", begin);
    saved = CheckpointState::read(flags.directory).model_checkpoint_path;
    log.write("restored", begin, last_checkpoint(flags, ps_tasks));
  };
  note_recovery();
  std::vector<Tensor> feeds;
  for (int64_t own = 0; !loop.should_stop(); ++own) {
    feeds.clear();
    for (data::Batches& share : shares) {
      share.seek(flags.mode == "sync" ? loop.global_step() : own);
      data::Labelled batch = share.next();
      feeds.insert(feeds.end(), {std::move(batch.images), std::move(batch.labels)});
    }
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(flags.pause));
    begin = now();
    const auto fetched = loop.step(feeds);
    if (!fetched && !loop.should_stop()) {
      log.write("failed", begin);
      note_recovery();
    }
    if (!fetched) continue;
    log.write("step", begin, R"(, "step": )", loop.global_step(), R"(, "loss": )",
              (*fetched)[0].item<float>(), R"(, "counts": )",
              list({fetched->begin() + 1, fetched->end()}));
    if (!resolved->is_chief()) continue;
    const std::string newest = CheckpointState::read(flags.directory).model_checkpoint_path;
    if (newest == saved) continue;
    saved = newest;
    log.write("saved", begin, last_checkpoint(flags, ps_tasks));
  }
  loop.close();
  log.write("end", now());
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"Counts the updates of a training; tools/load/run.py starts it."};
  app.add_option("--mode", flags.mode)
      ->check(CLI::IsMember({"async", "sync"}))
      ->capture_default_str();
  app.add_option("--directory", flags.directory, "checkpoints")->required();
  app.add_option("--log", flags.log, "appended to")->required();
  app.add_option("--steps", flags.steps, "the global step to end at")->capture_default_str();
  app.add_option("--checkpoint-steps", flags.checkpoint_steps)->capture_default_str();
  app.add_option("--batch", flags.batch, "examples per worker and step")->capture_default_str();
  app.add_option("--hidden", flags.hidden, "units of the hidden layer")->capture_default_str();
  app.add_option("--pause", flags.pause, "milliseconds of rest before a step")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    run(flags);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 1;
  }
}
