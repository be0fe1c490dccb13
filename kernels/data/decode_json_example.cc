// DecodeJSONExample: records written as text.
#include "graph/formats/example.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

const Op op{{
    .name = "DecodeJSONExample",
    .doc = "binary_examples[i…] = the serialized tf.train.Example that json_examples[i…] describes "
           "in JSON.",
    .inputs = {"json_examples: string"},
    .outputs = {"binary_examples: string"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& r) {
      return BoundKernel::of([n = r.inputs[0].shape.elements()](const Arguments& a) {
        for (int64_t i = 0; i < n; ++i)
          a.output<std::string>()[i] = example_from_json(a.input<std::string>(0)[i]);
      });
    })},
    .examples = {{.inputs = {texts(
                      {R"({"features": {"feature": {"b": {"int64List": {"value": [7]}}}}})",
                       "{}"})},
                  .outputs = {texts({"\n\x0b\n\t\n\x01"
                                     "b\x12\x04\x1a\x02\x08\x07",
                                     ""})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
