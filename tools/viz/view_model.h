// What a picture of a graph shows, before anybody decides where on the page: devices, boxes, arrows
// and cables.
//
// Nodes fold into boxes by name scope, separately on every device. Where more boxes are left than
// people read, those whose names differ in their numbers only, and which do the same to neighbours
// of the same kinds, are one: "MatMul ×400". A Send and its Recv are no boxes: together they are
// one cable from the producer to what consumes the value. Constants that only one box uses are part
// of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/viz/wiring.h"

namespace leat::viz {

struct ViewOptions {
  int depth = 0;  // parts of a name that stay apart: 1 folds dense/MatMul into dense. 0: chosen
  // Scopes that are shown one level deeper, and boxes ×N that are shown one by one, wherever they
  // lie.
  std::vector<std::string> expand;
  std::string only_device;  // a device, or a task: everything elsewhere is one box per device
  bool shows_control_edges = true;
};

// Most boxes that a chosen depth leaves visible, if any depth does.
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
    scope,     // several
    variable,  // one node that holds state
    input,     // one node that is fed
    constant,  // one node that never changes
    port,      // where a value from another device arrives that several boxes of this one use
    device,    // everything on a device that is not shown
  };
  Kind kind = Kind::op;
  int device = 0;     // index in ViewModel::devices
  std::string path;   // "gradients/dense": the scope or the node's name
  std::string label;  // the last part of it
  int nodes = 0;
  int siblings = 1;                // boxes of that name, but for the number, that it stands for
  std::string op;                  // of one node
  std::vector<std::string> slots;  // of a variable: what an optimizer keeps beside it
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
  int count = 1;                    // edges of the graph that it stands for
  std::vector<Transfer> transfers;  // of a cable, the largest first
};

struct ViewModel {
  std::vector<ViewDevice> devices;  // by name
  std::vector<ViewBox> boxes;
  std::vector<ViewArrow> arrows;
  int nodes = 0;    // in the graph
  int depth = 0;    // as asked for or chosen
  int deepest = 0;  // parts of the longest name
  std::vector<std::string>
      mistakes;  // of the graph: names that come twice, inputs that are not there
};

// INVALID_ARGUMENT if `only_device` fits no device, or `expand` nothing.
ViewModel make_view(const std::vector<WrittenNode>& nodes, const ViewOptions& options = {});

// How many boxes (ports not counted) a depth shows.
size_t visible_boxes(const ViewModel& view);

// "392 KiB", "1.5 MiB", "12 B".
std::string format_bytes(int64_t bytes);
// "float [784,128] · 392 KiB"; "4 tensors · ≥ 796 KiB"; "signal".
std::string cable_label(const std::vector<Transfer>& transfers);
// Below the label: "8 nodes: MatMul, Add ×2, …", "variable float [784,128]", "MatMul".
std::string box_note(const ViewBox& box);

}  // namespace leat::viz
