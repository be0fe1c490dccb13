#include "frontends/cpp/strategies/multiverso.h"

#include "frontends/cpp/state/clock.h"
#include "frontends/cpp/strategies/parts/copies.h"

namespace leat {

Training Multiverso::minimize(Graph& graph, const Optimizer& optimizer, const Dataset& data,
                              const ModelFunction& model, Location at) const {
  Training training = new_training(graph, /*drives_all=*/false);
  const CopiedModel copied(*this, training, data, model, at);
  const int own = replicas().own();
  const auto servers = replicas().on_servers(graph, own);
  training.global_step = copied.step();
  set_shown(training, {copied.losses()});
  std::vector<GradientAndVariable> gradients =
      optimizer.compute_gradients(copied.losses().loss, copied.trainable_copies());
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i].variable = copied.trainable()[i];

  const auto clock = [&](const char* name) {
    const ColocationScope with(graph, {copied.step()});
    return Clock(graph, name, replicas().count(), {.shared_name = concat("leat_multiverso_", name)},
                 at);
  };
  const Clock reads = clock("reads"), updates = clock("updates");
  const auto behind = [&](const Output& after, const auto& make) {
    const ColocationScope with(graph, {copied.step()});
    const ControlScope wait(graph, {after});
    return make();
  };
  const Output all_have_read = reads.wait(own, 0, at);
  const Output update = [&] {
    const ControlScope wait(graph, {all_have_read});
    return optimizer.apply_gradients(gradients, {.global_step = training.global_step}, at).output();
  }();
  const Output updated = behind(update, [&] { return updates.tick(own, at); });
  const Output all_have_updated = behind(updated, [&] { return updates.wait(own, 0, at); });
  const Output fetched = copied.fetch({all_have_updated}, at).output();
  std::vector<Output> done = copied.push_state({update}, at);
  done.push_back(behind(fetched, [&] { return reads.tick(own, at); }));
  training.step = &group(graph, done, "update", at);
  training.begin = group(graph, {reads.join(own, at), updates.join(own, at)}, "join", at);
  training.end =
      group(graph, {reads.leave(own, at).output(), updates.leave(own, at).output()}, "leave", at);
  return training;
}

}  // namespace leat
