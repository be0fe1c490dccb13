// The options of compressed gradients, which several strategies have.
#include "frontends/cpp/strategies/names/names.h"

namespace leat::names {

std::vector<StrategyOption> compression_options() {
  return {{"compress", "none", "gradients: bf16, fp16, 2bit or top_k"},
          {"filter", "none", "which numbers are sent: significant, random_skip or kkt"},
          {"threshold", "0.5", "of 2bit and significant"},
          {"ratio", "0.01", "of top_k and random_skip: the part that is sent"},
          {"l1", "(needed)", "of kkt: the optimizer's penalty"}};
}

Compression compression_of(const OptionReader& options) {
  Compression out;
  using Kind = Compression::Kind;
  out.kind = compression_named(options.text("compress", "none"));
  if (const Kind filter = filter_named(options.text("filter", "none")); filter != Kind::none) {
    check(out.kind == Kind::none, options.where("filter"), "does not go with compress");
    check(filter != Kind::significant || options.has("threshold"), options.where("threshold"),
          "is needed by filter=significant");
    check(filter != Kind::kkt || options.has("l1"), options.where("l1"),
          "is needed by filter=kkt: the optimizer's penalty");
    out.kind = filter;
  }
  out.threshold = options.number("threshold", out.threshold);
  out.ratio = options.number("ratio", out.ratio);
  out.l1 = options.number("l1", out.l1);
  return out;
}

}  // namespace leat::names
