// Attention as one op, and its gradient. The pass fuse_attention makes both, of products and a
// softmax on a GPU; the kernels are in kernels/cuda/attention/attention.cu.
#include "graph/op_def.h"
#include "graph/shape_inference.h"

namespace leat {
namespace {

// Fails unless the mask can be repeated to the shape of the scores.
void check_mask(const ShapeContext& c, int input, const Shape& scores) {
  const Shape& mask = c.input(input);
  if (!mask.has_rank()) return;
  check(broadcast(mask, scores).is_compatible(scores), "the mask ", mask,
        " must be broadcast to the scores, ", scores);
}

// Checks q, k, v and the masks from input `first_mask` on. Returns the shapes of the output and of
// the statistics; unknown as long as the ranks are.
struct Shapes {
  Shape q, k, v;
  Shape output = Shape::unknown(), statistics = Shape::unknown();
};
Shapes infer_shapes_of(const ShapeContext& c, int first_mask) {
  Shapes s{c.with_rank_at_least(0, 3), c.with_rank_at_least(1, 3), c.with_rank_at_least(2, 3)};
  if (!s.q.has_rank() || !s.k.has_rank() || !s.v.has_rank()) return s;
  const int rank = s.q.rank(), rows = rank - 2, last = rank - 1;
  const auto agree = [](int64_t a, int64_t b) { return a == any || b == any || a == b; };
  bool fit = rank <= 4 && s.k.rank() == rank && s.v.rank() == rank;
  for (int axis = 0; fit && axis < rows; ++axis)
    fit = agree(s.q[axis], s.k[axis]) && agree(s.q[axis], s.v[axis]);
  check(
      fit && agree(s.q[last], s.k[last]) && agree(s.k[rows], s.v[rows]),
      "q, k and v must be [batch, heads, rows, size] or [batch, rows, size], q and k of one size, "
      "k and v of equally many rows, got ",
      s.q, ", ", s.k, " and ", s.v);
  Shape scores = s.q;
  scores.set(last, s.k[rows]);
  for (int i = first_mask; i < c.num_inputs(); ++i) check_mask(c, i, scores);
  s.output = s.q;
  s.output.set(last, s.v[last]);
  s.statistics = Shape(s.q.dims().first(static_cast<size_t>(last)));
  return s;
}

void infer(ShapeContext& c) {
  const Shapes shapes = infer_shapes_of(c, 3);
  c.set_output(0, shapes.output);
  c.set_output(1, shapes.statistics);
}

void infer_gradient(ShapeContext& c) {
  const Shapes shapes = infer_shapes_of(c, 6);
  for (int i : {3, 5}) {
    check(c.input(i).is_compatible(shapes.output), c.input_name(i),
          " must have the shape of the output, ", shapes.output, ", got ", c.input(i));
  }
  check(c.input(4).is_compatible(shapes.statistics), "statistics must be ", shapes.statistics,
        ", got ", c.input(4));
  c.set_output(0, shapes.q);
  c.set_output(1, shapes.k);
  c.set_output(2, shapes.v);
}

const Op attention_op{{
    .name = "_Attention",
    .doc = "output = softmax(scale q kᵀ) v, by rows: of the keys that a row does not see, by the "
           "mask or because they come after it if `causal`, the weight is 0; a row that sees none "
           "has the mean of v. statistics[r] = log(sum over k of exp(scale q[r] k)), of what the "
           "row sees, is for _AttentionGrad; of a row that sees none it can be anything.",
    .inputs = {"q: T", "k: T", "v: T", "mask: N * bool"},
    .outputs = {"output: T", "statistics: float"},
    .attrs = {"T: {half, bfloat16}", "N: int >= 0 = 0", "scale: float = 1.0",
              "causal: bool = false"},
    .shape = infer,
    .is_not_differentiable = true,
}};

const Op attention_grad_op{{
    .name = "_AttentionGrad",
    .doc = "The gradients of _Attention: with p, the weights, dv = pᵀ doutput, "
           "ds = scale p (doutput vᵀ - sum(doutput output)), dq = ds k, dk = dsᵀ q. Computes p "
           "again, from the statistics (Dao, FlashAttention-2, arXiv:2307.08691). A row that sees "
           "no key adds nothing to dq and dk.",
    .inputs = {"q: T", "k: T", "v: T", "output: T", "statistics: float", "doutput: T",
               "mask: N * bool"},
    .outputs = {"dq: T", "dk: T", "dv: T"},
    .attrs = {"T: {half, bfloat16}", "N: int >= 0 = 0", "scale: float = 1.0",
              "causal: bool = false"},
    .shape = infer_gradient,
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
