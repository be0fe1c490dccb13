#include "frontends/cpp/strategies/parts/compress.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "frontends/cpp/variables.h"

namespace leat {
namespace {

using Kind = Compression::Kind;

// What is on its way, and what makes it whole again.
struct Sent {
  std::vector<Output> parts;  // on the worker
  std::vector<Output> updates;
};

constexpr int64_t codes_per_byte = 4;

Output powers_of_four(Graph& graph) {
  Tensor powers(u8, {codes_per_byte});
  uint8_t power = 1;
  for (uint8_t& each : powers.span<uint8_t>()) {
    each = power;
    power = static_cast<uint8_t>(power * 4);
  }
  return constant(graph, std::move(powers));
}

// A vector of n numbers, 0 but for these.
Output scattered(const Output& places, const Output& values, int64_t n) {
  return op("ScatterNd",
            {expand_dims(places, 1), values, constant(values.graph(), {static_cast<int32_t>(n)})});
}

// Codes 0, 1 (t) and 2 (-t), four to a byte.
Sent send_two_bits(Output gradient, Output residual, double threshold, Location at) {
  const DType dtype = gradient.dtype();
  const Output whole = read_variable(residual, at) + gradient;
  const Output plus = whole >= threshold, minus = whole <= -threshold;
  const Output sent = (cast(plus, dtype) - cast(minus, dtype)) * threshold;
  const int64_t n = gradient.shape().elements();
  const int64_t padded = (n + codes_per_byte - 1) / codes_per_byte * codes_per_byte;
  Output codes = reshape(cast(plus, u8) + cast(minus, u8) * 2, {-1});
  if (padded != n) codes = pad(codes, {{0, padded - n}});
  codes = reshape(codes, {-1, codes_per_byte}) * powers_of_four(gradient.graph());
  return {{sum(codes, 1)}, {assign(residual, whole - sent, at)}};
}

Output receive_two_bits(const Sent& sent, const Output& gradient, double threshold) {
  Output codes = floor_div(reshape(sent.parts[0], {-1, 1}), powers_of_four(gradient.graph())) % 4;
  codes = reshape(codes, {-1})[slice(0, gradient.shape().elements())];
  const DType dtype = gradient.dtype();
  const Output signs = cast(codes == 1, dtype) - cast(codes == 2, dtype);
  return reshape(signs * threshold, gradient.shape());
}

Sent send_top_k(Output gradient, Output residual, double ratio, Location at) {
  const int64_t n = gradient.shape().elements();
  const auto k = std::clamp<int64_t>(std::llround(ratio * static_cast<double>(n)), 1, n);
  const Output whole = reshape(read_variable(residual, at) + gradient, {-1});
  const Output places = top_k(abs(whole), static_cast<int32_t>(k)).indices;
  const Output values = take(whole, places);
  const Output rest = whole - scattered(places, values, n);
  return {{places, values}, {assign(residual, reshape(rest, gradient.shape()), at)}};
}

Output receive_places(const Sent& sent, const Output& gradient) {
  return reshape(scattered(sent.parts[0], sent.parts[1], gradient.shape().elements()),
                 gradient.shape());
}

// The numbers of a vector where `is_sent`.
Sent send_some(const Output& whole, const Output& is_sent) {
  const auto n = static_cast<int32_t>(whole.shape().elements());
  return {{boolean_mask(arange(whole.graph(), n), is_sent), boolean_mask(whole, is_sent)}, {}};
}

// The same of residual + gradient; what is not sent becomes the residual.
Sent send_some_and_keep(const Output& gradient, const Output& residual,
                        const std::function<Output(const Output&)>& is_sent, Location at) {
  const Output whole = reshape(read_variable(residual, at) + gradient, {-1});
  const Output mask = is_sent(whole);
  Sent sent = send_some(whole, mask);
  const Output rest = where(mask, zeros_like(whole), whole);
  sent.updates.push_back(assign(residual, reshape(rest, gradient.shape()), at));
  return sent;
}

Sent send(const Output& gradient, const Output& variable, const Output& residual,
          const Compression& compression, Location at) {
  switch (compression.kind) {
    case Kind::bf16:
      return {{cast(gradient, bf16)}, {}};
    case Kind::fp16:
      return {{cast(gradient, f16)}, {}};
    case Kind::two_bit:
      return send_two_bits(gradient, residual, compression.threshold, at);
    case Kind::top_k:
      return send_top_k(gradient, residual, compression.ratio, at);
    case Kind::significant:
      return send_some_and_keep(
          gradient, residual,
          [&](const Output& r) { return !(abs(r) <= compression.threshold); },  // a NaN is sent
          at);
    case Kind::random_skip:
      return send_some_and_keep(
          gradient, residual,
          [&](const Output& r) {
            return random::uniform(r.graph(), {r.shape().elements()}) < compression.ratio;
          },
          at);
    case Kind::kkt:
      return send_some(reshape(gradient, {-1}),
                       reshape(!(abs(gradient) <= compression.l1 && Operand(variable) == 0), {-1}));
    case Kind::none:
      break;
  }
  return {{gradient}, {}};
}

Output receive(const Sent& sent, const Output& gradient, const Compression& compression) {
  switch (compression.kind) {
    case Kind::bf16:
    case Kind::fp16:
      return cast(sent.parts[0], gradient.dtype());
    case Kind::two_bit:
      return receive_two_bits(sent, gradient, compression.threshold);
    case Kind::top_k:
    case Kind::significant:
    case Kind::random_skip:
    case Kind::kkt:
      return receive_places(sent, gradient);
    case Kind::none:
      break;
  }
  return sent.parts[0];
}

bool has_residual(Kind kind) {
  return kind == Kind::two_bit || kind == Kind::top_k || kind == Kind::significant ||
         kind == Kind::random_skip;
}

void check_options(const Compression& compression) {
  const bool may_be_0 = compression.kind == Kind::significant;
  check((compression.threshold > 0 || (may_be_0 && compression.threshold == 0)) &&
            std::isfinite(compression.threshold),
        "the threshold of a compression must be positive, got ", compression.threshold);
  check(compression.l1 >= 0 && std::isfinite(compression.l1),
        "the l1 of the filter kkt must not be negative, got ", compression.l1);
  check(compression.ratio > 0 && compression.ratio <= 1,
        "the ratio of a compression must be in (0, 1], got ", compression.ratio);
}

}  // namespace

Compression::Kind compression_named(std::string_view name) {
  if (name == "none") return Kind::none;
  if (name == "bf16") return Kind::bf16;
  if (name == "fp16") return Kind::fp16;
  if (name == "2bit") return Kind::two_bit;
  if (name == "top_k") return Kind::top_k;
  fail(Code::invalid_argument, "there is no compression '", name,
       "'; there are: none, bf16, fp16, 2bit, top_k");
}

Compression::Kind filter_named(std::string_view name) {
  if (name == "none") return Kind::none;
  if (name == "significant") return Kind::significant;
  if (name == "random_skip") return Kind::random_skip;
  if (name == "kkt") return Kind::kkt;
  fail(Code::invalid_argument, "there is no filter '", name,
       "'; there are: none, significant, random_skip, kkt");
}

std::vector<GradientAndVariable> compressed(const Replicas& replicas, int k,
                                            std::vector<GradientAndVariable> gradients,
                                            const Compression& compression,
                                            std::vector<Output>& updates, Location at) {
  check_options(compression);
  if (compression.kind == Kind::none) return gradients;
  for (GradientAndVariable& each : gradients) {
    if (!each.gradient || each.indices || !is_floating(each.gradient.dtype())) continue;
    Graph& graph = each.gradient.graph();
    Output gradient = each.gradient;
    const Sent sent = [&] {
      const auto worker = replicas.on_worker(graph, k);
      const NameScope scope(graph, "compress");
      if (!gradient.shape().is_complete()) gradient = reshape(gradient, each.variable.shape());
      Output residual;
      if (has_residual(compression.kind)) {
        const auto own = replicas.copy(graph, k, /*own_state=*/true);
        const NameScope absolute(graph, replicas.prefix(k));
        residual = variable(graph, concat(variable_name(each.variable), "/residual"),
                            gradient.shape(), gradient.dtype(), {.trainable = false}, at);
      }
      return send(gradient, replicas.copy_of(each.variable, k), residual, compression, at);
    }();
    updates.insert(updates.end(), sent.updates.begin(), sent.updates.end());
    const ColocationScope with(graph, {each.variable});
    const NameScope scope(graph, "decompress");
    each.gradient = receive(sent, gradient, compression);
  }
  return gradients;
}

void mean_of_compressed(const Replicas& replicas,
                        std::vector<std::vector<GradientAndVariable>>& all,
                        const Compression& compression,
                        const collectives::AllReduceOptions& algorithm,
                        std::vector<Output>& updates, Location at) {
  check_options(compression);
  Graph& graph = all.front().front().variable.graph();
  const bool is_cast = compression.kind == Kind::bf16 || compression.kind == Kind::fp16;
  const auto n = all.size();
  std::vector<collectives::PerReplica> cast_ones;
  for (size_t v = all.front().size(); v-- > 0;) {  // as backward makes them
    std::vector<Sent> sent;
    for (size_t k = 0; k < n; ++k) {
      const auto worker = replicas.on_worker(graph, static_cast<int>(k));
      const NameScope scope(graph, "compress");
      const auto& [gradient, variable] = all[k][v];
      const Output residual = has_residual(compression.kind)
                                  ? slot(variable, "residual", initializers::zeros(), at)
                                  : Output();
      sent.push_back(send(gradient, variable, residual, compression, at));
      updates.insert(updates.end(), sent.back().updates.begin(), sent.back().updates.end());
    }
    if (is_cast) {
      cast_ones.emplace_back();
      for (const Sent& each : sent) cast_ones.back().push_back(each.parts[0]);
      continue;
    }
    for (size_t k = 0; k < n; ++k) {
      const auto worker = replicas.on_worker(graph, static_cast<int>(k));
      const NameScope scope(graph, "decompress");
      std::vector<Output> received;
      for (const Sent& each : sent)
        received.push_back(receive(each, all[k][v].gradient, compression));
      all[k][v].gradient = add_n(received, at) * (1.0 / static_cast<double>(n));
    }
  }
  if (!is_cast) return;
  const auto means = collectives::all_reduce(replicas, cast_ones, algorithm, at);
  for (size_t i = 0; i < means.size(); ++i) {
    for (size_t k = 0; k < n; ++k) {
      const auto worker = replicas.on_worker(graph, static_cast<int>(k));
      Output& gradient = all[k][means.size() - 1 - i].gradient;
      gradient = cast(means[i][k], gradient.dtype());
    }
  }
}

}  // namespace leat
