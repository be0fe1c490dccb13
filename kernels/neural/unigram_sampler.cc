// Candidate samplers with a weight per class: LearnedUnigramCandidateSampler and
// ThreadUnsafeUnigramCandidateSampler count the true classes they have seen;
// FixedUnigramCandidateSampler takes its weights.
#include <algorithm>
#include <bit>
#include <cstdlib>

#include "graph/formats/file.h"
#include "kernels/extents.h"
#include "kernels/neural/candidate_sampler.h"

namespace leat {
namespace {

// ---- Learned

// Weights that start at 1 and grow, and their running sums as a Fenwick tree ("A new data structure
// for cumulative frequency tables", 1994).
class Counts {
 public:
  explicit Counts(int64_t n) : weights_(n, 1), sums_(n + 1), total_(n) {
    for (int64_t i = 1; i <= n; ++i) sums_[i] = static_cast<int32_t>(i & -i);
  }
  int32_t weight(int64_t k) const { return weights_[k]; }
  int32_t total() const { return static_cast<int32_t>(total_); }
  void increment(int64_t k) {
    ++weights_[k];
    ++total_;
    for (int64_t i = k + 1; i < std::ssize(sums_); i += i & -i) ++sums_[i];
  }
  // The class that has position `at` if each is repeated by its weight; 0 <= at < total.
  int64_t at(int32_t at) const {
    int64_t k = 0;
    for (auto step = static_cast<int64_t>(std::bit_floor(weights_.size())); step > 0; step /= 2) {
      if (k + step < std::ssize(sums_) && sums_[k + step] <= at) {
        k += step;
        at -= sums_[k];
      }
    }
    return k;
  }

 private:
  std::vector<int32_t> weights_, sums_;
  int64_t total_;
};

struct LearnedUnigram {
  static constexpr int64_t most = std::numeric_limits<int32_t>::max();
  int64_t range;
  Counts counts;

  explicit LearnedUnigram(const KernelRequest& r) : range(checked_range(r)), counts(range) {}
  static int64_t checked_range(const KernelRequest& r) {
    const int64_t range = r.attr<int64_t>("range_max");
    check(range < most, "range_max must be less than ", most, " for unigram samplers, got ", range);
    check_memory_for(range, 2 * sizeof(int32_t));
    return range;
  }

  int64_t draw(RandomWords& words) const {
    const auto total = static_cast<uint32_t>(counts.total());
    if ((total & (total - 1)) == 0) return counts.at(words.next() & (total - 1));
    const uint32_t skipped = std::numeric_limits<uint32_t>::max() % total + 1;
    uint32_t drawn = words.next();
    while (drawn < skipped) drawn = words.next();
    return counts.at(static_cast<int32_t>(drawn % total));
  }
  float probability(int64_t k) const {
    return static_cast<float>(counts.weight(k)) / static_cast<float>(counts.total());
  }
  void learn(const int64_t* classes, int64_t n) {
    n = std::min(n, most - counts.total());
    for (int64_t i = 0; i < n; ++i) counts.increment(classes[i]);
  }
};

const Op learned_op{sampler_op<LearnedUnigram>(
    "LearnedUnigramCandidateSampler",
    "with probabilities proportional to 1 + how often each was in true_classes before")};
// Despite its name it is thread-safe here: steps that share it wait for each other.
const Op thread_unsafe_op{sampler_op<LearnedUnigram>(
    "ThreadUnsafeUnigramCandidateSampler",
    "with probabilities proportional to 1 + how often each was in true_classes before")};

// ---- Fixed

// Draws k with a probability proportional to weights[k], by Walker's alias method: place k is taken
// with probability `own`, else `other`.
class AliasTable {
 public:
  explicit AliasTable(const std::vector<float>& weights) {
    const auto n = static_cast<int>(weights.size());
    double sum = 0;
    for (const float weight : weights) sum += weight;
    std::vector<double> shares(n);
    std::vector<int> high, low;
    for (int i = 0; i < n; ++i) {
      shares[i] = weights[i] * n / sum;  // the product in float, as TensorFlow's
      (shares[i] < 1 ? low : high).push_back(i);
    }
    places_.resize(n);
    while (!high.empty() && !low.empty()) {
      const int l = low.back(), h = high.back();
      low.pop_back();
      high.pop_back();
      places_[l].other = h;
      shares[h] -= 1 - shares[l];
      (shares[h] < 1 ? low : high).push_back(h);
    }
    for (int i = 0; i < n; ++i) places_[i].own = static_cast<float>(shares[i]);
    for (const std::vector<int>& rest : {high, low}) {
      for (const int i : rest) places_[i] = {1, i};  // except for rounding errors
    }
  }

  int64_t draw(RandomWords& words) const {
    const float r = uniform(words.next());
    const uint32_t k =
        uniform_below(static_cast<uint32_t>(places_.size()), [&] { return words.next(); });
    return r < places_[k].own ? static_cast<int64_t>(k) : places_[k].other;
  }

 private:
  struct Place {
    float own = 0;
    int other = 0;
  };
  std::vector<Place> places_;
};

float number_in(const std::string& line) {
  const std::string field = line.substr(line.rfind(',') + 1);  // the line, if there is no comma
  const size_t begin = field.find_first_not_of(" \t\v\f");
  const size_t end = field.find_last_not_of(" \t\v\f") + 1;
  char* stop = nullptr;
  const std::string number = begin == std::string::npos ? "" : field.substr(begin, end - begin);
  const float value = std::strtof(number.c_str(), &stop);
  check(!number.empty() && stop == number.c_str() + number.size(),
        "Wrong vocabulary format at line: ", line, "; its last field must be a number");
  return value;
}

// The last fields of the lines of a file; those of empty lines are left out.
std::vector<std::string> lines_of(const std::string& path, const FileRoots& roots) {
  std::vector<std::string> lines(1);
  for (const char c : read_file(path, roots)) {
    if (c == '\n') {
      if (!lines.back().empty()) lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

struct FixedUnigram {
  int64_t range;
  std::vector<float> weights;
  float total = 0;
  std::unique_ptr<AliasTable> table;

  explicit FixedUnigram(const KernelRequest& r) : range(r.attr<int64_t>("range_max")) {
    const auto& path = r.attr<std::string>("vocab_file");
    const auto& unigrams = r.attr<std::vector<float>>("unigrams");
    check(!path.empty() || !unigrams.empty(), "Must provide either vocab_file or unigrams.");
    check(path.empty() || unigrams.empty(), "Must only provide one of vocab_file and unigrams.");
    const int64_t shards = r.attr<int64_t>("num_shards"), shard = r.attr<int64_t>("shard");
    const float distortion = r.attr<float>("distortion");
    const int64_t reserved = std::max<int64_t>(0, r.attr<int64_t>("num_reserved_ids"));
    check(reserved / shards <= range, "num_reserved_ids is ", reserved, ", more than range_max (",
          range, ") allows");
    check(range <= std::numeric_limits<int32_t>::max(), "range_max is too large: ", range);
    const int64_t mine =
        shard < std::min(shards, reserved) ? (reserved - shard - 1) / shards + 1 : 0;
    check(mine <= range, "num_reserved_ids is ", reserved, ", more than range_max (", range,
          ") allows");
    check_memory_for(mine, sizeof(float));
    weights.assign(mine, 0);
    // As in TensorFlow, the numbering continues after the number reserved in this shard.
    auto id = static_cast<int64_t>(weights.size());
    const auto add = [&](auto weight_of, const auto& all) {
      for (const auto& element : all) {
        if (id++ % shards != shard) continue;
        const float weight = std::pow(weight_of(element), distortion);
        check(weight >= 0 && std::isfinite(weight), "the weight of class ", weights.size(),
              " must be a number >= 0, but is ", weight_of(element), " to the power of ",
              distortion);
        total += weight;
        weights.push_back(weight);
      }
    };
    if (path.empty()) {
      add([](float weight) { return weight; }, unigrams);
    } else {
      add(number_in, lines_of(path, files_of(r.device)));
    }
    check(range == std::ssize(weights), "range is ", range, " must be equal to weights size ",
          weights.size());
    check(std::isfinite(total), "the sum of the weights is too large for a float");
    const auto possible = std::ranges::count_if(weights, [](float w) { return w > 0; });
    const int64_t needed = r.attr<bool>("unique") ? r.attr<int64_t>("num_sampled") : 1;
    check(possible >= std::min(needed, range), "only ", possible, " classes have weights > 0, but ",
          needed, " different samples are requested");
    table = std::make_unique<AliasTable>(weights);
  }

  int64_t draw(RandomWords& words) const { return table->draw(words); }
  float probability(int64_t k) const { return weights[k] / total; }
};

OpDef fixed() {
  OpDef op = sampler_op<FixedUnigram>(
      "FixedUnigramCandidateSampler",
      "with probabilities proportional to the numbers in unigrams, or in the last fields of the "
      "lines of vocab_file, to the power of distortion; num_reserved_ids classes before these "
      "are never drawn; of num_shards parts of all, this is number shard");
  op.attrs = {"num_true: int >= 1",
              "num_sampled: int >= 1",
              "unique: bool",
              "range_max: int >= 1",
              "vocab_file: string = ''",
              "distortion: float = 1",
              "num_reserved_ids: int = 0",
              "num_shards: int >= 1 = 1",
              "shard: int >= 0 = 0",
              "unigrams: list(float) = []",
              "seed: int = 0",
              "seed2: int = 0"};
  return op;
}

const Op fixed_op{fixed()};

}  // namespace
}  // namespace leat
