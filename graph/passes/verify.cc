// verify: what must hold after every pass. A failure is a bug of the pass, so it is INTERNAL and
// names the pass.
#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "graph/passes/pipeline.h"
#include "graph/signature.h"

namespace leat {
namespace {

DType expected_dtype(const ArgRange& range, int i, const AttrMap& attrs) {
  const ArgDef& arg = *range.arg;
  if (!arg.type_list_attr.empty()) {
    return attrs.at(arg.type_list_attr).get<std::vector<DType>>().at(i - range.begin);
  }
  return arg.type_attr.empty() ? arg.dtype : attrs.at(arg.type_attr).get<DType>();
}

class Verifier {
 public:
  Verifier(const Graph& graph, std::string_view pass) : graph_(graph), pass_(pass) {}

  void run() {
    const Node* const lost = graph_.find_lost();
    if (lost != nullptr) expect(false, *lost, "shares its name with another node");
    for (size_t i = 0; i < graph_.size(); ++i) {
      const Node& node = *graph_.nodes()[i];
      expect(node.id == static_cast<int>(i) && node.graph == &graph_, node,
             "does not know its place in the graph");
      expect(node.op != nullptr, node, "has no op");
      check_edges(node);
      check_types(node);
    }
  }

 private:
  template <class... Parts>
  void expect(bool condition, const Node& node, const Parts&... parts) const {
    if (condition) [[likely]]
      return;
    fail(Code::internal, "after pass '", pass_,
         "': ", node.op == nullptr ? concat("node '", node.name, "'") : describe(node), " ",
         parts...);
  }

  // Also that inputs come first, which excludes cycles.
  void check_source(const Node& node, const Node* source, std::string_view what) const {
    expect(source != nullptr, node, "has ", what, " that is none");
    const bool belongs = source->id >= 0 && source->id < static_cast<int>(graph_.size()) &&
                         graph_.nodes()[source->id].get() == source;
    expect(belongs, node, "has ", what, " that is not in the graph");
    expect(source->id < node.id, node, "comes before '", source->name, "', which is ", what,
           " of it");
  }

  void check_edges(const Node& node) const {
    for (const Output& input : node.inputs) {
      check_source(node, input.node, "an input");
      expect(input.index >= 0 && input.index < input.node->num_outputs(), node, "uses output ",
             input.index, " of '", input.node->name, "', which has ", input.node->num_outputs());
    }
    for (const Node* control : node.control_inputs) check_source(node, control, "a control input");
  }

  // What is right for `like` is for `node`, a node of the same op. Not for constants: comparing
  // them takes longer than the check.
  static bool has_types_of(const Node& node, const Node& like) {
    const auto is_like = [](const auto& a, const auto& b) {
      return a.dtype == b.dtype && a.is_ref == b.is_ref;
    };
    const auto gets_like = [&](const Output& a, const Output& b) {
      return is_like(a.node->outputs[a.index], b.node->outputs[b.index]);
    };
    return !node.inputs.empty() && node.attrs == like.attrs &&
           std::equal(node.inputs.begin(), node.inputs.end(), like.inputs.begin(),
                      like.inputs.end(), gets_like) &&
           std::equal(node.outputs.begin(), node.outputs.end(), like.outputs.begin(),
                      like.outputs.end(), is_like);
  }

  void check_types(const Node& node) {
    const Node*& last = last_right_[node.op];
    if (last != nullptr && has_types_of(node, *last)) return;
    check_all_types(node);
    last = &node;
  }

  void check_all_types(const Node& node) const {
    size_t inputs = 0;
    for (const ArgRange& range : arg_ranges(node.op->schema.inputs, node.attrs)) {
      inputs += range.end - range.begin;
      expect(inputs <= node.inputs.size(), node, "has only ", node.inputs.size(), " inputs");
      for (int i = range.begin; i < range.end; ++i) {
        const Output& input = node.inputs[i];
        const DType wanted = expected_dtype(range, i, node.attrs);
        expect(input.dtype() == wanted, node, "needs ", wanted, " as input ", range.arg->name,
               " but gets ", input.dtype(), " from '", input.node->name, "'");
        expect(!range.arg->is_ref || input.is_ref(), node, "needs a variable as input ",
               range.arg->name, " but gets the value '", input.node->name, "'");
      }
    }
    expect(inputs == node.inputs.size(), node, "has ", node.inputs.size(), " inputs, not ", inputs);
    size_t outputs = 0;
    for (const ArgRange& range : arg_ranges(node.op->schema.outputs, node.attrs)) {
      for (int i = range.begin; i < range.end; ++i, ++outputs) {
        expect(outputs < node.outputs.size() && node.outputs[i].is_ref == range.arg->is_ref &&
                   node.outputs[i].dtype == expected_dtype(range, i, node.attrs),
               node, "has an output ", i, " that does not follow from its op and attributes");
      }
    }
    expect(outputs == node.outputs.size(), node, "has ", node.outputs.size(), " outputs, not ",
           outputs);
  }

  const Graph& graph_;
  const std::string_view pass_;
  absl::flat_hash_map<const OpDef*, const Node*> last_right_;
};

}  // namespace

void verify(const Graph& graph, std::string_view pass) { Verifier(graph, pass).run(); }

}  // namespace leat
