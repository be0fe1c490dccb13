// Ops for the tests of the graph itself, so that these do not depend on kernels/.
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

const Op value_op{{
    .name = "TestValue",
    .doc = "A source.",
    .outputs = {"output: dtype"},
    .attrs = {"dtype: type", "shape: shape = <unknown>"},
    .shape = shapes::from_attr("shape"),
}};

const Op variable_op{{
    .name = "TestVariable",
    .doc = "A source of a ref.",
    .outputs = {"ref: Ref(dtype)"},
    .attrs = {"dtype: type", "shape: shape"},
    .shape = shapes::from_attr("shape"),
    .is_stateful = true,
}};

const Op matmul_op{{
    .name = "TestMatMul",
    .doc = "product = a·b.",
    .inputs = {"a: T", "b: T"},
    .outputs = {"product: T"},
    .attrs = {"transpose_a: bool = false", "T: {float, double}"},
    .shape =
        [](ShapeContext& context) {
          const Shape a = context.with_rank(0, 2);
          const Shape b = context.with_rank(1, 2);
          const int64_t inner = context.attr<bool>("transpose_a") ? a[0] : a[1];
          const int64_t outer = context.attr<bool>("transpose_a") ? a[1] : a[0];
          check(inner < 0 || b[0] < 0 || inner == b[0], "extents ", inner, " and ", b[0],
                " differ");
          context.set_output(0, {outer, b[1]});
        },
}};

const Op concat_op{{
    .name = "TestConcat",
    .doc = "Two lists of one length, a scalar between.",
    .inputs = {"first: N * T", "axis: int32", "second: N * T"},
    .outputs = {"output: T"},
    .attrs = {"N: int >= 2", "T: type"},
}};

const Op tuple_op{{
    .name = "TestTuple",
    .doc = "output[i] = input[i].",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"T: list({float, int32}) >= 1"},
    .shape =
        [](ShapeContext& context) {
          for (int i = 0; i < context.num_inputs(); ++i) context.set_output(i, context.input(i));
        },
    .gradient =
        [](Gradient& g) {
          for (int i = 0; i < g.num_inputs(); ++i) g.dx(i) = g.dy_or_zeros(i);
        },
}};

const Op scale_op{{
    .name = "TestScale",
    .doc = "y = factor·x.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type", "factor: float = 2.0"},
    .shape = shapes::same_as(0),
    .gradient =
        [](Gradient& g) {
          g.dx() = op("TestScale", {g.dy()}, {{"factor", g.attr<float>("factor")}});
        },
}};

const Op wrong_op{{
    .name = "TestWrongGradient",
    .doc = "An op whose gradient has another shape than its input.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type"},
    .shape = shapes::scalar(),
    .gradient = [](Gradient& g) { g.dx() = op("TestScale", {g.dy()}); },
}};

const Op cut_op{{
    .name = "TestCut",
    .doc = "No gradient flows here, and that is right.",
    .inputs = {"x: T"},
    .outputs = {"y: T"},
    .attrs = {"T: type"},
    .shape = shapes::same_as(0),
    .is_not_differentiable = true,
}};

const Op assign_op{{
    .name = "TestAssign",
    .doc = "ref = value.",
    .inputs = {"ref: Ref(T)", "value: T"},
    .outputs = {"output_ref: Ref(T)"},
    .attrs = {"T: type", "use_locking: bool = true"},
    .shape = shapes::same_for_all(),
    .is_stateful = true,
}};

const Op pool_op{{
    .name = "TestPool",
    .doc = "For attributes of every kind.",
    .inputs = {"input: T"},
    .outputs = {"output: T"},
    .attrs = {"ksize: list(int) >= 2", "padding: {'SAME', 'VALID'}", "scale: float = 0.5",
              "T: realnumbertype = float", "data_format: string = 'NHWC'", "steps: int >= 1 = 1"},
}};

const Op split_op{{
    .name = "TestSplit",
    .doc = "N outputs, and a note that nobody needs.",
    .inputs = {"input: T"},
    .outputs = {"output: N * T", "note: string"},
    .attrs = {"N: int >= 1", "T: type"},
}};

}  // namespace
}  // namespace leat
