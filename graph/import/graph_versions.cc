#include "graph/import/graph_versions.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/endpoint.h"
#include "graph/graph.h"
#include "graph/proto/graph.pb.h"

namespace leat {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;

constexpr int written_version = 987;    // TensorFlow 2.8's
constexpr int consumer_version = 2474;  // TensorFlow 2.21's, whose graphs these are
constexpr int oldest_producer = 0;      // before graphs had versions
// From this one on an empty shape of a Placeholder is that of a scalar; before it says nothing.
constexpr int exact_placeholders = 22;

// Only ops that are known at all: of others there is nothing to say but that.
const std::map<std::string_view, Deprecation> deprecations = {
    {"AudioSummary", {15, "Use AudioSummaryV2."}},
    {"BatchCholesky", {13, "Use Cholesky instead."}},
    {"BatchCholeskyGrad", {13, "Use CholeskyGrad instead."}},
    {"BatchMatrixBandPart", {14, "Use MatrixBandPart"}},
    {"BatchMatrixDeterminant", {13, "Use MatrixDeterminant instead."}},
    {"BatchMatrixDiag", {14, "Use MatrixDiag"}},
    {"BatchMatrixDiagPart", {14, "Use MatrixDiagPart"}},
    {"BatchMatrixInverse", {13, "Use MatrixInverse instead."}},
    {"BatchMatrixSetDiag", {14, "Use MatrixSetDiag"}},
    {"BatchMatrixSolve", {13, "Use MatrixSolve instead."}},
    {"BatchMatrixSolveLs", {13, "Use MatrixSolveLs instead."}},
    {"BatchMatrixTriangularSolve", {13, "Use MatrixTriangularSolve instead."}},
    {"BatchNormWithGlobalNormalization", {9, "Use tf.nn.batch_normalization()"}},
    {"BatchNormWithGlobalNormalizationGrad", {9, "Use tf.nn.batch_normalization()"}},
    {"BatchSelfAdjointEig", {11, "Use SelfAdjointEigV2 instead."}},
    {"BatchSelfAdjointEigV2", {13, "Use SelfAdjointEigV2 instead."}},
    {"BatchSvd", {13, "Use Svd instead."}},
    {"Conv3DBackpropFilter", {10, "Use Conv3DBackpropFilterV2"}},
    {"Conv3DBackpropInput", {10, "Use Conv3DBackpropInputV2"}},
    {"FixedLengthRecordReader", {26, "Use FixedLengthRecordReaderV2"}},
    {"IdentityReader", {26, "Use IdentityReaderV2"}},
    {"MatrixExponential", {27, "Use Python implementation tf.linalg.matrix_exponential instead."}},
    {"NegTrain", {19, "word2vec is not part of TensorFlow any more"}},
    {"PlaceholderV2", {23, "Placeholder now behaves the same as PlaceholderV2."}},
    {"QuantizeAndDequantize", {22, "Replaced by QuantizeAndDequantizeV2"}},
    {"RandomCrop", {8, "Random crop is now pure Python"}},
    {"RandomPoisson", {25, "Replaced by RandomPoissonV2"}},
    {"SelfAdjointEig", {11, "Use SelfAdjointEigV2 instead."}},
    {"Skipgram", {19, "word2vec is not part of TensorFlow any more"}},
    {"StatefulStandardNormal", {29, "Use StatefulStandardNormalV2 instead"}},
    {"TFRecordReader", {26, "Use TFRecordReaderV2"}},
    {"TensorArray", {16, "Use TensorArrayV3"}},
    {"TensorArrayClose", {16, "Use TensorArrayCloseV3"}},
    {"TensorArrayCloseV2", {26, "Use TensorArrayCloseV3"}},
    {"TensorArrayConcat", {16, "Use TensorArrayConcatV3"}},
    {"TensorArrayGather", {16, "Use TensorArrayGatherV3"}},
    {"TensorArrayGatherV2", {26, "Use TensorArrayGatherV3"}},
    {"TensorArrayGrad", {16, "Use TensorArrayGradV3"}},
    {"TensorArrayGradV2", {26, "Use TensorArrayGradV3"}},
    {"TensorArrayPack", {16, "Use TensorArrayGatherV3 with RangeOp"}},
    {"TensorArrayRead", {16, "Use TensorArrayReadV3"}},
    {"TensorArrayReadV2", {26, "Use TensorArrayReadV3"}},
    {"TensorArrayScatter", {19, "Use TensorArrayScatterV3"}},
    {"TensorArrayScatterV2", {26, "Use TensorArrayScatterV3"}},
    {"TensorArraySize", {16, "Use TensorArraySizeV3"}},
    {"TensorArraySizeV2", {26, "Use TensorArraySizeV3"}},
    {"TensorArraySplit", {16, "Use TensorArraySplitV3"}},
    {"TensorArraySplitV2", {26, "Use TensorArraySplitV3"}},
    {"TensorArrayUnpack", {20, "Use TensorArrayScatterV3 with RangeOp"}},
    {"TensorArrayV2", {26, "Use TensorArrayV3"}},
    {"TensorArrayWrite", {16, "Use TensorArrayWriteV3"}},
    {"TensorArrayWriteV2", {26, "Use TensorArrayWriteV3"}},
    {"TextLineReader", {26, "Use TextLineReaderV2"}},
    {"TileGrad", {3, "TileGrad has been replaced with reduce_sum"}},
    {"TopK", {7, "Use TopKV2 instead"}},
};

void free_placeholder(NodeDef& node) {
  const auto shape = node.mutable_attr()->find("shape");
  if (shape == node.mutable_attr()->end() || !shape->second.has_shape()) return;
  if (shape->second.shape().dim_size() == 0) shape->second.mutable_shape()->set_unknown_rank(true);
}

// ---- Stacks of version 1, whose handles are references ----

// What hands a handle on, and what does so with one that is a resource.
const std::unordered_map<std::string_view, const char*> handed_on = {
    {"Enter", "Enter"},
    {"RefEnter", "Enter"},
    {"Exit", "Exit"},
    {"RefExit", "Exit"},
    {"Identity", "Identity"},
    {"RefIdentity", "Identity"},
    {"Merge", "Merge"},
    {"RefMerge", "Merge"},
    {"NextIteration", "NextIteration"},
    {"RefNextIteration", "NextIteration"},
    {"Switch", "Switch"},
    {"RefSwitch", "Switch"},
};

bool hands_on_text(const NodeDef& node) {
  if (!handed_on.contains(node.op()) || node.input_size() == 0) return false;
  const auto type = node.attr().find("T");
  return type != node.attr().end() && type->second.type() == tensorflow::DT_STRING;
}

// They become those of version 2, with all that their handles pass on the way.
class Stacks {
 public:
  Stacks(GraphDef& def, const Graph& graph) : def_(def), graph_(graph) {}

  void rewrite() {
    std::vector<int> made, passed;
    for (int i = 0; i < def_.node_size(); ++i) {
      NodeDef& node = *def_.mutable_node(i);
      if (node.op() == "Stack") {
        made.push_back(i);
      } else if (node.op() == "StackPush" || node.op() == "StackPop" || node.op() == "StackClose") {
        node.set_op(node.op() + "V2");
      } else if (graph_.size() > 0 && hands_on_text(node) && is_handle_there(node.input(0))) {
        passed.push_back(i);
      }
    }
    if (made.empty() && passed.empty()) return;
    for (const NodeDef& node : def_.node()) names_.insert(node.name());
    std::unordered_map<std::string, std::vector<int>> users;
    for (int i = 0; i < def_.node_size(); ++i) {
      if (hands_on_text(def_.node(i)))
        users[std::string(node_of(def_.node(i).input(0)))].push_back(i);
    }
    std::vector<int> to_visit = made;
    for (const int i : passed) pass(i, to_visit);
    while (!to_visit.empty()) {
      const int from = to_visit.back();
      to_visit.pop_back();
      const auto found = users.find(def_.node(from).name());
      if (found == users.end()) continue;
      for (const int user : found->second) pass(user, to_visit);
    }
    for (const int i : made) rewrite_stack(i);
  }

 private:
  // One that an earlier part of the graph made.
  bool is_handle_there(std::string_view input) const {
    const Node* node = graph_.find(node_of(input));
    return node != nullptr && !node->outputs.empty() && node->outputs[0].dtype == DType::resource;
  }

  void pass(int i, std::vector<int>& to_visit) {
    NodeDef& node = *def_.mutable_node(i);
    if (!hands_on_text(node)) return;  // known
    node.set_op(handed_on.at(node.op()));
    (*node.mutable_attr())["T"].set_type(tensorflow::DT_RESOURCE);
    to_visit.push_back(i);
  }

  // Without a limit, where the old op had none to give.
  void rewrite_stack(int i) {
    NodeDef size;
    size.set_name(free_name(def_.node(i).name() + "/max_size"));
    size.set_op("Const");
    size.set_device(def_.node(i).device());
    (*size.mutable_attr())["dtype"].set_type(tensorflow::DT_INT32);
    tensorflow::TensorProto& value = *(*size.mutable_attr())["value"].mutable_tensor();
    value.set_dtype(tensorflow::DT_INT32);
    value.mutable_tensor_shape();
    value.add_int_val(-1);

    NodeDef& stack = *def_.mutable_node(i);
    stack.set_op("StackV2");
    *size.mutable_input() = stack.input();  // it is in the loop that its stack is in
    stack.mutable_input()->Clear();
    stack.add_input(size.name());
    for (const std::string& control : size.input()) stack.add_input(control);
    *def_.add_node() = std::move(size);
  }

  std::string free_name(const std::string& wanted) {
    int& next = next_number_[wanted];  // many nodes may have one name, which is refused later
    std::string name = wanted;
    while (graph_.find(name) != nullptr || !names_.insert(name).second)
      name = concat(wanted, "_", ++next);
    return name;
  }

  GraphDef& def_;
  const Graph& graph_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, int> next_number_;
};

}  // namespace

void check_versions(const GraphDef& def) {
  const auto& versions = def.versions();
  const auto& bad = versions.bad_consumers();
  check(versions.producer() >= oldest_producer, "GraphDef producer version ", versions.producer(),
        " below min producer ", oldest_producer, ": write the graph again");
  check(versions.min_consumer() <= consumer_version, "GraphDef min consumer version ",
        versions.min_consumer(), " above current version ", consumer_version,
        ": the graph needs features that Leat does not have yet");
  check(std::find(bad.begin(), bad.end(), consumer_version) == bad.end(),
        "GraphDef disallows consumer version ", consumer_version,
        ", which is Leat's: the graph's writer declared that this version runs it wrongly");
}

const Deprecation* deprecation(std::string_view op) {
  const auto found = deprecations.find(op);
  return found == deprecations.end() ? nullptr : &found->second;
}

void check_not_deprecated(std::string_view op, int producer) {
  const Deprecation* gone = deprecation(op);
  if (gone == nullptr || producer < gone->version) return;
  fail(Code::unimplemented, "Op ", op, " is not available in GraphDef version ", producer,
       ". It has been removed in version ", gone->version, ". ", gone->advice, ".");
}

int producer_of(const Graph& graph, size_t first_node) {
  int out = written_version;
  for (size_t i = first_node; i < graph.size(); ++i) {
    const Deprecation* gone = deprecation(graph.nodes()[i]->op->name);
    if (gone != nullptr) out = std::min(out, gone->version - 1);
  }
  return out;
}

void write_as_today(GraphDef& def, const Graph& graph) {
  if (def.versions().producer() < exact_placeholders) {
    for (NodeDef& node : *def.mutable_node()) {
      if (node.op() == "Placeholder") free_placeholder(node);
    }
  }
  Stacks(def, graph).rewrite();
}

}  // namespace leat
