// Sets that are compared often: what a node waits for, and the like.
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace leat {

// Interned sets of small integers: comparing two sets is one instruction.
class SetPool {
 public:
  SetPool() { number({}); }
  int empty() const { return 0; }
  const std::vector<int>& operator[](int set) const { return *sets_[set]; }

  int unite(int a, int b) {
    if (a == b || b == empty()) return a;
    if (a == empty()) return b;
    const auto [it, is_new] = unions_.try_emplace({std::min(a, b), std::max(a, b)}, 0);
    if (is_new) {
      std::vector<int> both;
      std::set_union(sets_[a]->begin(), sets_[a]->end(), sets_[b]->begin(), sets_[b]->end(),
                     std::back_inserter(both));
      if (!chains_.empty()) drop_implied(both);
      it->second = number(std::move(both));
    }
    return it->second;
  }
  int with(int set, int element) { return unite(set, one(element)); }
  int one(int element) { return number({element}); }

  // For elements in a sequence, whose sets would grow with every element: `element`, the largest so
  // far, implies all of `set`. Sets keep only the last element of a chain of implications.
  void imply(int element, int set) {
    chains_.resize(element + 1, -1);
    for (auto it = sets_[set]->rbegin(); it != sets_[set]->rend() && chains_[element] < 0; ++it) {
      const int chain = chains_[*it];
      if (ends_[chain] == *it) chains_[element] = chain, ends_[chain] = element;
    }
    if (chains_[element] >= 0) return;
    chains_[element] = static_cast<int>(ends_.size());
    ends_.push_back(element);
  }

 private:
  void drop_implied(std::vector<int>& set) const {
    std::unordered_set<int> later;  // chains of later elements
    const auto is_implied = [&](int element) { return !later.insert(chains_[element]).second; };
    set.erase(set.begin(), std::remove_if(set.rbegin(), set.rend(), is_implied).base());
  }

  int number(std::vector<int> set) {
    const auto [it, is_new] = numbers_.try_emplace(std::move(set), static_cast<int>(sets_.size()));
    if (is_new) sets_.push_back(&it->first);
    return it->second;
  }

  std::map<std::vector<int>, int> numbers_;
  std::vector<const std::vector<int>*> sets_;
  std::map<std::pair<int, int>, int> unions_;
  std::vector<int> chains_;  // by element, if any implies others
  std::vector<int> ends_;    // by chain: its last element
};

}  // namespace leat
