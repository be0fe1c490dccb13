// Print: passes a tensor on and prints others on the standard error of the task that runs it.
// PrintV2 prints a text.
#include "kernels/control/summarize.h"

#include <atomic>
#include <cstdio>

#include "graph/formats/file.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/element_text.h"
#include "kernels/examples.h"

namespace leat {
namespace {

template <class T>
struct Summary {
  const Shape& shape;
  const T* data;
  int64_t limit, at = 0;
  std::string text = "";

  void add(int axis) {
    if (at >= limit) return;
    const bool is_row = axis + 1 >= shape.rank();
    const int64_t extent = shape.rank() == 0 ? 1 : shape[axis];
    for (int64_t i = 0; i < extent; ++i) {
      if (at >= limit) {
        if (is_row && axis != 0) text += "...";
        return;
      }
      if (is_row) {
        text += (i > 0 ? " " : "") + element_text(data[at++]);
      } else {
        text += "[";
        add(axis + 1);
        text += "]";
      }
    }
  }
};

}  // namespace

std::string summarize(const TensorSpec& spec, const void* data, int64_t limit) {
  const int64_t n = spec.shape.elements();
  std::string text;
  visit_dtype(spec.dtype, [&]<class T>(TypeTag<T>) {
    Summary<T> summary{spec.shape, static_cast<const T*>(data), limit < 0 ? n : limit};
    if (n > 0) summary.add(0);
    text = std::move(summary.text);
  });
  return limit >= 0 && n > limit ? text + "..." : text;
}

namespace {

BoundKernel prepare(const KernelRequest& request) {
  // Calls left; shared by all tapes of the node.
  if (!request.node_state) {
    request.node_state = std::make_shared<std::atomic<int64_t>>(request.attr<int64_t>("first_n"));
  }
  const bool is_limited = request.attr<int64_t>("first_n") >= 0;
  BoundKernel kernel = BoundKernel::of(
      [left = std::static_pointer_cast<std::atomic<int64_t>>(request.node_state), is_limited,
       message = request.attr<std::string>("message"),
       data = std::vector<TensorSpec>(request.inputs.begin() + 1, request.inputs.end()),
       limit = request.attr<int64_t>("summarize")](const Arguments& a) {
        if (is_limited && (*left <= 0 || left->fetch_sub(1) <= 0)) return;
        std::string line = message;
        for (size_t i = 0; i < data.size(); ++i)
          line += "[" + summarize(data[i], a.inputs[i + 1], limit) + "]";
        line += "\n";
        std::fwrite(line.data(), 1, line.size(), stderr);
      });
  kernel.views = {{0, 0}};
  return kernel;
}

const Op print_op{{
    .name = "Print",
    .doc = "output = input. Writes message and the first `summarize` elements of each of data to "
           "the task's standard error, the first first_n times if that is not negative.",
    .inputs = {"input: T", "data: U"},
    .outputs = {"output: T"},
    .attrs = {"T: type", "U: list(type) >= 0", "message: string = ''", "first_n: int = -1",
              "summarize: int = 3"},
    .shape = [](ShapeContext& c) { c.set_output(0, c.input(0)); },
    .gradient = [](Gradient& g) { g.dx(0) = g.dy(); },
    .kernels = {cpu_kernel(prepare)},
    .examples = {{.inputs = {floats({1, 2}), ints({1, 2, 3, 4})},
                  .attrs = {{"message", "shown"}, {"first_n", 0}},
                  .outputs = {floats({1, 2})}}},
    .is_stateful = true,
}};

// Where PrintV2 writes: a stream, or the end of a file.
void write_text(const std::string& target, const std::string& text, const FileRoots& roots) {
  const std::string_view file = "file://";
  if (target.starts_with(file)) {
    try {
      FileWriter out(target.substr(file.size()), FileWriter::Mode::append, roots);
      out.append(text);
      out.close();
    } catch (const Error& error) {
      fail(error.code() == Code::permission_denied ? error.code() : Code::failed_precondition,
           "PrintV2 cannot write to ", target.substr(file.size()), ": ", error.message());
    }
    return;
  }
  std::FILE* const stream = target == "stdout" ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), stream);
  std::fflush(stream);
}

BoundKernel prepare_text(const KernelRequest& request) {
  const std::string& target = request.attr<std::string>("output_stream");
  const bool is_log = target == "log(info)" || target == "log(warning)" || target == "log(error)";
  check(target == "stdout" || target == "stderr" || is_log || target.starts_with("file://"),
        "Unknown output stream: ", target,
        ": use stdout, stderr, log(info), log(warning), log(error) or file://PATH");
  return BoundKernel::of([target, end = request.attr<std::string>("end"),
                          roots = files_of(request.device)](const Arguments& a) {
    write_text(target, *a.input<std::string>(0) + end, roots);
  });
}

const Op print_v2_op{{
    .name = "PrintV2",
    .doc = "Writes input and `end` to output_stream of the task that runs it: stdout, stderr (the "
           "logs go there, too) or file://PATH.",
    .inputs = {"input: string"},
    .attrs = {"output_stream: string = 'stderr'", "end: string = '\\n'"},
    .shape = [](ShapeContext& c) { c.with_rank(0, 0); },
    .kernels = {cpu_kernel(prepare_text)},
    .examples = {{.inputs = {Tensor::scalar("")}, .attrs = {{"end", ""}}}},
    .is_stateful = true,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
