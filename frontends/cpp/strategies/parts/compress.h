// Fewer bytes for a tensor that crosses from a worker to where a variable is.
#pragma once

#include <string_view>
#include <vector>

#include "frontends/cpp/optimizers/sparse_rows.h"
#include "frontends/cpp/strategies/parts/collectives.h"

namespace leat {

struct Compression {
  enum class Kind {
    none,
    // Cast to that dtype and back: half the bytes of f32.
    bf16,
    fp16,
    // Two bits a number, a sixteenth of the bytes of f32: with a residual r that stays on the
    // worker, r += g; t is sent, and subtracted from r, where r >= t; -t where r <= -t; else 0.
    // Seide et al., "1-bit SGD", Interspeech 2014, in MXNet's form.
    two_bit,
    // The `ratio` of the numbers with the largest |r|, r += g, and their places; what is sent
    // leaves the residual. Aji and Heafield, "Sparse communication for distributed gradient
    // descent", EMNLP 2017.
    top_k,
    // ---- Filters: only some numbers are sent, each with its place (8 bytes for f32) ----
    // Those with |r| > threshold, r += g; what is sent leaves the residual. With threshold 0 all
    // that are not 0. "Significantly modified" in Li et al., OSDI 2014.
    significant,
    // Each with the probability `ratio`, of r, r += g; what is sent leaves the residual. With ratio
    // 1 all. "Random skip", ibid.
    random_skip,
    // For a model that an optimizer with an l1 penalty (ProximalGradientDescent, Ftrl) makes
    // sparse: those with |g| > l1, or whose weight is not 0; the others count as 0 and are not
    // kept: the penalty holds such a weight at 0, which is the Karush-Kuhn-Tucker condition. Ibid.
    kkt,
  };
  Kind kind = Kind::none;
  double threshold = 0.5;  // t of two_bit, and of significant
  double ratio = 0.01;     // of top_k and random_skip: the part that is sent
  double l1 = 0;           // of kkt
};
// "none", "bf16", "fp16", "2bit", "top_k". INVALID_ARGUMENT lists them.
Compression::Kind compression_named(std::string_view name);
// "none", "significant", "random_skip", "kkt".
Compression::Kind filter_named(std::string_view name);

// Sends the gradients of replica k, which are on its worker, to where their variables are. Makes
// residuals, which are the worker's own: they are in no checkpoint. Gradients of rows cross as they
// are. `updates`, which receives nodes that a step must run, keeps the residuals.
std::vector<GradientAndVariable> compressed(const Replicas& replicas, int k,
                                            std::vector<GradientAndVariable> gradients,
                                            const Compression& compression,
                                            std::vector<Output>& updates, Location at = here());

// The mean over the replicas of their compressed gradients, on each: all[k][v], dense, is that of
// variable v of replica k, and becomes the mean. Casts are summed as they are, by all_reduce() with
// `algorithm`. Else each replica sends its own to all others, (N-1) times the compressed bytes in
// one trip, and all sum in the order of the replicas. Residuals are slots of the variables: a
// checkpoint has those of replica 0, and all begin with them when it is restored.
void mean_of_compressed(const Replicas& replicas,
                        std::vector<std::vector<GradientAndVariable>>& all,
                        const Compression& compression,
                        const collectives::AllReduceOptions& algorithm,
                        std::vector<Output>& updates, Location at = here());

}  // namespace leat
