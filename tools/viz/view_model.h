// What a picture of a graph shows, independent of layout: devices, boxes, arrows and cables.
//
// Nodes fold into boxes by name scope, separately on every device. If more boxes remain than people
// can read, those whose names differ only in their numbers, and which connect in the same way to
// neighbours of the same kinds, become one: "MatMul ×400". A Send and its Recv are not boxes:
// together they are one cable from the producer to the consumers of the value. Constants that only
// one box uses are part of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/viz/wiring.h"

namespace leat::viz {

struct ViewOptions {
  int depth = 0;  // name parts kept apart: 1 folds dense/MatMul into dense. 0: automatic
  // Scopes to show one level deeper, and boxes ×N to show one by one, wherever they are.
  std::vector<std::string> expand;
  std::string only_device;  // a device, or a task: everything elsewhere is one box per device
  bool shows_control_edges = true;
};

// Most boxes that an automatic depth leaves visible, if any depth does.
inline constexpr size_t readable_boxes = 40;

struct ViewDevice {
  std::string name;   // complete, or "" for nodes without a device
  std::string label;  // "/job:ps/task:0 · CPU:0"
  bool is_gpu = false;
  int nodes = 0;                        // Sends and Recvs not counted
  int64_t bytes_in = 0, bytes_out = 0;  // per step, of the transfers whose shape is known
};

struct ViewBox {
  enum class Kind {
    op,        // one node
    scope,     // several nodes
    variable,  // one node with state
    input,     // one fed node
    constant,  // one node that never changes
    port,      // a value from another device, used by several boxes of this one
    device,    // all nodes of a device that is not shown
  };
  Kind kind = Kind::op;
  int device = 0;     // index in ViewModel::devices
  std::string path;   // "gradients/dense": the scope or the node's name
  std::string label;  // its last part
  int nodes = 0;
  int siblings = 1;                // number of merged boxes, whose names differ only in a number
  std::string op;                  // of a single node
  std::vector<std::string> slots;  // of a variable: the optimizer's slots for it
  std::map<std::string, int> ops;  // op → how many nodes
  DType dtype = DType::invalid;    // of a variable, an input, a constant
  Shape shape = Shape::unknown();
  int variables = 0;
  int64_t variable_bytes = 0;
};

struct ViewArrow {
  enum class Kind { data, control, cable };
  Kind kind = Kind::data;
  int from = 0, to = 0;             // indices in ViewModel::boxes
  int count = 1;                    // edges of the graph merged into it
  std::vector<Transfer> transfers;  // of a cable, the largest first
};

struct ViewModel {
  std::vector<ViewDevice> devices;  // by name
  std::vector<ViewBox> boxes;
  std::vector<ViewArrow> arrows;
  int nodes = 0;    // in the graph
  int depth = 0;    // as requested or chosen
  int deepest = 0;  // parts of the longest name
  std::vector<std::string>
      mistakes;  // of the graph: names that occur twice, inputs that do not exist
};

// INVALID_ARGUMENT if `only_device` or an entry of `expand` matches nothing.
ViewModel make_view(const std::vector<WrittenNode>& nodes, const ViewOptions& options = {});

// How many boxes a depth shows, without ports.
size_t visible_boxes(const ViewModel& view);

// "392 KiB", "1.5 MiB", "12 B".
std::string format_bytes(int64_t bytes);
// "float [784,128] · 392 KiB"; "4 tensors · ≥ 796 KiB"; "signal".
std::string cable_label(const std::vector<Transfer>& transfers);
// Below the label: "8 nodes: MatMul, Add ×2, …", "variable float [784,128]", "MatMul".
std::string box_note(const ViewBox& box);

}  // namespace leat::viz
