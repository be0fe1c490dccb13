// Programs as their authors type them, with the one include: what the front door promises.
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

// The elements of what a step gives for `y`.
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

TEST(PublicApi, ARegressionLearns) {
  Graph g;
  Output x = placeholder(g, "x", f32, {any, 2}), y = placeholder(g, "y", f32, {any, 1});
  Output h =
      nn::dense(x, 8, {.activation = tanh, .kernel_initializer = initializers::glorot_uniform(3)});
  Output loss =
      mean(square(nn::dense(h, 1, {.kernel_initializer = initializers::glorot_uniform(4)}) - y));
  Node& train = Adam{1e-1}.minimize(loss);
  Session session{g};
  session.run({initialize_variables(g)});
  const Tensor xs = Tensor::of<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1}),
               ys = Tensor::of<float>({4, 1}, {0, 1, 1, 0});
  for (int step = 0; step < 200; ++step) session.run({{x, xs}, {y, ys}}, {train});
  EXPECT_LT(session.run({{x, xs}, {y, ys}}, {loss})[0].value<float>(), 0.01F);
}

class Arrays : public testing::Test {
 protected:
  Graph g;
  Output x = constant(g, {{0.0F, 1.0F, 2.0F, 3.0F}, {4.0F, 5.0F, 6.0F, 7.0F}});
  Output a = constant(g, {{1, 2}, {3, 4}}), b = constant(g, {{5, 6}, {7, 8}});
};

TEST_F(Arrays, Reductions) {
  EXPECT_THAT(values(mean(x, 1)), ElementsAre(1.5, 5.5));
  EXPECT_EQ(mean(x, {0, 1}, {.keep_dims = true}).shape(), Shape({1, 1}));
  EXPECT_THAT(values(mean(x, {0, 1}, {.keep_dims = true})), ElementsAre(3.5));
  EXPECT_THAT(values(sum(x)), ElementsAre(28));
  EXPECT_THAT(values(max(x, -1)), ElementsAre(3, 7));
  EXPECT_THAT(values(min(x, 0)), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values<int64_t>(argmax(x, 1)), ElementsAre(3, 3));
}

TEST_F(Arrays, Shapes) {
  EXPECT_EQ(reshape(x, {-1, 2, 2}).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(values(transpose(x, {1, 0})), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(values(transpose(x)), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(values(x[0]), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(x[{all, slice(0, 2)}]), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ((x[{newaxis, all}].shape()), Shape({1, 2, 4}));
}

TEST_F(Arrays, Choices) {
  EXPECT_THAT(values(where(x > 0.5, x, 0)), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(values(clip(x, 0, 1)), ElementsAre(0, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(values(one_hot(constant(g, {1, 0}), 3)), ElementsAre(0, 1, 0, 1, 0, 0));
  EXPECT_THAT(values<int32_t>(concatenate({a, b}, 1)), ElementsAre(1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_EQ(stack({a, b}).shape(), Shape({2, 2, 2}));
  EXPECT_THAT(values(split(x, 4, 1)[2]), ElementsAre(2, 6));
}

TEST_F(Arrays, Made) {
  EXPECT_THAT(values(zeros(g, {2, 3})), testing::Each(0));
  EXPECT_THAT(values<int32_t>(full(g, {2}, 7)), ElementsAre(7, 7));
  EXPECT_THAT(values<int32_t>(arange(g, 4)), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(values(random::normal(g, {2, 3}, {.seed = 1})),
            values(random::normal(g, {2, 3}, {.seed = 1})));
  EXPECT_THAT(values(constant(g, 1.0f)), ElementsAre(1));
  EXPECT_THAT(values<int32_t>(constant(g, {{1, 2}, {3, 4}})), ElementsAre(1, 2, 3, 4));
}

TEST_F(Arrays, ProductsAndCasts) {
  Output m = reshape(arange(g, 12), {2, 2, 3}), n = reshape(arange(g, 6), {2, 3, 1});
  EXPECT_THAT(values<int32_t>(einsum("bij,bjk->bik", m, n)), ElementsAre(5, 14, 86, 122));
  EXPECT_EQ(cast(x, bf16).dtype(), bf16);
  x += 1;
  EXPECT_THAT(values(x), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(PublicApi, GradientsOfWhatIsNoLoss) {
  Graph g;
  Output x = constant(g, {{1.0F, 2.0F}}), w = variable(g, "w", {2, 1}, initializers::ones());
  Output v = constant(g, {{1.0F}, {-1.0F}});
  Output loss = sum(square(matmul(x, w)));
  std::vector<Output> dx = gradients({loss}, {x, w});
  Output hv = gradients({sum(dx[1] * v)}, {w})[0];
  EXPECT_THAT(values(dx[0]), ElementsAre(6, 6));
  EXPECT_THAT(values(dx[1]), ElementsAre(6, 12));
  EXPECT_THAT(values(hv), ElementsAre(-2, -4)) << "2 xᵀ x v";
}

TEST(PublicApi, ControlFlowIsValuesInValuesOut) {
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
  // Behind its end a sequence has zeros.
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

TEST(PublicApi, APipelineIsPartOfTheGraph) {
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

TEST(PublicApi, StateStandsBesideVariables) {
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
  EXPECT_EQ(session.run({}, {t})[0].value<int64_t>(), 7);
  for (int i = 0; i < 3; ++i) session.run({push});
  EXPECT_THAT(all_of<float>(session.run({}, {m})[0]), ElementsAre(2, 4));
}

TEST(PublicApi, EmbeddingsLearnTheRowsThatTheyRead) {
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

}  // namespace
