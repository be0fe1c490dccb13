// How the inputs, attributes and outputs of one node follow from its op's schema.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"

namespace leat {

// Which of a node's flat inputs (or outputs) an argument of the schema stands for.
struct ArgRange {
  const ArgDef* arg;
  int begin;
  int end;
};
// Iterates over the ranges of all arguments, in order. The attrs must be complete and outlive this.
class ArgRanges {
 public:
  class Iterator {
   public:
    Iterator(const ArgDef* arg, const ArgDef* last, const AttrMap& attrs)
        : last_(last), attrs_(attrs), range_{arg, 0, 0} {
      find_end();
    }
    const ArgRange& operator*() const { return range_; }
    Iterator& operator++() {
      range_ = {range_.arg + 1, range_.end, range_.end};
      find_end();
      return *this;
    }
    bool operator==(const Iterator& other) const { return range_.arg == other.range_.arg; }

   private:
    void find_end();

    const ArgDef* last_;
    const AttrMap& attrs_;
    ArgRange range_;
  };

  ArgRanges(const std::vector<ArgDef>& args, const AttrMap& attrs) : args_(args), attrs_(attrs) {}
  Iterator begin() const { return {args_.data(), args_.data() + args_.size(), attrs_}; }
  Iterator end() const {
    const ArgDef* last = args_.data() + args_.size();
    return {last, last, attrs_};
  }

 private:
  const std::vector<ArgDef>& args_;
  const AttrMap& attrs_;
};
inline ArgRanges arg_ranges(const std::vector<ArgDef>& args, const AttrMap& attrs) {
  return {args, attrs};
}

// "a", or "values[1]" within a list; "#7" where that is not known (yet).
std::string input_name(const OpDef& op, const AttrMap& attrs, int input);

// Completes a node whose op, inputs and explicit attributes are set: types and list lengths from
// the inputs, defaults, then `outputs` with dtypes and unknown shapes. INVALID_ARGUMENT (without op
// and node: the caller adds them) if the inputs or attributes do not fit the schema.
void resolve_signature(Node& node);

// Whether the inputs determine this attr, so that resolve_signature finds it.
bool follows_from_inputs(const OpSchema& schema, std::string_view attr);

}  // namespace leat
