// Datasets of the C++ API, read in this process and on a cluster.
#include "frontends/cpp/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "frontends/cpp/data/csv.h"
#include "frontends/cpp/data/data.h"
#include "frontends/cpp/session.h"
#include "graph/formats/image_file.h"
#include "graph/import/graph_def.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/scratch_directory.h"

namespace leat {
namespace {

using testing::ElementsAre;
using testing::Pointwise;
using testing::UnorderedElementsAre;

class Datasets : public testing::Test {
 protected:
  // One component of all elements, in order.
  template <class T = int64_t>
  std::vector<T> all(const Dataset& dataset, int component = 0) {
    Graph g;
    const Output next = dataset.next(g)[component];
    Session session(g, options);
    std::vector<T> out;
    while (true) {
      Tensor value;
      const Status status = error_of([&] { value = session.run({}, {next})[0]; });
      if (status.code == Code::out_of_range) return out;
      EXPECT_TRUE(status.is_ok()) << status.to_string();
      if (!status.is_ok()) return out;
      const auto span = value.span<T>();
      out.insert(out.end(), span.begin(), span.end());
    }
  }

  std::string file(const std::string& name, const std::string& text) {
    const std::string path = directory / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  ScratchDirectory directory;
  SessionOptions options;
};

// On a cluster the functions travel in the graph's library.
class DatasetsOfACluster : public Datasets {
 protected:
  DatasetsOfACluster() { options.target = cluster.target("worker", 0); }
  InProcessCluster cluster{{{"worker", 1}}};
};

TEST_F(Datasets, SelectAndOrderElements) {
  const Dataset ten = datasets::range(10);
  EXPECT_THAT(all(ten.skip(2).take(3)), ElementsAre(2, 3, 4));
  EXPECT_THAT(all(ten.shard(3, 1)), ElementsAre(1, 4, 7));
  EXPECT_THAT(all(ten.take(2).repeat(3)), ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(all(ten.take(2).concatenate(datasets::range(5, 0, -2))), ElementsAre(0, 1, 5, 3, 1));
  EXPECT_THAT(all(ten.take(4).cache().repeat(2).prefetch(2)), ElementsAre(0, 1, 2, 3, 0, 1, 2, 3));
  const std::vector<int64_t> once = all(ten.shuffle(5, 7)), again = all(ten.shuffle(5, 7));
  EXPECT_EQ(once, again);
  EXPECT_THAT(once, UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_NE(once, all(ten));
}

TEST_F(Datasets, SharesAreCutRightBehindTheSource) {
  const Dataset ten = datasets::range(10);
  const auto squares = [](Output i) { return i * i; };
  EXPECT_THAT(all(ten.map(squares).share(3, 1)), ElementsAre(1, 16, 49));
  // Whole batches of a share, not every third batch.
  EXPECT_THAT(all(ten.batch(2).share(3, 0)), ElementsAre(0, 3, 6, 9));
  EXPECT_THAT(all(ten.batch(2).take(2).share(2, 1)), ElementsAre(2, 3));
  EXPECT_THAT(all(ten.shuffle(10, 1).repeat(2).share(5, 2)), UnorderedElementsAre(2, 7, 2, 7));
  EXPECT_THAT(
      all(datasets::zip({ten, ten}).map([](Output a, Output b) { return a + b; }).share(4, 3)),
      ElementsAre(6, 14));
  EXPECT_THAT(all(ten.share(1, 0)), testing::SizeIs(10));
  // Both workers read the one file, which holds all elements.
  const Dataset cached = ten.map(squares).cache(directory / "cache");
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(all(cached.share(5, 1)), ElementsAre(1, 36));
    EXPECT_THAT(all(cached.share(5, 2)), ElementsAre(4, 49));
  }
}

TEST_F(Datasets, MapAndFilterWithFunctions) {
  const Dataset squares = datasets::range(6).map([](Output x) { return x * x; });
  EXPECT_THAT(all(squares), ElementsAre(0, 1, 4, 9, 16, 25));
  EXPECT_THAT(all(squares.filter([](Output x) { return x % 2 == 0; })), ElementsAre(0, 4, 16));
  const Dataset pairs = squares.map([](Output x) { return std::tuple{x, cast(x, f32) / 2}; });
  EXPECT_THAT(all<float>(pairs, 1), ElementsAre(0, .5, 2, 4.5, 8, 12.5));
  EXPECT_THAT(all<float>(pairs.map([](Output x, Output y) { return cast(x, f32) + y; })),
              ElementsAre(0, 1.5, 6, 13.5, 24, 37.5));
  const Dataset nested = datasets::range(3).flat_map(
      [](Output) { return datasets::range(3).map([](Output x) { return x + 10; }).take(2); });
  EXPECT_THAT(all(nested), ElementsAre(10, 11, 10, 11, 10, 11));
}

TEST_F(Datasets, BatchElements) {
  const Dataset ten = datasets::range(10);
  EXPECT_EQ(ten.batch(4).components()[0].shape, (Shape{any}));
  EXPECT_EQ(ten.batch(4, {.drop_remainder = true}).components()[0].shape, (Shape{4}));
  EXPECT_THAT(all(ten.batch(4).map([](Output b) { return sum(b); })), ElementsAre(6, 22, 17));
  EXPECT_THAT(all(ten.batch(4, {.drop_remainder = true}).map([](Output b) { return sum(b); })),
              ElementsAre(6, 22));
  const Dataset rows =
      ten.take(4).map([](Output n) { return full(n.graph(), reshape(n, {1}), n); });
  EXPECT_THAT(all(rows.padded_batch(2)), ElementsAre(0, 1, 2, 2, 0, 3, 3, 3));
  EXPECT_THAT(all(rows.padded_batch(4, {.shapes = {{3}}, .values = {-1}})),
              ElementsAre(-1, -1, -1, 1, -1, -1, 2, 2, -1, 3, 3, 3));
}

TEST_F(Datasets, ReadAndZipTensors) {
  const Dataset rows = datasets::from_tensor_slices(
      {Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}), Tensor::of<int32_t>({3}, {7, 8, 9})});
  EXPECT_THAT(all<float>(rows), ElementsAre(1, 2, 3, 4, 5, 6));
  const Dataset both =
      datasets::zip({rows, datasets::range(100)}).named({"x", "y", "number"}).batch(2);
  EXPECT_THAT(all<int32_t>(both, 1), ElementsAre(7, 8, 9));
  Graph g;
  const Batch batch = both.next(g);
  EXPECT_EQ(batch["x"].shape(), (Shape{any, 2}));
  EXPECT_TRUE(same(batch["number"], batch[2]));
  expect_error([&] { batch["z"]; }, Code::not_found,
               "the batch has no component 'z'; it has 'x', 'y', 'number'");
}

TEST_F(Datasets, TensorsMayHaveNames) {
  Graph g;
  const Batch batch = datasets::from_tensor_slices({{"x", Tensor::of<float>({2}, {1, 2})},
                                                    {"label", Tensor::of<int32_t>({2}, {7, 8})}})
                          .batch(2)
                          .next(g);
  EXPECT_THAT(batch.names(), ElementsAre("x", "label"));
  EXPECT_EQ(batch["label"].dtype(), i32);
}

TEST_F(Datasets, ReadFiles) {
  const std::string a = file("a.txt", "one\ntwo\n"), b = file("b.txt", "three");
  EXPECT_THAT(all<std::string>(datasets::text_files({a, b})), ElementsAre("one", "two", "three"));
  const Dataset found = datasets::files(directory / "*.txt");
  const auto lines = [](Output path) { return datasets::text_files(reshape(path, {1})); };
  EXPECT_THAT(all<std::string>(found.flat_map(lines)), ElementsAre("one", "two", "three"));
  EXPECT_THAT(all<std::string>(found.interleave(lines, {.cycle_length = 2})),
              ElementsAre("one", "three", "two"));
  const std::string table = file("t.csv", "x,y,z\n1,2.5,c\n,7,d\n");
  const Dataset csv = datasets::csv(table, {-1, 0.5, ""}, {.has_header = true});
  EXPECT_THAT(all<int32_t>(csv), ElementsAre(1, -1));
  EXPECT_THAT(all<float>(csv, 1), ElementsAre(2.5, 7));
  EXPECT_THAT(all<std::string>(csv, 2), ElementsAre("c", "d"));
}

TEST_F(Datasets, ReadIdxFiles) {
  using namespace std::string_literals;
  file("train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\2"s + "\0\xff\x33\x66"s);
  file("train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\2"s + "\x04\x09"s);
  const Dataset digits = datasets::mnist(directory.path());
  EXPECT_EQ(digits.batch(2).components()[0].shape, (Shape{any, 2}));
  EXPECT_THAT(all<float>(digits), ElementsAre(0, 1, 0.2f, 0.4f));
  Graph g;
  const Batch batch = digits.batch(2).next(g);
  EXPECT_EQ(batch["label"].shape(), (Shape{any}));
  EXPECT_THAT(all<int32_t>(digits, 1), ElementsAre(4, 9));
  const std::string shorts = file("shorts", "\0\0\x0b\x01\0\0\0\2"s + "\x01\x02\xff\xfe"s);
  EXPECT_THAT(all<int16_t>(datasets::idx(shorts)), ElementsAre(258, -2));
}

TEST_F(Datasets, ReadFromACppFunction) {
  const auto counter = std::make_shared<int>(0);
  const Dataset made = datasets::generator(
      [counter]() -> std::optional<std::vector<Tensor>> {
        if (*counter == 3) return std::nullopt;
        return std::vector<Tensor>{Tensor::scalar(++*counter), Tensor::of<float>({1}, {0.5f})};
      },
      {{"number", i32, {}}, {"half", f32, {1}}});
  EXPECT_THAT(all<int32_t>(made.map([](Output n, Output) { return n * 2; })), ElementsAre(2, 4, 6));
}

TEST_F(Datasets, TwoReadersAreIndependent) {
  Graph g;
  const Dataset ten = datasets::range(10);
  const Output a = ten.next(g)[0], b = ten.next(g)[0];
  Session session(g);
  EXPECT_EQ(session.run({}, {a})[0].item<int64_t>(), 0);
  EXPECT_EQ(session.run({}, {a})[0].item<int64_t>(), 1);
  EXPECT_EQ(session.run({}, {b})[0].item<int64_t>(), 0);
  EXPECT_EQ(Session(g).run({}, {a})[0].item<int64_t>(), 0);
}

TEST_F(Datasets, RejectMismatches) {
  const Dataset ten = datasets::range(10);
  Graph g;
  const Output outside = constant(g, int64_t{3});
  const auto refuse = [&](std::string_view text, const std::function<void()>& build) {
    expect_error_with(Code::invalid_argument, text, build);
    expect_error_with(Code::invalid_argument, "dataset_test.cc:", build);
  };
  refuse("takes 2 Outputs, but elements have 1 component",
         [&] { ten.map([](Output a, Output b) { return a + b; }); });
  refuse("the predicate must give a scalar bool, not int64[]",
         [&] { ten.filter([](Output x) { return x; }); });
  refuse("which belongs to another graph", [&] { ten.map([&](Output) { return outside; }); });
  refuse("belongs to another graph", [&] { ten.map([&](Output x) { return x + outside; }); });
  refuse("the size must be positive, got 0", [&] { ten.batch(0); });
  refuse("there is no shard 3 of 3", [&] { ten.shard(3, 3); });
  refuse("component 0 is int64, and float in the other dataset",
         [&] { ten.concatenate(ten.map([](Output x) { return cast(x, f32); })); });
}

// ---- Lines of comma-separated values

TEST_F(Datasets, DecodeLines) {
  const std::string table = file("a.csv", "1,2.5\n3,4.5\n5,6.5\n");
  const Dataset rows = datasets::text_files({table})
                           .map([](Output line) {
                             return decode_csv(line, {f32, f32});
                           })
                           .batch(2);
  ASSERT_EQ(rows.components().size(), 2u);
  EXPECT_EQ(rows.components()[1].shape, Shape{any});
  EXPECT_THAT(all<float>(rows), ElementsAre(1, 3, 5));
  EXPECT_THAT(all<float>(rows, 1), ElementsAre(2.5, 4.5, 6.5));
}

TEST(DecodeCsv, SupportsDefaultsAndDelimiters) {
  Graph g;
  const Output lines = placeholder(g, "lines", DType::string, {any});
  const std::vector<Output> all =
      decode_csv(lines, {f64, -1, "none", 0.5, i64}, {.delimiter = ';', .na_value = "NA"});
  const std::vector<Output> some =
      decode_csv(lines, {"none", i64}, {.delimiter = ';', .columns = {2, 4}});
  EXPECT_EQ(all[0].shape(), Shape{any});
  Session session(g);
  const Feeds feeds = {{lines, Tensor::of<std::string>({2}, {"1.5;NA;\"a;b\";;7", "2;3;;0.25;8"})}};
  const std::vector<Tensor> got = session.run(feeds, all);
  EXPECT_THAT(got[0].span<double>(), ElementsAre(1.5, 2));
  EXPECT_THAT(got[1].span<int32_t>(), ElementsAre(-1, 3));
  EXPECT_THAT(got[2].span<std::string>(), ElementsAre("a;b", "none"));
  EXPECT_THAT(got[3].span<float>(), ElementsAre(0.5, 0.25));
  EXPECT_THAT(got[4].span<int64_t>(), ElementsAre(7, 8));
  EXPECT_THAT(session.run(feeds, some)[1].span<int64_t>(), ElementsAre(7, 8));
  expect_error_with(Code::invalid_argument, "dataset_test.cc", [&] {
    session.run({{lines, Tensor::of<std::string>({1}, {";1;a;1;1"})}}, all);
  });
}

TEST(DecodeCsv, ReportsMistakesAtTheUsersLine) {
  Graph g;
  const Output lines = placeholder(g, "lines", DType::string, {any});
  const auto refuse = [](std::string_view part, auto&& f) {
    expect_error_with(Code::invalid_argument, part, f);
    expect_error_with(Code::invalid_argument, "dataset_test.cc:", f);
  };
  refuse("not strings", [&] { decode_csv(constant(g, 1), {f32}); });
  refuse("there are no columns", [&] { decode_csv(lines, {}); });
  refuse("column 1 is bfloat16", [&] { decode_csv(lines, {f32, bf16}); });
  refuse("it must be a scalar", [&] { decode_csv(lines, {Tensor(f32, {2})}); });
  refuse("options.columns selects 2 columns, but 1", [&] {
    decode_csv(lines, {f32}, {.columns = {0, 1}});
  });
  refuse("must increase", [&] { decode_csv(lines, {f32, f32}, {.columns = {1, 0}}); });
  refuse("empty Output", [&] { decode_csv({}, {f32}); });
}

// ---- Pictures

class Pictures : public Datasets {
 protected:
  // A PNG of one gray, in a folder.
  void picture(const std::string& folder, const std::string& name, int64_t height, int64_t width,
               uint8_t gray) {
    std::filesystem::create_directories(directory / folder);
    file(folder + "/" + name,
         encode_png({.height = height,
                     .width = width,
                     .channels = 1,
                     .contents = std::vector<uint8_t>(static_cast<size_t>(height * width), gray)}));
  }
};

TEST_F(Pictures, HaveTheLabelsOfTheirFolders) {
  picture("dog", "1.png", 2, 3, 51);
  picture("cat", "b.PNG", 1, 1, 102);
  picture("cat", "a.png", 4, 2, 255);
  file("cat/notes.txt", "no picture");
  EXPECT_THAT(datasets::image_classes(directory.path()), ElementsAre("cat", "dog"));
  const Dataset images = datasets::images(directory.path(), {.size = {2, 2}, .channels = 1});
  EXPECT_EQ(images.components()[0].name, "image");
  EXPECT_EQ(images.components()[0].shape, (Shape{2, 2, 1}));
  EXPECT_THAT(all<int32_t>(images, 1), ElementsAre(0, 0, 1));
  EXPECT_THAT(
      all<float>(images.batch(3)),
      Pointwise(testing::FloatNear(1e-6F), {1., 1., 1., 1., .4, .4, .4, .4, .2, .2, .2, .2}));
  const Dataset own = datasets::images(directory.path()).skip(2);
  EXPECT_EQ(own.components()[0].shape, (Shape{any, any, 3}));
  EXPECT_THAT(all<float>(own), testing::SizeIs(2 * 3 * 3));
}

TEST_F(Pictures, ReportMistakesAtTheUsersLine) {
  expect_error_with(Code::not_found, "has no folders with pictures",
                    [&] { datasets::images(directory.path()); });
  expect_error_with(Code::not_found, "dataset_test.cc:", [&] { datasets::images("/no/such"); });
  expect_error_with(Code::invalid_argument, "the size must be {height, width}",
                    [&] { datasets::images(directory.path(), {.size = {3}}); });
  expect_error_with(Code::invalid_argument, "channels must be 1, 3 or 4, got 2",
                    [&] { datasets::images(directory.path(), {.channels = 2}); });
}

TEST_F(DatasetsOfACluster, FunctionsTravelWithTheGraph) {
  const std::string a = file("a.txt", "1\n2\n3");
  const Dataset numbers = datasets::text_files(a).map([](Output line) {
    return op("StringToNumber", {line}, {{"out_type", i64}});
  });
  const Dataset nested = numbers.flat_map(
      [](Output) { return datasets::range(2).map([](Output x) { return x * 10; }); });
  EXPECT_THAT(all(numbers.filter([](Output n) { return n != 2; })), ElementsAre(1, 3));
  EXPECT_THAT(all(nested), ElementsAre(0, 10, 0, 10, 0, 10));
}

TEST_F(DatasetsOfACluster, RejectCppFunctions) {
  const Dataset made = datasets::generator([] { return std::nullopt; }, {{"", i32, {}}});
  Graph g;
  const Output next = made.next(g)[0];
  expect_error_with(Code::invalid_argument, "ops that start with '_' are the runtime's own",
                    [&] { Session(g, options).run({}, {next}); });
}

}  // namespace
}  // namespace leat
