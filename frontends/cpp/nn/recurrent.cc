#include "frontends/cpp/nn/recurrent.h"

#include <algorithm>
#include <typeinfo>

#include "frontends/cpp/control_flow/traversal.h"

namespace leat::nn {
namespace {

using Outputs = std::vector<Output>;

Outputs parts(Output x, int count, Location at) { return split(x, count, -1, at); }

}  // namespace

Cell::Cell(Graph& graph, int64_t units, std::string kind, const std::string& name, Location at)
    : shared_(
          std::make_shared<Shared>(Shared{graph, units, std::move(kind), name, "", {}, {}, {}})) {
  check(units > 0, shared_->kind, " '", name, "' (", at, "): units must be positive, got ", units);
  const NameScope scope(graph, name);
  shared_->scope = scope.name();
}

void Cell::make(Output x, int gates, const Initializer& kernel, const Initializer& recurrent,
                const Initializer& bias, int bias_rows, Location at) const {
  Shared& s = *shared_;
  check(bool{x}, s.kind, " '", s.name, "' (", at, "): its input is an empty Output");
  const Shape& shape = x.shape();
  check(shape.rank() >= 2 && shape[shape.rank() - 1] > 0, s.kind, " '", s.name, "' (", at,
        "): the number of features of its input must be known, got ", x.name(), " ", x.dtype(),
        shape);
  const int64_t features = shape[shape.rank() - 1], width = gates * s.units;
  if (s.kernel) {
    check(features == s.kernel.shape()[0], s.kind, " '", s.name, "' (", at, "): it was made for ",
          s.kernel.shape()[0], " features, but ", x.name(), " has ", shape);
    return;
  }
  const NameScope scope(s.graph, s.scope);
  s.kernel = variable(s.graph, "kernel", {features, width}, kernel, x.dtype(), {}, at);
  s.recurrent =
      variable(s.graph, "recurrent_kernel", {s.units, width}, recurrent, x.dtype(), {}, at);
  const Shape of_bias = bias_rows == 1 ? Shape{width} : Shape{bias_rows, width};
  s.bias = variable(s.graph, "bias", of_bias, bias, x.dtype(), {}, at);
}

Output Cell::affine(Output x, Output bias, Location at) const {
  const Shape& shape = x.shape();
  if (shape.rank() == 2) return matmul(x, shared_->kernel, {}, at) + bias;
  const Output rows = reshape(x, {-1, shape[shape.rank() - 1]}, at);
  const Output leading = shape_of(x, i32, at)[slice(0, -1)];
  const auto width = static_cast<int32_t>(shared_->kernel.shape()[1]);
  Output dims = concatenate({leading, constant(x.graph(), {width})}, 0, at);
  return reshape(matmul(rows, shared_->kernel, {}, at) + bias, dims, at);
}

Outputs Cell::zero_state(Output x, Location at) const {
  check(bool{x}, shared_->kind, " '", shared_->name, "' (", at, "): its input is an empty Output");
  const NameScope scope(x.graph(), shared_->scope);
  const LocationScope line(x.graph(), at);
  const DType dtype = is_floating(x.dtype()) ? x.dtype() : f32;  // x may be numbers of words
  Output dims;
  const int64_t batch = x.shape().has_rank() ? x.shape()[0] : int64_t{any};
  if (batch != any) {
    dims = Dims{batch, units()}.in(x.graph(), at);
  } else {
    dims = concatenate(
        {shape_of(x, i32, at)[slice(0, 1)], constant(x.graph(), {static_cast<int32_t>(units())})},
        0, at);
  }
  return Outputs(static_cast<size_t>(states()), zeros(x.graph(), dims, dtype, at));
}

Outputs Cell::layer(Output, const Outputs&, Output, bool, Location) const {
  fail(Code::internal, shared_->kind, " '", shared_->name, "' computes no whole sequence");
}

// ---- Cells ----

Output SimpleRnn::project(Output x, Location at) const {
  make(x, 1, options_.kernel_initializer, options_.recurrent_initializer, initializers::zeros(), 1,
       at);
  const NameScope scope(x.graph(), shared_->scope);
  const LocationScope line(x.graph(), at);
  return affine(x, bias(), at);
}

Outputs SimpleRnn::step(Output projected, const Outputs& state, Location at) const {
  const NameScope scope(projected.graph(), shared_->scope);
  const LocationScope line(projected.graph(), at);
  return {options_.activation(projected + matmul(state[0], recurrent_kernel(), {}, at), at)};
}

Output Lstm::project(Output x, Location at) const {
  const auto bias = [this](Graph& graph, DType dtype, const VariablePart&) {
    const int64_t n = units();
    const auto filled = [&](int64_t count, double value) {
      return full(graph, {count}, Operand(value).as(graph, dtype));
    };
    return concatenate({filled(n, 0), filled(n, options_.forget_bias), filled(2 * n, 0)}, 0);
  };
  make(x, 4, options_.kernel_initializer, options_.recurrent_initializer, bias, 1, at);
  const NameScope scope(x.graph(), shared_->scope);
  const LocationScope line(x.graph(), at);
  return affine(x, this->bias(), at);
}

Outputs Lstm::step(Output projected, const Outputs& state, Location at) const {
  const NameScope scope(projected.graph(), shared_->scope);
  const LocationScope line(projected.graph(), at);
  const Outputs gates = parts(projected + matmul(state[0], recurrent_kernel(), {}, at), 4, at);
  const Output c = sigmoid(gates[1], at) * state[1] + sigmoid(gates[0], at) * tanh(gates[2], at);
  return {sigmoid(gates[3], at) * tanh(c, at), c};
}

// A cell that is made of this one may have another step.
bool Lstm::has_layer(DType dtype) const {
  return typeid(*this) == typeid(Lstm) && (dtype == f32 || dtype == f64);
}

Outputs Lstm::layer(Output projected, const Outputs& state, Output lengths, bool reverse,
                    Location at) const {
  const NameScope scope(projected.graph(), shared_->scope);
  Outputs inputs = {projected, state[0], state[1], recurrent_kernel()};
  if (lengths) inputs.push_back(lengths);
  Outputs out = op_outputs("LstmLayer", inputs, {{"N", lengths ? 1 : 0}, {"reverse", reverse}}, at);
  out.resize(3);
  return out;
}

Output Gru::project(Output x, Location at) const {
  make(x, 3, options_.kernel_initializer, options_.recurrent_initializer, initializers::zeros(), 2,
       at);
  const NameScope scope(x.graph(), shared_->scope);
  const LocationScope line(x.graph(), at);
  return affine(x, bias()[0], at);
}

Outputs Gru::step(Output projected, const Outputs& state, Location at) const {
  const NameScope scope(projected.graph(), shared_->scope);
  const LocationScope line(projected.graph(), at);
  const Output h = state[0];
  const Outputs x = parts(projected, 3, at);
  const Outputs own = parts(matmul(h, recurrent_kernel(), {}, at) + bias()[1], 3, at);
  const Output u = sigmoid(x[0] + own[0], at), r = sigmoid(x[1] + own[1], at);
  return {u * h + (1 - u) * tanh(x[2] + r * own[2], at)};
}

bool Gru::has_layer(DType dtype) const {
  return typeid(*this) == typeid(Gru) && (dtype == f32 || dtype == f64);
}

Outputs Gru::layer(Output projected, const Outputs& state, Output lengths, bool reverse,
                   Location at) const {
  const NameScope scope(projected.graph(), shared_->scope);
  Outputs inputs = {projected, state[0], recurrent_kernel(), bias()[1]};
  if (lengths) inputs.push_back(lengths);
  Outputs out = op_outputs("GruLayer", inputs, {{"N", lengths ? 1 : 0}, {"reverse", reverse}}, at);
  out.resize(2);
  return out;
}

// ---- Along a sequence ----

// While it lives, the steps of a cell use values of its weights that were read before the loop: no
// iteration reads others, and what it computes of them alone can run once.
class WeightReads {
 public:
  WeightReads(const Cell& cell, Location at)
      : weights_(*cell.shared_), recurrent_(weights_.recurrent), bias_(weights_.bias) {
    if (!recurrent_) return;  // of a cell with other weights
    weights_.recurrent = identity(recurrent_, at);
    weights_.bias = identity(bias_, at);
  }
  ~WeightReads() {
    weights_.recurrent = recurrent_;
    weights_.bias = bias_;
  }
  WeightReads(const WeightReads&) = delete;

 private:
  Cell::Shared& weights_;
  const Output recurrent_, bias_;
};

RnnResult rnn(const Cell& cell, Output x, const RnnOptions& options, Location at) {
  const std::string title = concat("rnn '", options.name, "' (", at, ")");
  check(bool{x}, title, ": its input is an empty Output");
  check(x.shape().rank() == 3, title, ": the input must be ",
        options.time_major ? "[time, batch, features]" : "[batch, time, features]", ", got ",
        x.name(), " ", x.dtype(), x.shape());
  const Output lengths = options.lengths.in(x.graph());
  check(!lengths || is_integer(lengths.dtype()), title, ": lengths must be integers, got ",
        lengths ? lengths.dtype() : DType::invalid);
  Graph& graph = x.graph();
  const NameScope scope(graph, options.name);
  const LocationScope line(graph, at);
  const bool time_major = options.time_major;
  const auto turned = [&](Output y) {  // of each example the first positions, up to its length
    if (!options.reverse || !lengths) return y;
    return op("ReverseSequence", {y, lengths},
              {{"seq_dim", time_major ? 0 : 1}, {"batch_dim", time_major ? 1 : 0}}, at);
  };
  const auto exchanged = [&](Output y) {  // the batch and time axes, unless time comes first
    return time_major ? y : transpose(y, {1, 0, 2}, at);
  };
  const bool is_backward = options.reverse && !lengths;
  const bool is_layer = !options.as_loop && cell.has_layer(x.dtype());
  const auto last_first = [&](Output y) { return is_backward ? y : flip(y, 0, at); };
  const auto along_time = [&](Output y) {
    return is_layer ? exchanged(y) : last_first(exchanged(y));
  };
  // The smaller of the two is transposed: the features, or what the cell makes of them.
  const bool is_narrow = x.shape()[2] != any && x.shape()[2] <= 2 * cell.units();
  Outputs inputs = {is_narrow ? cell.project(along_time(turned(x)), at)
                              : along_time(cell.project(turned(x), at))};
  if (lengths && !is_layer) {
    // Whether a position is within its example, [time, batch, 1].
    const Output positions = arange(graph, shape_of(x, i32, at)[time_major ? 0 : 1], at);
    const Output within =
        less({expand_dims(positions, 1, at), at}, expand_dims(cast(lengths, i32, at), 0, at));
    inputs.push_back(last_first(expand_dims(within, 2, at)));
  }
  Outputs initial = options.initial_state;
  if (initial.empty()) initial = cell.zero_state(time_major ? x[0] : x, at);
  check(static_cast<int>(initial.size()) == cell.states(), title, ": the initial state has ",
        initial.size(), " tensors instead of ", cell.states());
  if (is_layer) {
    const Output ends = lengths ? cast(lengths, i32, at) : Output();
    const Outputs all = cell.layer(inputs[0], initial, ends, is_backward, at);
    return {turned(exchanged(all[0])), {all.begin() + 1, all.end()}};
  }
  const WeightReads reads(cell, at);
  const Traversal along{.title = title,
                        .x = inputs,
                        .initial = initial,
                        .reverse = is_backward,
                        .is_x_flipped = true,
                        .at = at};
  const Traversal::Step all = along.run([&](const Outputs& before, const Outputs& elements) {
    Outputs next = cell.step(elements[0], before, at);
    Output result = next[0];
    if (lengths) {
      result = where(elements[1], result, 0, at);
      for (size_t i = 0; i < next.size(); ++i) next[i] = where(elements[1], next[i], before[i], at);
    }
    return Traversal::Step{next, {result}};
  });
  return {turned(exchanged(all.kept[0])), all.states};
}

RnnResult bidirectional_rnn(const Cell& forward, const Cell& backward, Output x,
                            const RnnOptions& options, Location at) {
  RnnOptions there = options, back = options;
  const auto half = static_cast<size_t>(forward.states());
  if (!options.initial_state.empty()) {
    check(options.initial_state.size() == half + static_cast<size_t>(backward.states()),
          "bidirectional_rnn '", options.name, "' (", at, "): the initial state has ",
          options.initial_state.size(), " tensors instead of ",
          half + static_cast<size_t>(backward.states()));
    const auto middle = options.initial_state.begin() + static_cast<int64_t>(half);
    there.initial_state.assign(options.initial_state.begin(), middle);
    back.initial_state.assign(middle, options.initial_state.end());
  }
  back.reverse = !there.reverse;
  const RnnResult a = rnn(forward, x, there, at), b = rnn(backward, x, back, at);
  RnnResult out{concatenate({a.outputs, b.outputs}, 2, at), a.state};
  out.state.insert(out.state.end(), b.state.begin(), b.state.end());
  return out;
}

}  // namespace leat::nn
