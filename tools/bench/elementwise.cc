// Elementwise ops and reductions against memcpy, on one thread: only the bound function, as a tape
// calls it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/execution/thread_pool.h"
#include "core/kernel.h"
#include "graph/graph.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// One op, prepared, with memory for its inputs and output.
class PreparedOp {
 public:
  PreparedOp(std::string_view op, const std::vector<Tensor>& inputs)
      : pool_(1),
        device_(make_cpu_device(DeviceName::parse("/job:localhost/replica:0/task:0/device:CPU:0"),
                                pool_)),
        inputs_(inputs) {
    NodeSpec spec{.op = std::string(op)};
    for (const Tensor& input : inputs) {
      const AttrMap attrs = {{"value", input}, {"dtype", input.dtype()}};
      spec.inputs.push_back(graph_.add({.op = "Const", .attrs = attrs}).output());
    }
    const Node& node = graph_.add(std::move(spec));
    std::vector<TensorSpec> in;
    for (const Tensor& input : inputs_) in.push_back({input.dtype(), input.shape(), &input});
    const Shape shape = infer_shapes(node.view(), *node.op, in, 1)[0];
    const std::vector<TensorSpec> out = {{node.outputs[0].dtype, shape, nullptr}};
    output_ = Tensor(node.outputs[0].dtype, shape);
    std::shared_ptr<void> state;
    kernel_ = find_kernel(*node.op, node.attrs, DeviceType::cpu)
                  ->prepare({.node = node.view(),
                             .inputs = in,
                             .outputs = out,
                             .device = *device_,
                             .node_state = state});
    for (const Tensor& input : inputs_) in_pointers_.push_back(input.raw());
    out_pointers_ = {output_.raw()};
    workspace_.resize(kernel_.workspace_bytes);
  }

  void run() {
    kernel_.function(kernel_.bound.get(), {.inputs = in_pointers_.data(),
                                           .outputs = out_pointers_.data(),
                                           .workspace = workspace_.data(),
                                           .stream = &device_->stream()});
  }

 private:
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  Graph graph_;
  std::vector<Tensor> inputs_;
  Tensor output_;
  BoundKernel kernel_;
  std::vector<void*> in_pointers_, out_pointers_;
  std::vector<char> workspace_;
};

template <class T>
Tensor filled(const Shape& shape) {
  Tensor out(dtype_of<T>, shape);
  std::fill_n(out.data<T>(), out.elements(), T(0.75f));
  return out;
}

void measure(benchmark::State& state, std::string_view op, const std::vector<Tensor>& inputs) {
  PreparedOp prepared(op, inputs);
  prepared.run();  // touches the memory
  for (auto _ : state) prepared.run();
  state.SetItemsProcessed(state.iterations() * inputs[0].elements());
}

void copy(benchmark::State& state) {
  const Tensor from = filled<float>({state.range(0)});
  Tensor to = from.clone();
  for (auto _ : state) {
    std::memcpy(to.raw(), from.raw(), from.bytes());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * from.elements());
}

template <class T>
void unary(benchmark::State& state, const char* op) {
  measure(state, op, {filled<T>({state.range(0)})});
}
template <class T>
void binary(benchmark::State& state, const char* op) {
  measure(state, op, {filled<T>({state.range(0)}), filled<T>({state.range(0)})});
}
void add_scalar(benchmark::State& state) {
  measure(state, "AddV2", {filled<float>({state.range(0)}), filled<float>({})});
}
void add_row(benchmark::State& state) {
  measure(state, "AddV2", {filled<float>({state.range(0) / 128, 128}), filled<float>({128})});
}
void sum(benchmark::State& state, int axis) {
  measure(state, "Sum",
          {filled<float>({state.range(0) / 256, 256}), Tensor::of<int32_t>({1}, {axis})});
}

void with_sizes(benchmark::internal::Benchmark* benchmark) {
  for (int64_t n : {1 << 10, 1 << 16, 1 << 20, 1 << 24}) benchmark->Arg(n);
}

void register_all() {
  const auto add = [](const char* name, const auto& run) {
    benchmark::RegisterBenchmark(name, run)->Apply(with_sizes);
  };
  add("copy", copy);
  add("add", [](benchmark::State& s) { binary<float>(s, "AddV2"); });
  add("add_bfloat16", [](benchmark::State& s) { binary<bfloat16>(s, "AddV2"); });
  add("add_half", [](benchmark::State& s) { binary<half>(s, "AddV2"); });
  add("add_scalar", add_scalar);
  add("add_row", add_row);
  for (const char* op : {"Relu", "Exp", "Tanh", "Sigmoid"})
    add(op, [op](benchmark::State& s) { unary<float>(s, op); });
  add("sum_of_rows", [](benchmark::State& s) { sum(s, 1); });
  add("sum_of_columns", [](benchmark::State& s) { sum(s, 0); });
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  leat::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
