// Runs a chain of additions of 8 floats RUNS times and prints nothing: instructions.py counts its
// instructions.
//   null_chain NODES RUNS
#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "frontends/cpp/session.h"
#include "graph/ops.h"

int main(int argc, char** argv) {
  using namespace leat;
  if (argc != 3) {
    std::cerr << "usage: null_chain NODES RUNS\n";
    return 2;
  }
  const long nodes = std::atol(argv[1]), runs = std::atol(argv[2]);
  Graph graph;
  const Output x = placeholder(graph, "x", f32, {8});
  Output h = x;
  for (long i = 0; i < nodes; ++i) h = h + x;
  SessionOptions options;
  options.threads = 1;
  options.simplify = false;
  Session session(graph, options);
  const Callable run = session.prepare({x}, {h});
  const Tensor feed = Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  std::vector<Tensor> fetches;
  for (long i = 0; i < runs; ++i) run.run({&feed, 1}, fetches);
}
