#include "frontends/cpp/strategies/backup_workers.h"

#include <limits>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/state/accumulator.h"
#include "frontends/cpp/state/queue.h"
#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {
namespace {

// Where the gradients of a step meet, and what lets them in.
struct Round {
  std::vector<Accumulator> sums;  // by variable, where it is
  Queue tickets, tokens;          // of the step that is open; of those let in, when it is done
};

Queue queue_of_steps(Graph& graph, const char* name, Location at) {
  return {graph, name, {i64}, {.shapes = {{}}, .shared_name = concat("leat_round/", name)}, at};
}

Round make_round(Graph& graph, const Output& step,
                 const std::vector<GradientAndVariable>& gradients, Location at) {
  std::vector<Accumulator> sums;
  for (const GradientAndVariable& each : gradients) {
    const ColocationScope with(graph, {each.variable});
    const std::string& name = variable_name(each.variable);
    sums.emplace_back(graph, "sum", each.variable.dtype(), each.variable.shape(),
                      AccumulatorOptions{.shared_name = concat("leat_round/", name)}, at);
  }
  const ColocationScope with(graph, {step});
  return {std::move(sums), queue_of_steps(graph, "tickets", at),
          queue_of_steps(graph, "tokens", at)};
}

// A token of a later step than the ticket. A fast worker may be here for the second time before a
// slow one has asked for its token, which it must leave to that one.
Output next_token(const Round& round, const Output& ticket, Location at) {
  return while_loop([&](Output token) { return token <= ticket; },
                    [&](Output token) {
                      const ControlScope after(ticket.graph(), {round.tokens.enqueue({token}, at)});
                      return round.tokens.dequeue(at)[0];
                    },
                    round.tokens.dequeue(at)[0]);
}

Output copies_of_step(const Output& step, int64_t n, Location at) {
  return full(step.graph(), {n}, step, at);
}

// Empties what another run of the chief's program has left, and opens the first step.
Node& open(Graph& graph, const Round& round, const Output& step, int64_t n, Location at) {
  std::vector<Output> emptied;
  for (const Accumulator& sum_of_all : round.sums) {
    const ColocationScope with(graph, {sum_of_all.handle()});
    const Output count = sum_of_all.count(at);
    emptied.push_back(cond(
        count > 0, [&] { return cast(sum(sum_of_all.take(count, at)), f32); },
        [&] { return constant(graph, 0.0F); }));
  }
  const ColocationScope with(graph, {step});
  for (const Queue* queue : {&round.tickets, &round.tokens})
    emptied.push_back(queue->dequeue_many(queue->size(at), at)[0]);
  const ControlScope after(graph, emptied);
  return round.tickets.enqueue_many({copies_of_step(read_variable(step, at), n, at)}, at);
}

}  // namespace

BackupWorkers::BackupWorkers(const StrategyCluster& cluster, Options options)
    : Strategy(Replicas(cluster, {.servers = options.ps_job,
                                  .workers = options.worker_job,
                                  .sharding = options.sharding})),
      options_(std::move(options)) {
  if (replicas().count() == 1) options_.backup_workers = 0;  // the same program, alone
  check(options_.backup_workers >= 0 && options_.backup_workers < replicas().count(),
        "backup_workers is ", options_.backup_workers, ", but there are only ", replicas().count(),
        " workers: a step must wait for at least one");
}

Training BackupWorkers::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                                 const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const CopiedModel copied(*this, training, data, model, at);
  const int own = replicas().own();
  const int64_t n = replicas().count() - options_.backup_workers;
  const Output step = copied.step(), own_step = copied.own_step(at);
  set_shown(training, {copied.losses()});
  training.replicas = static_cast<int>(n);
  std::vector<GradientAndVariable> gradients;
  const std::vector<GradientAndVariable> of_copies =
      optimizer.compute_gradients(copied.losses().loss, copied.trainable_copies());
  for (size_t i = 0; i < of_copies.size(); ++i) {
    if (of_copies[i].gradient)
      gradients.push_back({densify(of_copies[i], at).gradient, copied.trainable()[i]});
  }
  check(!gradients.empty(), "the loss of the model function (", at,
        ") does not depend on a trainable variable");

  const auto servers = replicas().on_servers(graph, own);
  const Output dropped = [&] {
    const ColocationScope with(graph, {step});
    return variable(graph, "dropped_gradients", {}, i64, {.trainable = false}, at);
  }();
  const NameScope scope(graph, "round");
  const Round round = make_round(graph, step, gradients, at);

  // The worker's part. It takes a ticket when its gradient is there.
  std::vector<Output> computed;
  for (const GradientAndVariable& each : gradients) computed.push_back(each.gradient);
  const Output ticket = [&] {
    const ColocationScope with(graph, {step});
    const ControlScope after(graph, computed);
    return round.tickets.dequeue(at)[0];
  }();
  constexpr int64_t never_late = std::numeric_limits<int64_t>::max();  // the tickets decide
  const Output done = cond(
      ticket == read_variable(own_step, at),
      [&] {
        std::vector<Output> pushed;
        for (size_t i = 0; i < gradients.size(); ++i) {
          const ColocationScope with(graph, {round.sums[i].handle()});
          pushed.push_back(round.sums[i].apply(gradients[i].gradient, never_late, at).output());
        }
        const ColocationScope with(graph, {step});
        const ControlScope after(graph, pushed);
        return next_token(round, ticket, at);
      },
      [&] {
        const ColocationScope with(graph, {step});
        const ControlScope after(
            graph, {round.tickets.enqueue({ticket}, at).output(), assign_add(dropped, 1, at)});
        return identity(ticket);
      });
  const Output now = [&] {  // before the variables: they may be newer, not older
    const ColocationScope with(graph, {step});
    const ControlScope after(graph, {done});
    return read_variable(step, at);
  }();
  std::vector<Output> last = copied.push_state({done}, at);
  last.push_back(copied.fetch({now}, at).output());
  last.push_back([&] {
    const ColocationScope with(graph, {own_step});
    return assign(own_step, now, at);
  }());
  training.step = &group(graph, last, "update", at);
  training.global_step = own_step;
  if (!training.is_chief) return training;

  // The chief's part.
  training.begin = open(graph, round, step, n, at);
  std::vector<GradientAndVariable> means;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const ColocationScope with(graph, {gradients[i].variable});
    means.push_back({round.sums[i].take(n, at), gradients[i].variable});
  }
  Node& update = optimizer.apply_gradients(means, {.global_step = step}, at);
  const ColocationScope with(graph, {step});
  const ControlScope after(graph, {update});
  const Output next = copies_of_step(read_variable(step, at), n, at);
  training.background = group(graph,
                              {round.tickets.enqueue_many({next}, at).output(),
                               round.tokens.enqueue_many({next}, at).output()},
                              "next_round", at);
  return training;
}

}  // namespace leat
