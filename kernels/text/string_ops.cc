// Strings: ops that Saver and similar classes use to build file names, and regular expressions.
#include <re2/re2.h>

#include <cstdio>

#include "core/execution/step_end.h"
#include "graph/gradient.h"
#include "graph/ops.h"
#include "graph/shape_inference.h"
#include "kernels/cpu.h"
#include "kernels/examples.h"

namespace leat {
namespace {

// Scalars among the inputs are joined to every element of the others.
Shape joined_shape(std::span<const Shape> shapes) {
  Shape out;
  for (const Shape& shape : shapes) {
    if (shape.has_rank() && shape.rank() == 0) continue;
    if (!shape.has_rank()) return Shape::unknown();
    check(out.rank() == 0 || out.is_compatible(shape),
          "the inputs of StringJoin must be scalars or have the same shape, got ", out, " and ",
          shape);
    out = out.rank() == 0 ? shape : out.merged(shape);
  }
  return out;
}

void infer_join(ShapeContext& c) {
  std::vector<Shape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) shapes.push_back(c.input(i));
  c.set_output(0, joined_shape(shapes));
}

BoundKernel prepare_join(const KernelRequest& request) {
  std::vector<bool> is_scalar;
  for (const TensorSpec& input : request.inputs) is_scalar.push_back(input.shape.rank() == 0);
  return BoundKernel::of([is_scalar, n = request.outputs[0].shape.elements(),
                          separator = request.attr<std::string>("separator")](const Arguments& a) {
    for (int64_t i = 0; i < n; ++i) {
      StepEnd::pace(64);
      std::string out;
      for (size_t input = 0; input < is_scalar.size(); ++input) {
        if (input > 0) out += separator;
        out += a.input<std::string>(static_cast<int>(input))[is_scalar[input] ? 0 : i];
      }
      a.output<std::string>()[i] = std::move(out);
    }
  });
}

void run_sharded_filename(const void*, const Arguments& a) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, "-%05d-of-%05d", *a.input<int32_t>(1), *a.input<int32_t>(2));
  *a.output<std::string>() = *a.input<std::string>(0) + suffix;
}

// RE2's syntax, as TensorFlow's.
std::shared_ptr<const RE2> compiled(const std::string& pattern) {
  RE2::Options options;
  options.set_log_errors(false);
  auto out = std::make_shared<const RE2>(pattern, options);
  check(out->ok(), "Invalid pattern: ", pattern, ", error: ", out->error());
  return out;
}

void match_all(const RE2& pattern, const Arguments& a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(64);
    a.output<bool>()[i] = RE2::FullMatch(a.input<std::string>(0)[i], pattern);
  }
}

const Op string_join_op{{
    .name = "StringJoin",
    .doc = "output[i] = the inputs' elements i, with `separator` between; a scalar goes with every "
           "i.",
    .inputs = {"inputs: N * string"},
    .outputs = {"output: string"},
    .attrs = {"N: int >= 0", "separator: string = ''"},
    .shape = infer_join,
    .kernels = {cpu_kernel(prepare_join)},
    .examples = {{.inputs = {Tensor::scalar("a"), texts({"b", "c"})},
                  .attrs = {{"separator", "/"}},
                  .outputs = {texts({"a/b", "a/c"})}}},
    .is_not_differentiable = true,
}};

const Op sharded_filename_op{{
    .name = "ShardedFilename",
    .doc = "filename = basename-00001-of-00003 for shard 1 of num_shards 3.",
    .inputs = {"basename: string", "shard: int32", "num_shards: int32"},
    .outputs = {"filename: string"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < 3; ++i) c.with_rank(i, 0);
          c.set_output(0, {});
        },
    .kernels = {cpu_kernel([](const KernelRequest&) {
      BoundKernel out;
      out.function = run_sharded_filename;
      return out;
    })},
    .examples = {{.inputs = {Tensor::scalar("m"), Tensor::scalar(1), Tensor::scalar(3)},
                  .outputs = {Tensor::scalar("m-00001-of-00003")}}},
    .is_not_differentiable = true,
}};

const Op sharded_filespec_op{{
    .name = "ShardedFilespec",
    .doc = "filename = the pattern of all shards' names: basename, five question marks, -of-00003.",
    .inputs = {"basename: string", "num_shards: int32"},
    .outputs = {"filename: string"},
    .shape =
        [](ShapeContext& c) {
          for (int i = 0; i < 2; ++i) c.with_rank(i, 0);
          c.set_output(0, {});
        },
    .kernels = {cpu_kernel([](const KernelRequest&) {
      return BoundKernel::of([](const Arguments& a) {
        char of[32];
        std::snprintf(of, sizeof(of), "-of-%05d", *a.input<int32_t>(1));
        *a.output<std::string>() = *a.input<std::string>(0) + "-" + std::string(5, '?') + of;
      });
    })},
    .examples = {{.inputs = {Tensor::scalar("m"), Tensor::scalar(3)},
                  .outputs = {Tensor::scalar("m-" + std::string(5, '?') + "-of-00003")}}},
    .is_not_differentiable = true,
}};

const Op regex_full_match_op{{
    .name = "RegexFullMatch",
    .doc = "output = whether the whole of each input matches the pattern, in RE2's syntax.",
    .inputs = {"input: string", "pattern: string"},
    .outputs = {"output: bool"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.set_output(0, c.input(0));
        },
    .kernels = {cpu_kernel([](const KernelRequest& request) {
      return BoundKernel::of([n = request.outputs[0].shape.elements()](const Arguments& a) {
        match_all(*compiled(*a.input<std::string>(1)), a, n);
      });
    })},
    .examples = {{.inputs = {texts({"s3://a", "/a"}), Tensor::scalar("^s3://.*")},
                  .outputs = {bools({true, false})}}},
    .is_not_differentiable = true,
}};

const Op static_regex_full_match_op{{
    .name = "StaticRegexFullMatch",
    .doc = "RegexFullMatch with the pattern as an attribute.",
    .inputs = {"input: string"},
    .outputs = {"output: bool"},
    .attrs = {"pattern: string"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& request) {
      return BoundKernel::of([pattern = compiled(request.attr<std::string>("pattern")),
                              n = request.outputs[0].shape.elements()](const Arguments& a) {
        match_all(*pattern, a, n);
      });
    })},
    .examples = {{.inputs = {texts({"ab", "b"})},
                  .attrs = {{"pattern", "a.*"}},
                  .outputs = {bools({true, false})}}},
    .is_not_differentiable = true,
}};

// Replaces the first match, or all, by `rewrite`, in which \1 is the first group. A rewrite that
// names groups that the pattern lacks changes nothing.
void replace_matches(const RE2& pattern, const std::string& rewrite, bool is_global,
                     const Arguments& a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    StepEnd::pace(256);
    std::string text = a.input<std::string>(0)[i];
    if (is_global) {
      RE2::GlobalReplace(&text, pattern, rewrite);
    } else {
      RE2::Replace(&text, pattern, rewrite);
    }
    a.output<std::string>()[i] = std::move(text);
  }
}

const Op regex_replace_op{{
    .name = "RegexReplace",
    .doc = "output = each input with its matches of pattern, in RE2's syntax, replaced by rewrite "
           "(\\1 is the first group); only the first one unless replace_global.",
    .inputs = {"input: string", "pattern: string", "rewrite: string"},
    .outputs = {"output: string"},
    .attrs = {"replace_global: bool = true"},
    .shape =
        [](ShapeContext& c) {
          c.with_rank(1, 0);
          c.with_rank(2, 0);
          c.set_output(0, c.input(0));
        },
    .kernels = {cpu_kernel([](const KernelRequest& request) {
      return BoundKernel::of([is_global = request.attr<bool>("replace_global"),
                              n = request.outputs[0].shape.elements()](const Arguments& a) {
        replace_matches(*compiled(*a.input<std::string>(1)), *a.input<std::string>(2), is_global, a,
                        n);
      });
    })},
    .examples = {{.inputs = {texts({"a1b2", "c"}), Tensor::scalar("([0-9])"),
                             Tensor::scalar("<\\1>")},
                  .outputs = {texts({"a<1>b<2>", "c"})}}},
    .is_not_differentiable = true,
}};

const Op static_regex_replace_op{{
    .name = "StaticRegexReplace",
    .doc = "RegexReplace with pattern and rewrite as attributes.",
    .inputs = {"input: string"},
    .outputs = {"output: string"},
    .attrs = {"pattern: string", "rewrite: string", "replace_global: bool = true"},
    .shape = shapes::same_as(0),
    .kernels = {cpu_kernel([](const KernelRequest& request) {
      return BoundKernel::of([pattern = compiled(request.attr<std::string>("pattern")),
                              rewrite = request.attr<std::string>("rewrite"),
                              is_global = request.attr<bool>("replace_global"),
                              n = request.outputs[0].shape.elements()](const Arguments& a) {
        replace_matches(*pattern, rewrite, is_global, a, n);
      });
    })},
    .examples = {{.inputs = {texts({"a1b2", "c"})},
                  .attrs = {{"pattern", "[0-9]"}, {"rewrite", "_"}, {"replace_global", false}},
                  .outputs = {texts({"a_b2", "c"})}}},
    .is_not_differentiable = true,
}};

}  // namespace
}  // namespace leat
