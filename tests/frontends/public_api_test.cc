// Programs as their authors type them, with the single include.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <leat/leat.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace {

using namespace leat;
using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

template <class T>
std::vector<T> all_of(const Tensor& t) {
  return {t.data<T>(), t.data<T>() + t.elements()};
}

// The elements of a step's value for `y`.
template <class T = float>
std::vector<T> values(Output y, const Feeds& feeds = {}) {
  Session session(y.graph());
  session.run({initialize_variables(y.graph())});
  return all_of<T>(session.run(feeds, {y})[0]);
}

Shape shape_of_value(Output y, const Feeds& feeds = {}) {
  Session session(y.graph());
  session.run({initialize_variables(y.graph())});
  return session.run(feeds, {y})[0].shape();
}

TEST(PublicApi, RegressionLearns) {
  Graph g;
  Output x = placeholder(g, "x", f32, {any, 2}), y = placeholder(g, "y", f32, {any, 1});
  Output h = nn::dense(
      x, 8, {.activation = tanh, .kernel_initializer = initializers::glorot_uniform({.seed = 3})});
  Output loss = mean(square(
      nn::dense(h, 1, {.kernel_initializer = initializers::glorot_uniform({.seed = 4})}) - y));
  Node& train = Adam{1e-1}.minimize(loss);
  Session session{g};
  session.run({initialize_variables(g)});
  const Tensor xs = Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}),
               ys = Tensor::of<float>({4, 1}, {0, 1, 1, 0});
  for (int step = 0; step < 200; ++step) session.run({{x, xs}, {y, ys}}, {train});
  EXPECT_LT(session.run({{x, xs}, {y, ys}}, {loss})[0].item<float>(), 0.01F);
}

class Arrays : public testing::Test {
 protected:
  Graph g;
  Output x = constant(g, {{0.0F, 1.0F, 2.0F, 3.0F}, {4.0F, 5.0F, 6.0F, 7.0F}});
  Output a = constant(g, {{1, 2}, {3, 4}}), b = constant(g, {{5, 6}, {7, 8}});
};

TEST_F(Arrays, ComputesReductions) {
  EXPECT_THAT(values(mean(x, 1)), ElementsAre(1.5, 5.5));
  EXPECT_EQ(mean(x, {0, 1}, {.keep_dims = true}).shape(), Shape({1, 1}));
  EXPECT_THAT(values(mean(x, {0, 1}, {.keep_dims = true})), ElementsAre(3.5));
  EXPECT_THAT(values(sum(x)), ElementsAre(28));
  EXPECT_THAT(values(max(x, -1)), ElementsAre(3, 7));
  EXPECT_THAT(values(min(x, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values<int64_t>(argmax(x, 1)), ElementsAre(3, 3));
}

TEST_F(Arrays, ChangesShapes) {
  EXPECT_EQ(reshape(x, {-1, 2, 2}).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(values(transpose(x, {1, 0})), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(values(transpose(x)), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(values(x[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(x[{all, slice(0, 2)}]), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ((x[{newaxis, all}].shape()), Shape({1, 2, 4}));
}

TEST_F(Arrays, ComputesChoices) {
  EXPECT_THAT(values(where(x > 0.5, x, 0)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(values(clip(x, 0, 1)), ElementsAre(0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(values(one_hot(constant(g, {1, 0}), 3)), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(values<int32_t>(concatenate({a, b}, 1)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_EQ(stack({a, b}).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(values(split(x, 4, 1)[2]), ElementsAre(2, 6));
}

TEST_F(Arrays, MakesArrays) {
  EXPECT_THAT(values(zeros(g, {2, 3})), testing::Each(0));
  EXPECT_THAT(values<int32_t>(full(g, {2}, 7)), ElementsAre(7, 7));
  EXPECT_THAT(values<int32_t>(arange(g, 4)), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(values(random::normal(g, {2, 3}, {.seed = 1})),
            values(random::normal(g, {2, 3}, {.seed = 1})));
  EXPECT_THAT(values(constant(g, 1.0f)), ElementsAre(1));
  EXPECT_THAT(values<int32_t>(constant(g, {{1, 2}, {3, 4}})), ElementsAre(1, 2, 3, 4));
}

TEST_F(Arrays, ComputesProductsAndCasts) {
  Output m = reshape(arange(g, 12), {2, 2, 3}), n = reshape(arange(g, 6), {2, 3, 1});
  EXPECT_THAT(values<int32_t>(einsum("bij,bjk->bik", m, n)), ElementsAre(5, 14, 86, 122));
  EXPECT_EQ(cast(x, bf16).dtype(), bf16);
  x += 1;
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(PublicApi, ComputesGradientsOfAnyValue) {
  Graph g;
  Output x = constant(g, {{1.0F, 2.0F}}), w = variable(g, "w", {2, 1}, initializers::ones());
  Output v = constant(g, {{1.0F}, {-1.0F}});
  Output loss = sum(square(matmul(x, w)));
  std::vector<Output> dx = gradients({loss}, {x, w});
  Output hv = gradients({sum(dx[1] * v)}, {w})[0];
  EXPECT_THAT(values(dx[0]), ElementsAre(6, 6));
  EXPECT_THAT(values(dx[1]), ElementsAre(6, 12));
  EXPECT_THAT(values(hv), ElementsAre(-2, -4)) << "2 xᵀ x v";
  EXPECT_THAT(values(gradients(loss, w)[0]), ElementsAre(6, 12));
  EXPECT_EQ(gradients(loss, {x, w}).size(), 2U);
}

TEST(PublicApi, ControlFlowTakesAndReturnsValues) {
  Graph g;
  Output x = constant(g, {1.0F, 2.0F}), i = constant(g, 0), n = constant(g, 4);
  Output z = cond(
      less(i, n), [&] { return x * 2; }, [&] { return x - 1; });
  EXPECT_THAT(values(z), ElementsAre(2, 4));
  auto [k, total] = while_loop([&](Output k, Output) { return k < 10; },
                               [&](Output k, Output total) {
                                 return std::tuple{k + 1, total + x};
                               },
                               constant(g, 0), zeros_like(x));
  EXPECT_THAT(values<int32_t>(k), ElementsAre(10));
  EXPECT_THAT(values(total), ElementsAre(10, 20));
  EXPECT_THAT(values(gradients({sum(z) + sum(total)}, {x})[0]), ElementsAre(12, 12));
  Function f = function(g, "f", {f32}, [](Output a) { return a * a; });
  EXPECT_THAT(values(f(x) + f(total)), ElementsAre(101, 404));
}

TEST(PublicApi, LayersAreObjectsOrFunctions) {
  Graph g;
  Output embedded = random::normal(g, {2, 5, 8}, {.seed = 1});
  Output lengths = constant(g, {2, 5});
  nn::Lstm cell(g, 128, {.name = "lstm"});
  auto [outputs, state] = nn::rnn(cell, embedded, {.lengths = lengths});
  EXPECT_EQ(shape_of_value(outputs), Shape({2, 5, 128}));
  // A sequence has zeros after its end.
  EXPECT_THAT(values(outputs[{0, slice(2, 5)}]), testing::Each(0));
  EXPECT_THAT(values(outputs[{1, 4}]), testing::Not(testing::Contains(0)));

  Output q = random::normal(g, {2, 5, 16}, {.seed = 2});
  Output attended = nn::attention(q, q, q, {.heads = 8, .causal = true});
  EXPECT_EQ(shape_of_value(attended), Shape({2, 5, 16}));
  Output first = attended[{all, 0}] - q[{all, 0}];
  EXPECT_THAT(values(first), testing::Each(FloatNear(0, 1e-6F))) << "the first sees only itself";

  Output normal = nn::layer_norm(constant(g, {{1.0F, 3.0F}, {-5.0F, 5.0F}}));
  EXPECT_THAT(values(normal), Pointwise(FloatNear(1e-3F), {-1.0F, 1.0F, -1.0F, 1.0F}));
}

TEST(PublicApi, InputPipelineIsPartOfTheGraph) {
  const auto file =
      std::filesystem::temp_directory_path() / concat("leat_public_api_", ::getpid(), ".csv");
  std::ofstream(file) << "1,10\n2,20\n3,30\n";
  Graph g;
  auto lines = datasets::text_files({file.string()})
                   .map([](Output line) {
                     return decode_csv(line, {f32, f32});
                   })
                   .repeat(2)
                   .batch(2)
                   .prefetch(2);
  Batch batch = lines.next(g);
  Session session{g};
  const auto [x, y] = session.run({}, fetch(batch[0], batch[1]));
  EXPECT_THAT(all_of<float>(x), ElementsAre(1, 2));
  EXPECT_THAT(all_of<float>(y), ElementsAre(10, 20));
  EXPECT_THAT(all_of<float>(session.run({}, {batch[1]})[0]), ElementsAre(30, 10));
  std::filesystem::remove(file);
}

TEST(PublicApi, GraphsHoldQueuesAndAccumulators) {
  Graph g;
  Output step = constant(g, int64_t{7}), gradient = constant(g, {2.0F, 4.0F});
  Queue tokens(g, "tokens", {i64}, {.capacity = 100});
  Node& put = tokens.enqueue({step});
  Output t = tokens.dequeue()[0];
  Accumulator sum(g, "w/acc", f32, {2});
  Node& push = sum.apply(gradient, step);
  Output m = sum.take(3);
  Session session{g};
  session.run({put});
  EXPECT_EQ(session.run({}, {t})[0].item<int64_t>(), 7);
  for (int i = 0; i < 3; ++i) session.run({push});
  EXPECT_THAT(all_of<float>(session.run({}, {m})[0]), ElementsAre(2, 4));
}

TEST(PublicApi, EmbeddingsLearnTheRowsTheyRead) {
  Graph g;
  Output ids = placeholder(g, "ids", i32, {any});
  Output rows = nn::embedding(ids, 1'000'000, 64, {.name = "words"});
  Node& train = Adagrad{0.1}.minimize(mean(square(rows - 1)));
  Session session{g};
  session.run({initialize_variables(g)});
  const Tensor read = Tensor::of<int32_t>({2}, {3, 999'999}), other = Tensor::of<int32_t>({1}, {4});
  const auto before = all_of<float>(session.run({{ids, read}}, {rows})[0]);
  const auto kept = all_of<float>(session.run({{ids, other}}, {rows})[0]);
  session.run({{ids, read}}, {train});
  const auto after = all_of<float>(session.run({{ids, read}}, {rows})[0]);
  for (size_t i = 0; i < after.size(); ++i) EXPECT_GT(after[i], before[i]);
  EXPECT_EQ(all_of<float>(session.run({{ids, other}}, {rows})[0]), kept);
}

TEST(PublicApi, ReductionsOfAllAxesTakeOptions) {
  Graph g;
  Output x = constant(g, {{1.0F, 2.0F, 3.0F}, {4.0F, 5.0F, 9.0F}});
  Output all_of_it = mean(x, {.keep_dims = true});
  EXPECT_EQ(all_of_it.shape(), Shape({1, 1}));
  EXPECT_THAT(values(all_of_it), ElementsAre(4));
  EXPECT_THAT(values(mean(x, {1})), ElementsAre(2, 6));
  EXPECT_THAT(values(var(x, 1)),
              ElementsAre(FloatNear(2.0F / 3, 1e-6F), FloatNear(14.0F / 3, 1e-6F)));
  EXPECT_THAT(values(norm(constant(g, {3.0F, 4.0F}))), ElementsAre(5));
  EXPECT_EQ(norm(x, {.keep_dims = true}).shape(), Shape({1, 1}));
  EXPECT_THAT(values(sort(constant(g, {3.0F, 1.0F, 2.0F}))), ElementsAre(1, 2, 3));
  EXPECT_THAT(values<int32_t>(argsort(constant(g, {3.0F, 1.0F, 2.0F}))), ElementsAre(1, 2, 0));
  EXPECT_THAT(values<int64_t>(argmax(x)), ElementsAre(5));
  EXPECT_THAT(values(softmax(zeros(g, {2, 3}), 0)), testing::Each(0.5F));
  Output of_any_rank = placeholder(g, "of_any_rank", f32);
  EXPECT_THAT(values(softmax(of_any_rank, -2), {{of_any_rank, Tensor::zeros({2, 3})}}),
              testing::Each(0.5F));
  EXPECT_EQ(squeeze(x[{newaxis, all}], 0).shape(), Shape({2, 3}));
}

TEST(PublicApi, NumbersAndListsConvertToTensors) {
  Graph g;
  Output w = variable(g, "w", {2, 2}), n = variable(g, "n", {}, i64);
  Output rows = constant(g, {{1.0F, 2.0F}, {3.0F, 4.0F}, {5.0F, 6.0F}});
  EXPECT_THAT(values(take(rows, {2, 0})), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(values(take(rows, 1)), ElementsAre(3, 4));
  EXPECT_THAT(values(assign(w, 3)), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(values(assign(w, {{1, 2}, {3, 4}})), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values<int64_t>(assign_add(n, 5)), ElementsAre(5));
  EXPECT_THAT(values(scatter_add(w, {1}, 0.5)), ElementsAre(0, 0, 0.5, 0.5));
  EXPECT_THAT(values<int64_t>(constant(g, {1, 2}, i64)), ElementsAre(1, 2));
  EXPECT_THAT(values<double>(constant(g, 0.1, f64)), ElementsAre(0.1)) << "and not 0.1F";
  EXPECT_THROW(constant(g, {0.5}, i32), Error);
  EXPECT_THROW(constant(g, "text", f32), Error);
}

TEST(PublicApi, VariablesStartWithTheirInitialValue) {
  Graph g;
  Output from_output = variable(g, "a", constant(g, {1.0F, 2.0F}));
  Output from_tensor = variable(g, "b", Tensor::of<double>({2}, {3, 4}));
  Output from_number = variable(g, "c", 5);
  Output by_options = variable(
      g, "d", {2}, {.initializer = initializers::ones(), .dtype = i32, .trainable = false});
  EXPECT_THAT(values(from_output), ElementsAre(1, 2));
  EXPECT_THAT(values<double>(from_tensor), ElementsAre(3, 4));
  EXPECT_THAT(values<int32_t>(from_number), ElementsAre(5));
  EXPECT_THAT(values<int32_t>(by_options), ElementsAre(1, 1));
  EXPECT_EQ(trainable_variables(g).size(), 3U);
  EXPECT_TRUE(same(global_step(g), global_step(g)));
}

TEST(PublicApi, RunReturnsTheRequestedValues) {
  Graph g;
  Output x = placeholder(g, "x", f32, {2}), w = variable(g, "w", 1.0F);
  Output y = x * w, loss = sum(y);
  Node& grow = group(g, {assign_add(w, 1)});
  Session session(g);
  session.run(initialize_variables(g));
  const std::vector<Tensor> both = session.run({{x, {3, 4}}}, {y, grow, loss});
  ASSERT_EQ(both.size(), 2U) << "the node has no value";
  EXPECT_EQ(both[0].shape(), Shape({2}));
  EXPECT_EQ(session.run({w})[0].item<float>(), 2);
  EXPECT_EQ(session.run(w).item<float>(), 2);
  EXPECT_EQ(session.run({{x, {1, 1}}}, loss).item<float>(), 4);
  session.run(grow);
  EXPECT_EQ(session.run(w).item<float>(), 3);
  const Callable step = session.prepare({x}, {loss});
  EXPECT_EQ(step(Tensor::of<float>({2}, {1, 2}))[0].item<float>(), 9);
}

TEST(PublicApi, TensorsConvertFromAndToVectors) {
  const std::vector<float> v = {1, 2, 3, 4};
  EXPECT_EQ(Tensor::of(v).shape(), Shape({4}));
  EXPECT_EQ(Tensor::of({2, 2}, v).shape(), Shape({2, 2}));
  EXPECT_EQ(Tensor::of({2, 2}, v).to_vector<float>(), v);
  EXPECT_THAT(Tensor::zeros({2}).to_vector<float>(), ElementsAre(0, 0));
}

TEST(PublicApi, LayersTakeATrainingFlag) {
  Graph g;
  Output training = placeholder(g, "training", boolean);
  Output x = ones(g, {4, 100});
  Output dropped = nn::dropout(x, 0.5, {.training = training, .seed = 1});
  EXPECT_THAT(values(dropped, {{training, false}}), testing::Each(1));
  EXPECT_THAT(values(dropped, {{training, true}}),
              testing::AllOf(testing::Contains(0), testing::Contains(2)));
  EXPECT_TRUE(same(nn::dropout(x, 0.5, {.training = false}), x));

  const nn::BatchNorm layer(g, 1);
  Output y = layer(constant(g, {{1.0F}, {3.0F}}), training);
  Node& train = Sgd{0}.minimize(sum(y));
  Session session(g);
  session.run(initialize_variables(g));
  const auto run = [&](bool on) { return all_of<float>(session.run({{training, on}}, y)); };
  EXPECT_THAT(run(true), Pointwise(FloatNear(1e-3F), {-1.0F, 1.0F}));
  EXPECT_THAT(run(false), Pointwise(FloatNear(1e-2F), {1.0F, 3.0F})) << "by mean 0, variance 1";
  session.run({{training, false}}, train);
  EXPECT_EQ(session.run(layer.moving_mean()).item<float>(), 0);
  session.run({{training, true}}, train);
  EXPECT_NEAR(session.run(layer.moving_mean()).item<float>(), 0.02, 1e-6);
}

TEST(PublicApi, LayersInferTheirNumberOfInputs) {
  Graph g;
  const nn::Dense layer(g, 4, {.activation = leaky_relu});
  EXPECT_FALSE(layer.kernel());
  EXPECT_EQ(layer(zeros(g, {2, 3})).shape(), Shape({2, 4}));
  EXPECT_EQ(layer.kernel().shape(), Shape({3, 4}));
  layer(ones(g, {5, 3}));
  EXPECT_EQ(trainable_variables(g).size(), 2U);
  EXPECT_EQ(nn::relu(zeros(g, {1})).shape(), Shape({1}));
}

TEST(PublicApi, SequencesKeepTheirShapes) {
  Graph g;
  Output x = placeholder(g, "x", f32, {any, 7, 16});
  const auto [outputs, state] = nn::rnn(nn::Gru(g, 4), x);
  EXPECT_EQ(outputs.shape(), Shape({any, 7, 4}));
  EXPECT_EQ(state[0].shape(), Shape({any, 4}));
  nn::dense(outputs, 3);
  EXPECT_EQ(map_fn([](Output row) { return row * 2; }, zeros(g, {4, 7})).shape(), Shape({4, 7}));
}

TEST(PublicApi, RandomNumbersStayInBounds) {
  Graph g;
  EXPECT_THAT(values(random::uniform(g, {100}, {.low = 2, .high = 3, .seed = 1})),
              testing::Each(testing::AllOf(testing::Ge(2), testing::Lt(3))));
  const std::vector<float> drawn =
      values(random::normal(g, {1000}, {.mean = 5, .stddev = 0.1, .seed = 1}));
  EXPECT_THAT(drawn, testing::Each(FloatNear(5, 0.6F)));
  EXPECT_THROW(random::normal(g, {2}, {.stddev = -1}), Error);
  EXPECT_THROW(random::uniform(g, {2}, {.low = 1}), Error);
}

TEST(PublicApi, ClipAcceptsTensors) {
  Graph g;
  Output x = constant(g, {3.0F, 4.0F});
  EXPECT_THAT(values(clip_by_norm(x, 1)), Pointwise(FloatNear(1e-6F), {0.6F, 0.8F}));
  const std::vector<Output> clipped = clip_by_global_norm({x, Output(), x * 0}, 2.5);
  EXPECT_THAT(values(clipped[0]), Pointwise(FloatNear(1e-6F), {1.5F, 2.0F}));
  EXPECT_FALSE(clipped[1]);
}

TEST(PublicApi, GeneratorsMayYieldSingleTensors) {
  Graph g;
  auto count = std::make_shared<int>(0);
  const auto numbers = datasets::generator(
      [count]() -> std::optional<Tensor> {
        if (*count == 2) return std::nullopt;
        return Tensor::scalar(++*count);
      },
      i32);
  for (Output each : numbers.batch(2).next(g))
    EXPECT_THAT(values<int32_t>(each), ElementsAre(1, 2));
}

TEST(PublicApi, HooksArePassedAsOptions) {
  Graph g;
  Output w = variable(g, "w", 1.0F);
  Node& train = Momentum{0.1, 0.5}.minimize(square(w), {.global_step = global_step(g)});
  TrainingSession session(
      g,
      {.train = train, .global_step = global_step(g), .hooks = {std::make_shared<StopAtStep>(3)}});
  while (!session.should_stop()) session.step({});
  EXPECT_EQ(session.global_step(), 3);
}

TEST(PublicApi, SaversMayCoverSomeVariables) {
  const auto directory =
      std::filesystem::temp_directory_path() / concat("leat_public_api_", ::getpid(), "_saver");
  std::filesystem::create_directories(directory);
  EXPECT_EQ(latest_checkpoint(directory.string()), "");
  Graph g;
  Output a = variable(g, "a", 1.0F), b = variable(g, "b", 2.0F);
  Saver saver(g, {a});
  Session session(g);
  session.run(initialize_variables(g));
  saver.save(session, directory.string(), 3);
  session.run({assign(a, 5), assign(b, 6)});
  saver.restore(session, latest_checkpoint(directory.string()));
  EXPECT_EQ(session.run(a).item<float>(), 1);
  EXPECT_EQ(session.run(b).item<float>(), 6);
  std::filesystem::remove_all(directory);
}

TEST(PublicApi, DatasetFunctionsReportOuterValues) {
  Graph g;
  Output outside = constant(g, int64_t{3});
  const auto numbers = datasets::range(3);
  try {
    numbers.map([&](Output x) { return x + outside; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(),
                testing::HasSubstr("can use only its arguments and values computed"));
    EXPECT_THAT(error.message(), testing::HasSubstr("public_api_test.cc:"));
  }
}

}  // namespace
