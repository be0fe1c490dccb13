// Single products of f32 matrices on one thread, from 1 row to 4096, in all four transpositions:
// Leat's kernel beside oneDNN's two ways (sgemm, and the matmul primitive), in turn, with operands
// that have left the L2 cache. One line per product; the last column is the faster way's time /
// Leat's.
//
//   bench/products                      # the products of peers/tf_products.py
//   bench/products 64,384,1024 8,10,32  # these: m, n, k
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/linear_algebra/matmul.h"

namespace leat {
namespace {

using Clock = std::chrono::steady_clock;

struct Extents {
  int64_t m, n, k;
};
constexpr Extents usual[] = {{1, 256, 784},   {8, 768, 768},    {64, 384, 1024},   {64, 1024, 384},
                             {64, 256, 784},  {784, 256, 64},   {100, 500, 784},   {784, 500, 100},
                             {500, 500, 100}, {4096, 384, 128}, {4096, 512, 128},  {128, 512, 4096},
                             {256, 256, 256}, {512, 512, 512},  {1024, 1024, 1024}};

// Larger than an L2 cache. Reading it drives the operands out.
class Evictor {
 public:
  void run() {
    for (size_t i = 0; i < bytes_.size(); i += 64) ++bytes_[i];
  }

 private:
  std::vector<char> bytes_ = std::vector<char>(size_t{8} << 20);
};

std::vector<float> random_floats(int64_t n) {
  static std::minstd_rand random;
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> out(n);
  for (float& x : out) x = between(random);
  return out;
}

// oneDNN's primitive, made once.
class Primitive {
 public:
  Primitive(const MatMul& mm, std::vector<float>& a, std::vector<float>& b,
            std::vector<float>& product)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Desc = dnnl::memory::desc;
    using Dims = dnnl::memory::dims;
    constexpr auto type = dnnl::memory::data_type::f32;
    const Desc desc_a({mm.m, mm.k}, type, mm.transpose_a ? Dims{1, mm.m} : Dims{mm.k, 1});
    const Desc desc_b({mm.k, mm.n}, type, mm.transpose_b ? Dims{1, mm.k} : Dims{mm.n, 1});
    const Desc desc_product({mm.m, mm.n}, type, Dims{mm.n, 1});
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const dnnl::matmul::primitive_desc description({desc_a, desc_b, desc_product}, attributes,
                                                   engine_);
    primitive_ = dnnl::matmul(description);
    scratch_.resize(description.scratchpad_desc().get_size() + 1);
    arguments_ = {{DNNL_ARG_SRC, dnnl::memory(desc_a, engine_, a.data())},
                  {DNNL_ARG_WEIGHTS, dnnl::memory(desc_b, engine_, b.data())},
                  {DNNL_ARG_DST, dnnl::memory(desc_product, engine_, product.data())},
                  {DNNL_ARG_SCRATCHPAD,
                   dnnl::memory(description.scratchpad_desc(), engine_, scratch_.data())}};
  }
  void run() { primitive_.execute(stream_, arguments_); }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::vector<char> scratch_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

void measure(const MatMul& mm) {
  std::vector<float> a = random_floats(mm.m * mm.k), b = random_floats(mm.k * mm.n);
  std::vector<float> product(mm.m * mm.n);
  const BoundKernel kernel = bind_matmul(f32, mm);
  std::vector<char> workspace(kernel.workspace_bytes + 1);
  Stream one_thread;
  Primitive primitive(mm, a, b, product);
  void *inputs[] = {a.data(), b.data()}, *outputs[] = {product.data()};
  const auto leat = [&] {
    kernel.function(kernel.bound.get(), {inputs, outputs, workspace.data(), &one_thread});
  };
  const auto sgemm = [&] {
    dnnl_sgemm(mm.transpose_a ? 'T' : 'N', mm.transpose_b ? 'T' : 'N', mm.m, mm.n, mm.k, 1.0f,
               a.data(), mm.transpose_a ? mm.m : mm.k, b.data(), mm.transpose_b ? mm.k : mm.n, 0.0f,
               product.data(), mm.n);
  };
  const double flops = 2.0 * static_cast<double>(mm.m) * static_cast<double>(mm.n * mm.k);
  const int repetitions = flops > 2e8 ? 9 : flops > 1e7 ? 25 : 61;
  std::vector<double> seconds[3];
  Evictor evictor;
  const auto time = [&](const auto& run, std::vector<double>& to) {
    evictor.run();
    const auto begin = Clock::now();
    run();
    to.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  };
  leat(), sgemm(), primitive.run();
  for (int i = 0; i < repetitions; ++i) {
    time(leat, seconds[0]);
    time(sgemm, seconds[1]);
    time([&] { primitive.run(); }, seconds[2]);
  }
  double rate[3];
  for (int i = 0; i < 3; ++i) {
    std::sort(seconds[i].begin(), seconds[i].end());
    rate[i] = flops / seconds[i][repetitions / 4] * 1e-9;
  }
  std::printf("%5lld %5lld %5lld %d%d  Leat %6.1f  sgemm %6.1f  primitive %6.1f GFLOP/s  %5.2f\n",
              static_cast<long long>(mm.m), static_cast<long long>(mm.n),
              static_cast<long long>(mm.k), mm.transpose_a, mm.transpose_b, rate[0], rate[1],
              rate[2], rate[0] / std::max(rate[1], rate[2]));
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  std::vector<Extents> all(std::begin(usual), std::end(usual));
  if (argc > 1) all.clear();
  for (int i = 1; i < argc; ++i) {
    long long m = 0, n = 0, k = 0;
    if (std::sscanf(argv[i], "%lld,%lld,%lld", &m, &n, &k) != 3 || std::min({m, n, k}) < 1) {
      std::fprintf(stderr, "'%s' is no product: write m,n,k, as in 64,384,1024\n", argv[i]);
      return 2;
    }
    all.push_back({m, n, k});
  }
  omp_set_num_threads(1);
  for (const auto& [m, n, k] : all) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) measure({m, n, k, transpose_a, transpose_b});
    }
  }
  return 0;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) { return leat::run(argc, argv); }
