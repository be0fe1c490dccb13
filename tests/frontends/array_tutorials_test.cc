// What tutorials of TensorFlow 1 and NumPy do with arrays, images and texts, their derivatives, and
// lists that loops fill. Values are NumPy's or TensorFlow's.
#include <set>

#include "frontends/cpp/control_flow/cond.h"
#include "frontends/cpp/control_flow/custom_gradient.h"
#include "frontends/cpp/control_flow/function.h"
#include "frontends/cpp/control_flow/jacobian.h"
#include "frontends/cpp/control_flow/tensor_list.h"
#include "frontends/cpp/control_flow/while_loop.h"
#include "frontends/cpp/optimizers/optimizers.h"
#include "graph/gradient.h"
#include "tests/frontends/tutorials.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;

// ---- Arrays ----

TEST_F(Tutorials, SortsAlongAnAxis) {
  EXPECT_THAT(values(sort(x)), ElementsAre(1, 2, 3, -1, 0.5, 0.5));
  EXPECT_THAT(values(sort(x, 0)), ElementsAre(0.5, 0.5, -1, 3, 1, 2));
  EXPECT_THAT(values<int>(argsort(x)), ElementsAre(1, 2, 0, 2, 0, 1));
  EXPECT_THAT(values<int>(argsort(x, 0)), ElementsAre(1, 1, 1, 0, 0, 0));
  EXPECT_THAT(values<int>(argsort(constant(g, {2, -3, 2, 0}))), ElementsAre(1, 3, 0, 2));
  const Output cube = reshape(concatenate({x, -x}), {2, 2, 3});
  EXPECT_EQ(sort(cube, 1).shape(), Shape({2, 2, 3}));
  EXPECT_THAT(values(sort(cube, -2)[1]), ElementsAre(-3, -1, -2, -0.5, -0.5, 1));
  EXPECT_THAT(values(gradients(sum(sort(x, 0)[0] * v), x)[0]), ElementsAre(0, 0, 0, 1, -2, 3));
  expect_error_with(Code::invalid_argument, "the extent of axis 2 of its input must be known",
                    [&] { sort(x, 2); });
}

TEST_F(Tutorials, TakesAlongAnAxis) {
  EXPECT_THAT(values(take_along_axis(x, argsort(x), -1)), ElementsAre(1, 2, 3, -1, 0.5, 0.5));
  EXPECT_THAT(values(take_along_axis(x, argsort(x, 0), 0)), ElementsAre(0.5, 0.5, -1, 3, 1, 2));
  const Output most = expand_dims(argmax(x, 1), 1);
  EXPECT_THAT(values(take_along_axis(x, most, 1)), ElementsAre(3, 0.5));
  EXPECT_THAT(values(gradients(sum(take_along_axis(x, most, 1)), x)[0]),
              ElementsAre(1, 0, 0, 1, 0, 0));
  expect_error_with(Code::invalid_argument, "the other extents must be equal",
                    [&] { take_along_axis(x, constant(g, {{0}}), 1); });
  expect_error_with(Code::invalid_argument, "of the same known rank as x",
                    [&] { take_along_axis(x, constant(g, {0}), 1); });
  expect_error_with(Code::invalid_argument, "", [&] {
    values(take_along_axis(x, constant(g, {{3}, {0}}), 1));
  });
}

TEST_F(Tutorials, CountsAndSearches) {
  EXPECT_THAT(values<int>(bincount(constant(g, {1, 3, 1}))), ElementsAre(0, 2, 0, 1));
  EXPECT_THAT(values<int>(bincount(constant(g, {{1, 0}}, i64), {.minlength = 3})),
              ElementsAre(1, 1, 0));
  EXPECT_THAT(values(bincount(constant(g, {1, 3, 1}), {.weights = v})), ElementsAre(0, 4, 0, -2));
  const Output sorted = constant(g, {1.0, 3.0, 3.0, 5.0});
  EXPECT_THAT(values<int>(searchsorted(sorted, {0.0, 3.0, 6.0})), ElementsAre(0, 1, 4));
  EXPECT_THAT(values<int>(searchsorted(sorted, {{3.0}, {1.0}}, {.right = true})),
              ElementsAre(3, 1));
  EXPECT_THAT(values(full_like(x, 7)), testing::Each(7));
  EXPECT_EQ(full_like(constant(g, {1, 2}), 7).dtype(), i32);
  const auto [columns, rows] = meshgrid(constant(g, {1, 2, 3}), constant(g, {4, 5}));
  EXPECT_THAT(values<int>(columns), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(values<int>(rows), ElementsAre(4, 4, 4, 5, 5, 5));
  EXPECT_THAT(values(reverse_sequence(x, constant(g, {2, 3}))), ElementsAre(1, 3, 2, -1, 0.5, 0.5));
  expect_error_with(Code::invalid_argument, "bincount (", [&] { bincount(v); });
  expect_error_with(Code::invalid_argument, "meshgrid (", [&] { meshgrid(x, v); });
}

TEST_F(Tutorials, DecomposesMatrices) {
  const Output a = constant(g, {{4.0, 1.0}, {1.0, 3.0}, {0.0, 2.0}}), square = a[slice(2)];
  const auto [u, s, vh] = svd(a);
  expect_near(matmul(u * s, vh), {4, 1, 1, 3, 0, 2});
  expect_near(s, {4.76014F, 2.88810F}, 1e-4F);
  const auto [eigenvalues, vectors] = eigh(square);
  expect_near(eigenvalues, {2.381966F, 4.618034F});
  expect_near(matmul(vectors * eigenvalues, transpose(vectors)), {4, 1, 1, 3});
  const auto [q, r] = qr(a);
  expect_near(matmul(q, r), {4, 1, 1, 3, 0, 2});
  expect_near(matmul(q, q, {.transpose_a = true}), {1, 0, 0, 1});
  const Output b = constant(g, {{1.0}, {2.0}, {3.0}});
  expect_near(solve_triangular(square, b[slice(2)]), {0.25F, 0.583333F});
  expect_near(solve_triangular(square, b[slice(2)], {.lower = false}), {0.083333F, 0.666667F});
  expect_near(lstsq(a, b), {-0.037037F, 0.947090F});
  expect_near(cross(v, constant(g, {0.0, 1.0, 0.0})), {-3, 0, 1});
  expect_error_with(Code::invalid_argument, "svd (", [&] { svd(v); });
}

TEST_F(Tutorials, DrawsFromMoreDistributions) {
  // Within five standard deviations.
  EXPECT_NEAR(values(mean(random::gamma(g, {10'000}, 2.0, {.scale = 3, .seed = 1})))[0], 6, 0.22);
  const Output counts = random::poisson(g, {10'000}, 4.0, {.dtype = i32, .seed = 1});
  EXPECT_EQ(counts.dtype(), i32);
  EXPECT_NEAR(values(mean(counts))[0], 4, 0.1);
  EXPECT_EQ(random::gamma(g, {2}, v * v).shape(), Shape({2, 3}));
  const Output image = reshape(arange(g, 60), {4, 5, 3});
  const Output part = random::crop(image, {2, 5, 3}, {.seed = 3});
  Session session(g);
  std::set<int> begins;
  for (int i = 0; i < 60; ++i) {
    const Tensor t = session.run(part);
    begins.insert(t.data<int>()[0] / 15);
    EXPECT_EQ(t.data<int>()[29] - t.data<int>()[0], 29);
  }
  EXPECT_THAT(begins, ElementsAre(0, 1, 2));
}

TEST_F(Tutorials, Images) {
  const Output image = cast(reshape(arange(g, 48), {4, 4, 3}) * 5, u8);
  EXPECT_THAT(values<uint8_t>(decode_image(encode_png(image))),
              Pointwise(testing::Eq(), values<uint8_t>(image)));
  EXPECT_EQ(decode_image(encode_jpeg(image), {.channels = 1, .dtype = f32}).dtype(), f32);
  const Output standard = per_image_standardization(image);
  expect_near(mean(standard), {0}, 1e-4F);
  expect_near(stddev(standard), {1}, 1e-4F);
  EXPECT_THAT(values(per_image_standardization(ones(g, {2, 2, 2, 1}))), testing::Each(0));
  Session session(g);
  EXPECT_THAT(session.run(image_summary("pictures", expand_dims(image, 0))).item<std::string>(),
              HasSubstr("pictures/image"));
}

TEST_F(Tutorials, HashesAndSparseTensors) {
  const std::vector<int64_t> ids =
      values<int64_t>(string_to_hash_bucket(constant(g, {"a", "b", "a"}), 1'000'000));
  EXPECT_EQ(ids[0], ids[2]);
  EXPECT_NE(ids[0], ids[1]);
  const SparseTensor sparse = sparse_from_dense(constant(g, {{0, 7}, {8, 0}}));
  EXPECT_THAT(values<int>(sparse.values), ElementsAre(7, 8));
  EXPECT_THAT(values<int>(sparse_to_dense(sparse)), ElementsAre(0, 7, 8, 0));
  expect_error_with(Code::invalid_argument, "write string_to_number(x, dtype)",
                    [&] { cast(constant(g, {"1"}), f32); });
  expect_error_with(Code::invalid_argument, "write as_string(x)", [&] { cast(v, str); });
}

// ---- Gradients ----

TEST_F(Tutorials, Jacobians) {
  const Output w = variable(g, "w", v);
  EXPECT_THAT(values(jacobian(square(w), w)), ElementsAre(2, 0, 0, 0, -4, 0, 0, 0, 6));
  const Output y = matmul(x, expand_dims(w, 1));  // [2, 1]
  EXPECT_EQ(jacobian(y, w).shape(), Shape({2, 1, 3}));
  EXPECT_THAT(values(jacobian(y, w)), ElementsAre(3, 1, 2, 0.5, 0.5, -1));
  EXPECT_THAT(values(jacobian(v, w)), testing::Each(0)) << "v does not depend on w";
  const auto [i, power] = while_loop([](Output i, Output) { return i < 2; },
                                     [&](Output i, Output p) {
                                       return std::tuple{i + 1, p * w};
                                     },
                                     0, ones_like(v));
  EXPECT_THAT(values(jacobian(power, w)), ElementsAre(2, 0, 0, 0, -4, 0, 0, 0, 6));
  const Output chosen = cond(
      sum(w) > 0, [&] { return w * w * w; }, [&] { return w; });
  EXPECT_THAT(values(jacobian(chosen, w)), ElementsAre(3, 0, 0, 0, 12, 0, 0, 0, 27));
  EXPECT_THAT(values(gradients(sum(jacobian(w * w * w, w)), w)[0]), ElementsAre(6, -12, 18));
  const Output fed = placeholder(g, "fed", f32, {any});
  EXPECT_THAT(values(jacobian(fed * 3, fed), {{fed, {1.0, 2.0}}}), ElementsAre(3, 0, 0, 3));
  expect_error_with(Code::invalid_argument, "jacobian (", [&] { jacobian(Output(), w); });
}

TEST_F(Tutorials, Hessians) {
  const Output w = variable(g, "w", constant(g, {2.0, 3.0})), b = variable(g, "b", 4.0);
  const Output loss = w[0] * w[0] * w[1] + b * b * w[0];
  const std::vector<Output> all = hessians(loss, {w, b});
  EXPECT_THAT(values(all[0]), ElementsAre(6, 4, 4, 0));
  EXPECT_THAT(values(all[1]), ElementsAre(4));
  EXPECT_THAT(values(hessians(sum(w), w)[0]), ElementsAre(0, 0, 0, 0));
}

TEST_F(Tutorials, CustomGradients) {
  const Output big = constant(g, {100.0, 0.0});
  const auto log1pexp = [](Output x) {
    return custom_gradient([](Output x) { return log(1 + exp(x)); },
                           [](Output x, Output dy) { return dy * sigmoid(x); }, x);
  };
  EXPECT_THAT(values(gradients(sum(log1pexp(big)), big)[0]), ElementsAre(1, 0.5));
  // Of both orders, in a loop, of a function's copies, of two inputs and two results.
  const Output zero = constant(g, {0.0});
  const Output slope = gradients(sum(log1pexp(zero)), zero)[0];
  EXPECT_THAT(values(gradients(sum(slope), zero)[0]), ElementsAre(0.25));
  const auto ten_times = [](Output x) {
    return custom_gradient([](Output x) { return x * x; },
                           [](Output x, Output dy) { return 10 * x * dy; }, x);
  };
  const auto [i, y] = while_loop([](Output i, Output) { return i < 2; },
                                 [&](Output i, Output y) {
                                   return std::tuple{i + 1, ten_times(y)};
                                 },
                                 0, v);
  // y = (v²)²: 10 v² · 10 v.
  EXPECT_THAT(values(gradients(sum(y), v)[0]), ElementsAre(100, -800, 2700));
  const Function f = function(g, "f", {f32}, ten_times);
  EXPECT_THAT(values(gradients(sum(f(v) + f(2 * v)), v)[0]), ElementsAre(50, -100, 150));
  const Output w = constant(g, {1.0, 1.0, 2.0});
  const auto [product, total] = custom_gradient(
      [](Output a, Output b) {
        return std::tuple{a * b, a + b};
      },
      [](Output a, Output, Output d_product, Output d_total) {
        return std::tuple{d_product * a, d_total * 3};
      },
      v, w);
  const std::vector<Output> both = gradients({sum(product), sum(total * total)}, {v, w});
  EXPECT_THAT(values(both[0]), ElementsAre(1, -2, 3));
  EXPECT_THAT(values(both[1]), ElementsAre(12, -6, 30));
  // What it captures gets no gradient.
  const Output captured =
      custom_gradient([&](Output x) { return x * w; }, [](Output, Output dy) { return dy; }, v);
  EXPECT_FALSE(gradients(sum(captured), w)[0]);
  EXPECT_THAT(values(gradients(sum(captured), v)[0]), ElementsAre(1, 1, 1));
}

// ---- Lists ----

TEST_F(Tutorials, LoopsFillLists) {
  const TensorList rows(g, f32, {3});
  const auto [n, list] =
      while_loop([](Output n, Output) { return n < 3; },
                 [&](Output n, Output list) {
                   const Output row = v * cast(n, f32);
                   return std::tuple<Output, Output>{n + 1, rows.with(list).push_back(row * row)};
                 },
                 0, rows);
  const Output all_rows = rows.with(list).stack();
  EXPECT_EQ(all_rows.shape(), Shape({any, 3}));
  EXPECT_THAT(values(all_rows), ElementsAre(0, 0, 0, 1, 4, 9, 4, 16, 36));
  EXPECT_THAT(values<int>(rows.with(list).size()), ElementsAre(3));
  EXPECT_THAT(values(gradients(sum(all_rows), v)[0]), ElementsAre(10, -20, 30));

  TensorList three(g, f32, {}, {.size = 3});
  three = three.set(1, v[0]).set(2, v[1]);
  EXPECT_THAT(values(three.stack()), ElementsAre(0, 1, -2));
  EXPECT_THAT(values(gradients(three.get(2) * 5, v)[0]), ElementsAre(0, 5, 0));
  const auto [shorter, last] = TensorList::of(x).pop_back();
  EXPECT_THAT(values(last), ElementsAre(0.5, 0.5, -1));
  EXPECT_THAT(values(shorter.get(0)), ElementsAre(3, 1, 2));
  expect_error_with(Code::invalid_argument, "the elements of the list are float[3], got Const",
                    [&] { rows.push_back(constant(g, {1.0})); });
  expect_error_with(Code::invalid_argument, "needs a list", [&] { rows.with(x); });
  expect_error_with(Code::invalid_argument, "", [&] { values(three.get(7)); });
}

// TensorFlow's gradients of tf.gather(p, i, axis, batch_dims = 1).
TEST_F(Tutorials, GradientsOfGathersInBatches) {
  const Output p = reshape(arange(g, 24.0), {2, 3, 4}), i = constant(g, {{2, 0}, {1, 1}});
  const auto gradient = [&](Output params, Output indices, int axis) {
    const Output y = op("GatherV2", {params, indices, constant(g, axis)}, {{"batch_dims", 1}});
    return gradients(sum(y * y), p)[0];
  };
  EXPECT_THAT(values(gradient(p, i, 1)),
              testing::ElementsAre(0, 2, 4, 6, 0, 0, 0, 0, 16, 18, 20, 22, 0, 0, 0, 0, 64, 68, 72,
                                   76, 0, 0, 0, 0));
  EXPECT_THAT(values(gradient(p, i, 2)),
              testing::ElementsAre(0, 0, 4, 0, 8, 0, 12, 0, 16, 0, 20, 0, 0, 52, 0, 0, 0, 68, 0, 0,
                                   0, 84, 0, 0));
  // Extents that only the step knows, and indices of another type.
  const Output fed = placeholder(g, "fed", f32, {any, any, any});
  const Output y = op("GatherV2", {fed, cast(i, i64), constant(g, 1)}, {{"batch_dims", 1}});
  const Output dx = gradients(sum(y * y), fed)[0];
  Session session(g);
  EXPECT_THAT(session.run({{fed, session.run(p)}}, dx).to_vector<float>(),
              testing::ElementsAreArray(values(gradient(p, i, 1))));
}

}  // namespace
}  // namespace leat
