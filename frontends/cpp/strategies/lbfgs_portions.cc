// The coordinator of lbfgs.h that hands out portions of the data.
#include <limits>
#include <optional>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/state/accumulator.h"
#include "frontends/cpp/state/queue.h"
#include "frontends/cpp/strategies/lbfgs_rule.h"

namespace leat {
namespace {

// Beside global_step, whose value numbers the evaluations.
struct Coordination {
  Coordination(Graph& graph, int64_t portions, int64_t backups, Location at)
      : portions(portions),
        backups(backups),
        tickets(graph, "tickets", {i64, i64}, {.shapes = {{}, {}}}, at),
        answers(graph, "answers", {i64}, {.shapes = {{}}}, at),
        answered(graph, "answered", {i64}, {.shapes = {{portions}}}, at) {}

  // Tickets for the evaluation of that number.
  Node& hand_out(const Output& evaluation, Location at) const {
    Tensor all(i64, {portions + backups});
    for (int64_t i = 0; i < portions; ++i) all.data<int64_t>()[i] = i;
    for (int64_t i = 0; i < backups; ++i)
      all.data<int64_t>()[portions + i] = portions - backups + i;
    Graph& graph = evaluation.graph();
    return tickets.enqueue_many(
        {full(graph, {portions + backups}, evaluation, at), constant(graph, all)}, at);
  }

  // The first tickets of a session.
  Output open(const Output& global_step, Location at) const {
    Graph& graph = global_step.graph();
    const ColocationScope with(graph, {global_step});
    const Output none = full(graph, {portions}, constant(graph, int64_t{-1}), at);
    const ControlScope after(graph, {answered.enqueue({none}, at)});
    return hand_out(read_variable(global_step, at), at).output();
  }

  // When `before` is done, the next ticket of a portion that has not been answered: the evaluation,
  // and the portion.
  std::tuple<Output, Output> next_ticket(const std::vector<Output>& before, Location at) const {
    Graph& graph = tickets.handle().graph();
    const Output none = [&] {
      const ControlScope after(graph, before);
      return constant(graph, int64_t{0});
    }();
    const auto [evaluation, portion, is_over] =
        while_loop([](Output, Output, Output is_over) { return is_over; },
                   [&](Output, Output, Output) {
                     const std::vector<Output> ticket = tickets.dequeue(at);
                     const ControlScope after(graph, {ticket[0]});
                     const Output last = answered.dequeue(at)[0];
                     const ControlScope given_back(graph, {answered.enqueue({last}, at)});
                     return std::tuple{identity(ticket[0], at), identity(ticket[1], at),
                                       take(last, ticket[1]) >= ticket[0]};
                   },
                   std::tuple{none, none, none == 0});
    return {evaluation, portion};
  }

  // Whether this is the first answer for the portion of that evaluation. Only one step at a time
  // has the element of `answered`, the last evaluation for which each portion has been answered.
  Output accept(const Output& evaluation, const Output& portion, Location at) const {
    Graph& graph = evaluation.graph();
    const Output last = answered.dequeue(at)[0];
    const Output is_first = take(last, portion) < evaluation;
    const Output is_it = arange(graph, portions, i64, at) == portion;
    const Output next = where(is_it & is_first, evaluation, last);
    const ControlScope after(graph, {answered.enqueue({next}, at)});
    return identity(is_first, at);
  }

  int64_t portions, backups;
  Queue tickets;   // evaluation and portion
  Queue answers;   // a portion for each first answer
  Queue answered;  // by portion the last evaluation; one element
};

// What a worker keeps between the batches of a portion.
struct Progress {
  Progress(Graph& graph, Location at) {
    const auto number = [&](const char* name) {
      return variable(graph, name, {}, i64, {.trainable = false}, at);
    };
    evaluation = number("evaluation");
    portion = number("portion");
    left = number("batches_left");
  }
  // Nodes that keep the three after `kept`, to which they are added.
  void keep(const std::tuple<Output, Output, Output>& next, std::vector<Output>& kept,
            Location at) const {
    const auto& [its_evaluation, its_portion, its_left] = next;
    const ColocationScope with(left.graph(), {left});
    const ControlScope after(left.graph(), kept);
    kept.push_back(assign(evaluation, its_evaluation, at));
    kept.push_back(assign(portion, its_portion, at));
    kept.push_back(assign(left, its_left, at));
  }

  Output evaluation, portion, left;
};

// A batch of that portion. Each portion has a reader of its own, which is at the portion's begin
// whenever a portion begins: data repeats, and a portion is read to its end.
Batch batch_of(const Dataset& data, const Output& portion, int64_t portions, Location at) {
  std::vector<std::string> names;
  const std::function<std::vector<Output>(int64_t)> read = [&](int64_t p) {
    const auto own = [&] {
      const Batch batch = data.share(portions, p, at).next(portion.graph(), at);
      names = batch.names();
      return batch.components();
    };
    if (p == portions - 1) return own();
    return cond(
        portion == p, own, [&] { return read(p + 1); }, {}, at);
  };
  std::vector<Output> components = read(0);
  return {std::move(components), std::move(names)};
}

}  // namespace

Training Lbfgs::with_portions(Training training, const Optimizer& optimizer, const Dataset& data,
                              const ModelFunction& model, Location at) const {
  Graph& graph = *training.graph;
  const size_t before = trainable_variables(graph).size();
  const auto servers = replicas().on_servers(graph, 0);
  training.global_step = global_step(graph, at);
  const Coordination work = [&] {
    const ColocationScope with(graph, {training.global_step});
    const NameScope scope(graph, "portions");
    return Coordination(graph, options_.portions, options_.backups, at);
  }();
  std::vector<Output> trainable;
  std::vector<std::optional<Accumulator>> sums;  // by trainable variable
  std::optional<Accumulator> loss_sum;
  std::vector<Output> begun;
  lbfgs::Evaluation evaluated{.dtype = f32};

  for (int k = 0; k < replicas().count(); ++k) {
    const Progress progress = [&] {
      const auto own = replicas().copy(graph, k, /*own_state=*/true);
      const NameScope absolute(graph, replicas().prefix(k));
      return Progress(graph, at);
    }();
    const auto there = replicas().first_or_sharing(graph, k);
    // The ticket was taken before this step, whose first act may be to read the variables.
    const Output evaluation = read_variable(progress.evaluation, at),
                 portion = read_variable(progress.portion, at),
                 left_before = read_variable(progress.left, at);
    const Output is_begin = left_before == options_.batches;
    const Losses built = build(model, batch_of(data, portion, options_.portions, at), at);
    if (k == 0) {
      const std::vector<Output> all = trainable_variables(graph);
      trainable.assign(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
      check(!trainable.empty(), "the model function (", at, ") makes no trainable variable");
      evaluated.dtype = built.loss.dtype();
      sums.resize(trainable.size());
      const ColocationScope with(graph, {training.global_step});
      loss_sum.emplace(graph, "loss_of_portions", f64, Shape{},
                       AccumulatorOptions{.result = AccumulatorResult::sum}, at);
    }
    const Output loss = reshape(built.loss, {});
    const auto of_batch = optimizer.compute_gradients(loss, trainable);
    const auto own = replicas().copy(graph, k, /*own_state=*/true);
    const NameScope absolute(graph, replicas().prefix(k));
    std::vector<Output> totals, kept;
    const auto add_up = [&](const std::string& name, const Output& value, const Shape& shape) {
      const Output sum = variable(graph, name, shape, value.dtype(), {.trainable = false}, at);
      const Output old = read_variable(sum, at);
      totals.push_back(where(is_begin, zeros_like(old), old) + value);
      kept.push_back(assign(sum, totals.back(), at));
    };
    add_up("loss_of_batches", cast(loss, f64), {});
    std::vector<const Accumulator*> into = {&*loss_sum};
    for (size_t i = 0; i < trainable.size(); ++i) {
      if (!of_batch[i].gradient) continue;
      if (!sums[i]) {
        const ColocationScope with(graph, {trainable[i]});
        sums[i].emplace(graph, concat(variable_name(trainable[i]), "/gradient_of_portions"),
                        trainable[i].dtype(), trainable[i].shape(),
                        AccumulatorOptions{.result = AccumulatorResult::sum}, at);
      }
      add_up(concat(variable_name(trainable[i]), "/gradient_of_batches"),
             lbfgs::dense_gradient(of_batch[i], at), trainable[i].shape());
      into.push_back(&*sums[i]);
    }
    const Output left = left_before - 1;
    const Output is_complete = [&] {
      const ControlScope after(graph, totals);
      return identity(left == 0, at);
    }();
    const auto push = [&] {
      const ColocationScope with(graph, {training.global_step});
      const Output pushed = cond(
          work.accept(evaluation, portion, at),
          [&] {
            std::vector<Output> applied;
            for (size_t i = 0; i < into.size(); ++i) {
              const ColocationScope beside(graph, {into[i]->handle()});
              applied.push_back(
                  into[i]->apply(totals[i], std::numeric_limits<int64_t>::max(), at).output());
            }
            const ControlScope after(graph, applied);
            const ControlScope answer(graph, {work.answers.enqueue({portion}, at)});
            return constant(graph, true);
          },
          [&] { return constant(graph, false); }, {}, at);
      const auto [next_evaluation, next_portion] = work.next_ticket({pushed}, at);
      return std::tuple{next_evaluation, next_portion, constant(graph, options_.batches)};
    };
    const auto next = cond(
        is_complete, push,
        [&] {
          return std::tuple{evaluation, portion, left};
        },
        {}, at);
    progress.keep({next[0], next[1], next[2]}, kept, at);
    if (k == 0) begun.push_back(work.open(training.global_step, at));
    {
      const auto [first_evaluation, first_portion] = [&] {
        const ColocationScope with(graph, {training.global_step});
        return work.next_ticket({begun.front()}, at);
      }();
      progress.keep({first_evaluation, first_portion, constant(graph, options_.batches)}, begun,
                    at);
    }
    training.lanes.emplace_back(group(graph, kept, "lane", at));
  }

  const NameScope scope(graph, "evaluate");
  const ColocationScope with(graph, {training.global_step});
  const Output all_answered = work.answers.dequeue_many(options_.portions, at)[0];
  const double batches = static_cast<double>(options_.portions * options_.batches);
  {
    const ControlScope after(graph, {all_answered});
    evaluated.loss = loss_sum->take(options_.portions, at) * (1 / batches);
    for (size_t i = 0; i < trainable.size(); ++i) {
      if (!sums[i]) continue;
      const ColocationScope beside(graph, {trainable[i]});
      evaluated.gradients.push_back(
          {trainable[i], sums[i]->take(options_.portions, at) * (1 / batches)});
    }
  }
  const std::vector<Output> updates = lbfgs::accepted_or_not(training, evaluated, options_, {}, at);
  {
    const ControlScope after(graph, updates);
    training.step = &work.hand_out(read_variable(training.global_step, at), at);
  }
  training.begin = group(graph, begun, "begin", at);
  const CloseOptions now{.cancel_pending = true};
  training.stop_lanes =
      group(graph, std::vector<Node*>{&work.tickets.close(now, at), &work.answers.close(now, at)},
            "stop", at);
  training.loss = cast(evaluated.loss, f32);
  training.batches_per_step = options_.portions * options_.batches;
  training.replicas = 1;
  return training;
}

}  // namespace leat
