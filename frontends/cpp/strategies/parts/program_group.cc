#include "frontends/cpp/strategies/parts/program_group.h"

#include <optional>
#include <utility>

#include "frontends/cpp/outside_control_scopes.h"
#include "frontends/cpp/strategies/parts/reduction.h"
#include "frontends/cpp/variables.h"

namespace leat::collectives {

ProgramGroup::ProgramGroup(Graph& graph, const Replicas& replicas, std::string_view name,
                           Location at)
    : graph_(graph),
      replicas_(replicas),
      name_(name),
      mailboxes_(static_cast<size_t>(replicas.count())) {
  check(!name.empty(), "ProgramGroup (", at, ") needs a name, the same in all programs");
  replicas_.own();
}

std::vector<int> ProgramGroup::others() const {
  std::vector<int> out;
  for (int k = 0; k < replicas_.count(); ++k) {
    if (k != replicas_.own()) out.push_back(k);
  }
  return out;
}

Output ProgramGroup::mailbox(int k, Location at) {
  Output& out = mailboxes_[static_cast<size_t>(k)];
  if (out) return out;
  const auto there = replicas_.on_worker(graph_, k);
  const OutsideControlScopes outside(graph_);
  out = graph_
            .add({.op = "Mailbox",
                  .name = concat(name_, "/mailbox_", k),
                  .attrs = {{"members", int64_t{replicas_.count()}},
                            {"container", std::string()},
                            {"shared_name", name_}},
                  .location = at})
            .output();
  return out;
}

void ProgramGroup::post(int to, const std::string& slot, Output step, Output value, Location at) {
  const Output box = mailbox(to, at);
  const auto there = replicas_.on_worker(graph_, to);
  const Output rank = constant(graph_, int32_t{replicas_.own()});
  sent_.push_back(graph_
                      .add({.op = "MailboxPost",
                            .name = concat(name_, "/post_", slot),
                            .inputs = {box, rank, step, value},
                            .attrs = {{"slot", slot}},
                            .location = at})
                      .output());
}

std::vector<Output> ProgramGroup::take(const std::vector<int>& from, const std::string& slot,
                                       Output step, DType dtype, const Shape& shape, Location at) {
  const Output box = mailbox(replicas_.own(), at);
  const auto here = replicas_.on_worker(graph_, replicas_.own());
  Node& node = graph_.add({.op = "MailboxTake",
                           .name = concat(name_, "/take_", slot),
                           .inputs = {box, step},
                           .attrs = {{"T", dtype},
                                     {"N", static_cast<int64_t>(from.size())},
                                     {"slot", slot},
                                     {"ranks", std::vector<int64_t>(from.begin(), from.end())},
                                     {"shape", shape}},
                           .location = at});
  std::vector<Output> out;
  for (size_t i = 0; i < from.size(); ++i) out.push_back(node.output(static_cast<int>(i)));
  return out;
}

Output ProgramGroup::direct(Output flat, const std::string& slot, Output step, Reduction reduction,
                            Location at) {
  for (const int k : others()) post(k, slot, step, flat, at);
  std::vector<Output> values = take(others(), slot, step, flat.dtype(), flat.shape(), at);
  values.insert(values.begin() + replicas_.own(), flat);
  return reduced(values, reduction);
}

Output ProgramGroup::chunked(Output flat, const std::string& slot, Output step, Reduction reduction,
                             Location at) {
  const int64_t n = replicas_.count(), rows = flat.shape().elements();
  const std::vector<int64_t> sizes = even_parts(rows, n);
  const std::vector<Output> chunks = split(flat, sizes, 0);
  const auto own = static_cast<size_t>(replicas_.own());
  const std::string parts = slot + "_part", sums = slot + "_sum";
  for (const int k : others()) post(k, parts, step, chunks[static_cast<size_t>(k)], at);
  std::vector<Output> values = take(others(), parts, step, flat.dtype(), chunks[own].shape(), at);
  values.insert(values.begin() + replicas_.own(), chunks[own]);
  const Output sum = reduced(values, reduction);
  std::vector<Output> all;
  for (int k = 0; k < replicas_.count(); ++k) {
    if (k == replicas_.own()) {
      all.push_back(sum);
      continue;
    }
    post(k, sums, step, sum, at);
    all.push_back(take({k}, sums, step, flat.dtype(), {sizes[static_cast<size_t>(k)]}, at).front());
  }
  return concatenate(all, 0);
}

ProgramGroup::Library ProgramGroup::begin_library(Output first_value, Output step, Location at) {
  Library out;
  const std::string number = std::to_string(exchanges_);
  out.programs.name = concat(name_, "/exchange_", number);
  for (int k = 0; k < replicas_.count(); ++k)
    out.programs.tasks.push_back(replicas_.worker(k).task_string());
  const std::vector<Output> sent_before = std::exchange(sent_, {});
  Output word;
  {
    // A program that fails before it has a value takes no part.
    const ControlScope after(graph_, {first_value});
    word = replicas_.own() == 0 ? collective_ticket(graph_, out.programs.name, at)
                                : constant(graph_, std::string("here"));
  }
  for (const int k : others()) post(k, "begin_" + number, step, word, at);
  const std::vector<Output> words = take(others(), "begin_" + number, step, str, {}, at);
  if (replicas_.own() != 0) out.ticket = words.front();
  out.awaited = std::exchange(sent_, sent_before);
  out.awaited.push_back(words.front());
  return out;
}

void ProgramGroup::end_library(Library& library, const std::vector<Output>& results, Output step,
                               Location at) {
  const std::string slot = concat("end_", exchanges_);
  const std::vector<Output> by_messages = std::exchange(sent_, {});
  {
    const ControlScope after(graph_, results);
    const Output word = constant(graph_, std::string("done"));
    for (const int k : others()) post(k, slot, step, word, at);
  }
  library.awaited.insert(library.awaited.end(), sent_.begin(), sent_.end());
  // A member that fails before its sums are there ends the waits of the others.
  library.awaited.push_back(take(others(), slot, step, str, {}, at).front());
  sent_.clear();
  for (const bool by_library : {false, true}) {
    const ControlScope after(graph_, by_library ? library.awaited : by_messages);
    sent_.push_back(collective_signal(graph_, library.programs.name, by_library, at).output());
  }
}

Output ProgramGroup::marked(Output by_messages, Output own, const Library& library,
                            const std::string& slot, Reduction reduction, Location at) const {
  return collective_result(by_messages, own,
                           {.kind = CollectiveKind::all_reduce,
                            .is_mean = reduction == Reduction::mean,
                            .group = concat(name_, "/", slot),
                            .rank = replicas_.own(),
                            .members = replicas_.count(),
                            .programs = library.programs,
                            .ticket = library.ticket},
                           at);
}

std::vector<Output> ProgramGroup::all_reduce(const std::vector<Output>& values,
                                             const std::vector<std::string>& names, Output step,
                                             const AllReduceOptions& options, Location at) {
  check(values.size() == names.size(), "ProgramGroup::all_reduce (", at, ") got ", values.size(),
        " values and ", names.size(), " names");
  check(goes_between_programs(options.algorithm), "ProgramGroup::all_reduce (", at,
        ") goes directly or in chunks: the algorithm is direct, chunks or automatic");
  check(options.bucket_bytes > 0 && options.trip_bytes >= 0, "ProgramGroup::all_reduce (", at,
        "): bucket_bytes must be positive and trip_bytes not negative, got ", options.bucket_bytes,
        " and ", options.trip_bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    check(bool{values[i]}, "ProgramGroup::all_reduce (", at, "): value ", i, " is an empty Output");
    check(values[i].shape().is_complete(), "ProgramGroup::all_reduce (", at, "): the shape of '",
          values[i].name(), "' must be complete, got ", values[i].shape());
  }
  const int64_t n = replicas_.count();
  if (n == 1) return values;
  const auto here = replicas_.on_worker(graph_, replicas_.own());
  const NameScope scope(graph_, "exchange");
  std::vector<Output> out(values.size());
  const bool is_adasum = options.reduction == Reduction::adasum;
  const bool is_marked = options.algorithm == Algorithm::automatic && !is_adasum;
  const std::vector<Output> sent_before = std::exchange(sent_, {});
  std::optional<Library> library;
  std::vector<Output> results;
  for (const std::vector<size_t>& bucket :
       make_buckets(values, is_adasum ? 1 : options.bucket_bytes)) {
    std::vector<int64_t> sizes;
    std::vector<Output> rows;
    for (const size_t i : bucket) {
      sizes.push_back(values[i].shape().elements());
      rows.push_back(reshaped(values[i], {sizes.back()}));
    }
    const Output flat = joined(rows);
    const std::string slot = concat("bucket_", buckets_++);
    const bool is_whole = flat.shape().elements() < n || is_sent_whole(flat, n, options);
    for (const size_t i : bucket)
      plan_ += concat(names[i], ": ", values[i].dtype(), values[i].shape(), " in ", slot,
                      is_whole ? ", sent whole" : ", sent in parts", '\n');
    if (is_marked && !library) library = begin_library(flat, step, at);
    Output sum = is_whole ? direct(flat, slot, step, options.reduction, at)
                          : chunked(flat, slot, step, options.reduction, at);
    if (is_marked) {
      sum = marked(sum, flat, *library, slot, options.reduction, at);
      results.push_back(sum);
    }
    const std::vector<Output> parts = cut(sum, sizes);
    for (size_t j = 0; j < bucket.size(); ++j)
      out[bucket[j]] = reshaped(parts[j], values[bucket[j]].shape());
  }
  if (library) end_library(*library, results, step, at);
  sent_.insert(sent_.begin(), sent_before.begin(), sent_before.end());
  plan_ += concat("exchange ", exchanges_++,
                  is_marked ? ": by a library where all have one\n" : ": by messages\n");
  return out;
}

Output ProgramGroup::member_op(std::string_view op, int k, AttrMap attrs, Location at) {
  const Output box = mailbox(k, at);
  const auto there = replicas_.on_worker(graph_, k);
  return graph_
      .add({.op = std::string(op),
            .name = concat(name_, "/", op),
            .inputs = {box, constant(graph_, int32_t{replicas_.own()})},
            .attrs = std::move(attrs),
            .location = at})
      .output();
}

Node* ProgramGroup::begin(Location at) {
  if (replicas_.count() == 1) return nullptr;
  const int own = replicas_.own();
  const auto here = replicas_.on_worker(graph_, own);
  const NameScope scope(graph_, "begin");
  const Output plan = constant(graph_, plan_), start = constant(graph_, int64_t{-1});
  const std::vector<Output> sent_in_steps = std::exchange(sent_, {});
  std::vector<Output> done = {member_op("MailboxJoin", own, {}, at)};
  for (const int k : others()) {
    const ControlScope after(graph_, {member_op("MailboxJoin", k, {}, at)});
    post(k, "begin", start, plan, at);
  }
  done.insert(done.end(), sent_.begin(), sent_.end());
  sent_ = sent_in_steps;
  // All are at this point at the same time. A letter alone may be that of a program which has
  // failed meanwhile and is about to start again.
  Output met;
  {
    const ControlScope after(graph_, done);
    met = member_op("MailboxMeet", 0, {}, at);
  }
  std::vector<Output> plans;
  {
    const ControlScope after(graph_, {met});
    plans = take(others(), "begin", start, str, {}, at);
  }
  plans.insert(plans.begin() + own, plan);
  // A check that fails ends the step: not before the others have this program's plan.
  const ControlScope after(graph_, done);
  done.push_back(graph_
                     .add({.op = "CheckEqualPlans",
                           .name = "check_plans",
                           .inputs = plans,
                           .attrs = {{"N", static_cast<int64_t>(plans.size())}},
                           .location = at})
                     .output());
  return &group(graph_, done, "all_have_come", at);
}

Node* ProgramGroup::leave(bool has_failed, Location at) {
  if (replicas_.count() == 1) return nullptr;
  const auto here = replicas_.on_worker(graph_, replicas_.own());
  std::vector<Output> done;
  for (int k = 0; k < replicas_.count(); ++k)
    done.push_back(member_op("MailboxLeave", k, {{"has_failed", has_failed}}, at));
  return &group(graph_, done, has_failed ? "leave_after_error" : "leave", at);
}

}  // namespace leat::collectives
