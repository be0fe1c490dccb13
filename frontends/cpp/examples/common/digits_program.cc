#include "frontends/cpp/examples/common/digits_program.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>

namespace leat::examples {
namespace {

void write_file(const std::string& path, const std::string& content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out)
    fail(Code::unknown, "cannot write ", path, ": check that its directory exists and is writable");
}

// Accuracy over all test examples, in batches.
double evaluate(Session& session, const Replica& replica, Output accuracy,
                const data::Labelled& test) {
  const Callable run = session.prepare({replica.images, replica.labels}, {accuracy});
  double hits = 0;
  for (int64_t at = 0; at < test.size(); at += 500) {
    const int64_t count = std::min<int64_t>(500, test.size() - at);
    const Tensor images(f32, {count, pixels}, test.images.buffer(),
                        static_cast<size_t>(at * pixels) * sizeof(float));
    const Tensor labels(i32, {count}, test.labels.buffer(),
                        static_cast<size_t>(at) * sizeof(int32_t));
    hits += run({images, labels})[0].item<float>() * static_cast<double>(count);
  }
  return hits / static_cast<double>(test.size());
}

}  // namespace

void write_artifacts(Session& session, const Flags& flags, const Feeds& feeds, Output loss,
                     const Node& train) {
  if (flags.graph.empty() && flags.trace.empty()) return;
  RunOptions options;
  options.trace = !flags.trace.empty();
  options.partition_graphs = !flags.graph.empty();
  RunMetadata metadata;
  session.run(feeds, std::vector<Output>{loss}, {train}, options, &metadata);
  if (!flags.graph.empty()) {
    Graph all;
    for (const std::string& partition : metadata.partition_graphs) from_graph_def(partition, all);
    write_file(flags.graph, to_graph_def(all));
    std::cout << "wrote the partitioned graph to " << flags.graph << std::endl;
  }
  if (!flags.trace.empty()) {
    write_file(flags.trace, to_chrome_trace(metadata.events));
    std::cout << "wrote a trace of one step to " << flags.trace << std::endl;
  }
}

Flags parse_flags(int argc, char** argv, const std::string& description, bool has_strategy) {
  Flags flags;
  CLI::App app{description};
  app.add_option("--data", flags.data,
                 "directory of MNIST idx files, plain or gzip (default: drawn digits)");
  app.add_option("--epochs", flags.epochs, "passes over the training data")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--batch", flags.batch, "examples per replica and step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--hidden", flags.hidden, "units of the hidden layer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--optimizer", flags.optimizer, "sgd, momentum or adam")
      ->check(CLI::IsMember({"sgd", "momentum", "adam"}))
      ->capture_default_str();
  app.add_option("--rate", flags.rate,
                 "learning rate (default: sgd 0.1, momentum 0.05, adam 0.001)")
      ->check(CLI::PositiveNumber);
  if (has_strategy) {
    app.add_option("--model", flags.model, "mlp: 784-hidden-10; cnn: two convolutions before that")
        ->check(CLI::IsMember({"mlp", "cnn"}))
        ->capture_default_str();
    app.add_option("--strategy", flags.strategy,
                   "how to train in parallel, NAME:option=value:option=value (see below)")
        ->capture_default_str();
    app.add_option("--recompute", flags.recompute,
                   "less memory, more work: what the backward part computes again. none; layers: "
                   "the inside of layers; auto: as saves most")
        ->check(CLI::IsMember({"none", "layers", "auto"}))
        ->capture_default_str();
    app.add_option(
           "--mixed-precision", flags.mixed_precision,
           "what products and convolutions compute in. bf16: bfloat16; f16: float16, and a "
           "scale for the loss; gpu_f16: float16 on GPUs alone; tf32: TensorFloat-32 on GPUs")
        ->check(CLI::IsMember({"none", "bf16", "f16", "gpu_f16", "tf32"}))
        ->capture_default_str();
    app.footer("Strategies and their options:\n" + strategies_help());
  }
  app.add_option("--graph", flags.graph,
                 "write the partitioned graph of a training step to this file (GraphDef)");
  app.add_option("--trace", flags.trace, "write a Chrome trace of one training step to this file");
  app.add_option("--directory", flags.directory,
                 "for checkpoints and summaries; a stopped training resumes from its checkpoint");
  app.add_option("--checkpoint-steps", flags.checkpoint_steps,
                 "steps between checkpoints (default: one every 10 minutes)")
      ->check(CLI::PositiveNumber)
      ->needs("--directory");
  app.add_option("--losses", flags.losses, "write step and loss of every step to this file");
  app.add_option("--seed", flags.seed, "seed of initial weights, drawn digits and batches; above 0")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  return flags;
}

data::Digits load(const Flags& flags) {
  return flags.data.empty() ? data::draw_digits(8000, 2000, flags.seed)
                            : data::load_mnist(flags.data);
}

namespace {

// In MNIST's format: http://yann.lecun.com/exdb/mnist.
void write_idx(const std::string& path, const std::vector<int64_t>& extents,
               const std::string& bytes) {
  std::string content = {0, 0, 8, static_cast<char>(extents.size())};
  for (const int64_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8)
      content += static_cast<char>((extent >> shift) & 0xff);
  }
  write_file(path, content + bytes);
}

void write_digits(const std::string& directory, const std::string& name,
                  const data::Labelled& digits) {
  std::string images, labels;
  for (const float pixel : digits.images.span<float>())
    images += static_cast<char>(std::lround(pixel * 255));
  for (const int32_t label : digits.labels.span<int32_t>()) labels += static_cast<char>(label);
  const int64_t side = 28;
  write_idx(directory + "/" + name + "-images-idx3-ubyte", {digits.size(), side, side}, images);
  write_idx(directory + "/" + name + "-labels-idx1-ubyte", {digits.size()}, labels);
}

}  // namespace

std::string digits_directory(const Flags& flags) {
  namespace fs = std::filesystem;
  if (!flags.data.empty()) return flags.data;
  const fs::path out =
      fs::temp_directory_path() / concat("leat_digits_", getuid(), "_", flags.seed);
  if (fs::exists(out)) return out;
  // Several programs may do this at the same time: the first one wins.
  const fs::path own = concat(out.string(), ".", getpid());
  fs::create_directories(own);
  const data::Digits digits = data::draw_digits(8000, 2000, flags.seed);
  write_digits(own, "train", digits.train);
  write_digits(own, "t10k", digits.test);
  std::error_code lost;
  fs::rename(own, out, lost);
  if (lost) fs::remove_all(own);
  return out;
}

WriteLosses::WriteLosses(const std::string& path, Output loss)
    : file_(path, std::ios::app), loss_(loss) {
  file_.precision(9);
}

void WriteLosses::after_step(TrainingSession& training, std::span<const Tensor> values) {
  file_ << training.global_step() << ' ' << values[0].item<float>() << std::endl;
}

std::unique_ptr<Optimizer> make_optimizer(const Flags& flags) {
  const auto rate = [&](double usual) { return flags.rate > 0 ? flags.rate : usual; };
  if (flags.optimizer == "sgd") return std::make_unique<Sgd>(rate(0.1));
  if (flags.optimizer == "momentum") return std::make_unique<Momentum>(rate(0.05));
  return std::make_unique<Adam>(rate(1e-3));
}

bool left_to_the_chief(const Cluster& cluster) {
  if (cluster.is_chief()) return false;
  std::cout << "the chief's program drives all workers; this program's task computes for it"
            << std::endl;
  return true;
}

nn::Dense make_hidden_layer(Graph& graph, const Flags& flags) {
  nn::DenseOptions options;
  options.activation = relu;
  options.kernel_initializer =
      initializers::glorot_uniform({.seed = static_cast<int64_t>(flags.seed)});
  options.name = "hidden";
  return {graph, pixels, flags.hidden, options};
}

nn::Dense make_logits_layer(Graph& graph, const Flags& flags) {
  nn::DenseOptions options;
  options.kernel_initializer =
      initializers::glorot_uniform({.seed = static_cast<int64_t>(flags.seed) + 1});
  options.name = "logits";
  return {graph, flags.hidden, 10, options};
}

Mlp::Mlp(Graph& graph, const Flags& flags)
    : hidden_(make_hidden_layer(graph, flags)), logits_(make_logits_layer(graph, flags)) {}

namespace {

constexpr int64_t side = 28, filters = 8;

nn::Conv2d make_convolution(Graph& graph, const Flags& flags, int number) {
  nn::Conv2dOptions options;
  options.activation = relu;
  options.kernel_initializer =
      initializers::glorot_uniform({.seed = static_cast<int64_t>(flags.seed) + 1 + number});
  options.name = concat("conv", number);
  return {graph, number == 1 ? 1 : filters, filters * number, 5, options};
}

nn::Dense make_hidden_layer_of_cnn(Graph& graph, const Flags& flags) {
  nn::DenseOptions options;
  options.activation = relu;
  options.kernel_initializer =
      initializers::glorot_uniform({.seed = static_cast<int64_t>(flags.seed)});
  options.name = "hidden";
  return {graph, side / 4 * (side / 4) * 2 * filters, flags.hidden, options};
}

}  // namespace

Cnn::Cnn(Graph& graph, const Flags& flags)
    : first_(make_convolution(graph, flags, 1)),
      second_(make_convolution(graph, flags, 2)),
      hidden_(make_hidden_layer_of_cnn(graph, flags)),
      logits_(make_logits_layer(graph, flags)) {}

Output Cnn::operator()(Output images) const {
  Output x = max_pool(first_(reshape(images, {-1, side, side, 1})));
  x = max_pool(second_(x));
  return logits_(hidden_(nn::flatten(x)));
}

std::function<Output(Output)> make_model(Graph& graph, const Flags& flags) {
  if (flags.model == "cnn") return Cnn(graph, flags);
  return Mlp(graph, flags);
}

Replica make_replica(Graph& graph, const std::function<Output(Output)>& model, int index) {
  const NameScope scope(graph, concat("replica_", index));
  Replica out;
  out.images = placeholder(graph, "images", f32, {any, pixels});
  out.labels = placeholder(graph, "labels", i32, {any});
  out.logits = model(out.images);
  out.loss = mean(nn::softmax_cross_entropy(out.logits, out.labels));
  return out;
}

void train(const Flags& flags, const Cluster& cluster, Program& program) {
  const data::Digits digits = load(flags);
  const bool is_chief = cluster.is_chief();
  const int fed = static_cast<int>(program.replicas.size());
  const Replica& first = program.replicas[0];
  const Output accuracy = nn::accuracy(first.logits, first.labels),
               summary = scalar_summary("loss", first.loss);

  // Each replica reads its own share of the examples.
  std::vector<data::Batches> shares;
  std::vector<Output> inputs;
  for (int k = 0; k < fed; ++k) {
    const int share = program.shard * fed + k;
    shares.emplace_back(digits.train, flags.batch, flags.seed + static_cast<uint64_t>(share), share,
                        program.shards * fed);
    inputs.insert(inputs.end(), {program.replicas[k].images, program.replicas[k].labels});
  }
  const int64_t steps = flags.epochs * shares[0].per_epoch() * program.shards;
  TrainingSession loop(program.graph, {.train = program.train,
                                       .global_step = program.global_step,
                                       .inputs = inputs,
                                       .fetches = {first.loss},
                                       .session = {.target = cluster.target()},
                                       .is_chief = is_chief,
                                       .directory = flags.directory,
                                       .checkpoint_steps = flags.checkpoint_steps});
  loop.add(std::make_unique<StopAtStep>(steps));
  loop.add(std::make_unique<ShowProgress>(first.loss, steps, flags.batch * fed));
  if (!flags.directory.empty() && is_chief)
    loop.add(std::make_unique<WriteSummaries>(flags.directory, std::vector<Output>{summary}));
  std::ofstream losses;
  if (!flags.losses.empty()) losses.open(flags.losses, std::ios::app);
  losses.precision(9);

  std::vector<Tensor> feeds;
  // A program that trains alone, or for all, feeds by the global step, so it resumes exactly where
  // a checkpoint was made.
  for (int64_t own = 0; !loop.should_stop(); ++own) {
    feeds.clear();
    for (data::Batches& share : shares) {
      share.seek(program.shards == 1 ? loop.global_step() : own);
      data::Labelled batch = share.next();
      feeds.insert(feeds.end(), {std::move(batch.images), std::move(batch.labels)});
    }
    const auto fetched = loop.step(feeds);
    if (fetched) losses << loop.global_step() << ' ' << (*fetched)[0].item<float>() << std::endl;
  }
  if (is_chief) {
    std::cout << "test accuracy " << 100 * evaluate(loop.session(), first, accuracy, digits.test)
              << " % of " << digits.test.size() << " digits" << std::endl;
    Feeds last;
    for (size_t i = 0; i < feeds.size(); ++i) last.push_back({inputs[i], feeds[i]});
    write_artifacts(loop.session(), flags, last, first.loss, *program.train);
  }
  loop.close();
}

int guarded(const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const Error& error) {
    std::cerr << error.status().to_string() << std::endl;
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << std::endl;
    return 1;
  }
}

}  // namespace leat::examples
