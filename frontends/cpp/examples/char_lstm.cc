// An LSTM in a while loop learns a text by the loop's gradient, then writes some.
//   char_lstm [FILE]
#include <leat/leat.h>
#include <fstream>
#include <iostream>
#include <random>

using namespace leat;

namespace {

constexpr int64_t batch_size = 16, length = 40, units = 64, characters = 128;  // ASCII

// The mean loss of the character behind each of ids [batch, time].
Output loss_of(const nn::Lstm& cell, const nn::Dense& logits, Output ids) {
  Graph& g = ids.graph();
  const Output by_time = transpose(ids);
  const std::vector<Output> zero = cell.zero_state(ids);
  auto [t, h, c, sum] =
      while_loop([](Output t, Output, Output, Output) { return t < length - 1; },
                 [&](Output t, Output h, Output c, Output sum) {
                   const auto state = cell(one_hot(take(by_time, t), characters), {h, c});
                   const Output wanted = take(by_time, t + 1);
                   const Output loss = mean(nn::softmax_cross_entropy(logits(state[0]), wanted));
                   return std::tuple{t + 1, state[0], state[1], sum + loss};
                 },
                 constant(g, 0), zero[0], zero[1], constant(g, 0.0F));
  return sum / static_cast<double>(length - 1);
}

// `count` characters behind `text`, each the likeliest.
std::string continued(std::string text, size_t count, const nn::Lstm& cell, const nn::Dense& logits,
                      Session& session) {
  Graph& g = logits.kernel().graph();
  const Output id = placeholder(g, "id", i32, {1});
  const Output h = placeholder(g, "h", f32, {1, units}), c = placeholder(g, "c", f32, {1, units});
  const auto state = cell(one_hot(id, characters), {h, c});
  const Output guess = argmax(logits(state[0]), 1);
  Tensor h_value = Tensor::zeros({1, units}), c_value = Tensor::zeros({1, units});
  const size_t size = text.size() + count;
  for (size_t i = 0; text.size() < size; ++i) {
    const Tensor read = Tensor::of<int32_t>({1}, {text[i]});
    const auto [next_h, next_c, next] =
        session.run({{id, read}, {h, h_value}, {c, c_value}}, fetch(state[0], state[1], guess));
    h_value = next_h, c_value = next_c;
    if (i + 1 >= text.size()) text += static_cast<char>(next.data<int64_t>()[0]);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) try {
  std::ifstream in(argc > 1 ? argv[1] : "");
  check(argc == 1 || in.good(), "char_lstm: cannot read the text ", argv[argc - 1]);
  std::string text(std::istreambuf_iterator<char>(in), {});
  while (text.size() < 2 * length) text += "she sells sea shells by the sea shore. ";
  for (char& each : text) each &= 127;
  Graph g;
  const nn::Lstm cell(g, units);
  const nn::Dense logits(g, units, characters);
  const Output ids = placeholder(g, "ids", i32, {batch_size, length});
  const Output loss = loss_of(cell, logits, ids);
  Node& train = Adam{1e-2}.minimize(loss);
  Session session(g);
  session.run({initialize_variables(g)});
  std::mt19937 random(1);
  for (int step = 1; step <= 200; ++step) {
    Tensor batch(i32, {batch_size, length});
    for (int64_t row = 0; row < batch_size; ++row)
      std::copy_n(text.begin() + static_cast<int64_t>(random() % (text.size() - length)), length,
                  batch.data<int32_t>() + row * length);
    const auto [value] = session.run({{ids, batch}}, fetch(loss), {train});
    if (step % 50 == 0) std::cout << "step " << step << "  loss " << value.item<float>() << "\n";
  }
  std::cout << continued(text.substr(0, 10), 60, cell, logits, session) << "\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
