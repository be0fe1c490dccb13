#include "tools/viz/view_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/device_name.h"
#include "graph/fused.h"
#include "graph/op_def.h"
#include "tools/viz/siblings.h"

namespace leat::viz {
namespace {

int parts_of(std::string_view name) {
  return 1 + static_cast<int>(std::count(name.begin(), name.end(), '/'));
}

std::string first_parts(const std::string& name, int count) {
  size_t end = 0;
  for (int i = 0; i < count; ++i) {
    end = name.find('/', i == 0 ? 0 : end + 1);
    if (end == std::string::npos) return name;
  }
  return name.substr(0, end);
}

ViewBox::Kind kind_of(const WrittenNode& node) {
  const OpDef* op = find_op(node.op);
  if (op != nullptr && op->is_variable) return ViewBox::Kind::variable;
  if (node.op == "Placeholder" || node.op == "PlaceholderWithDefault" || node.op == "_Feed" ||
      node.op == "_Arg") {
    return ViewBox::Kind::input;
  }
  return node.op == "Const" ? ViewBox::Kind::constant : ViewBox::Kind::op;
}

class Folding {
 public:
  Folding(const Wiring& wiring, const ViewOptions& options) : wiring_(wiring), options_(options) {
    find_devices();
  }

  ViewModel fold(int depth) {
    view_ = {};
    view_.devices = devices_;
    view_.depth = depth;
    view_.nodes = static_cast<int>(wiring_.nodes.size());
    box_of_.assign(wiring_.nodes.size(), -1);
    boxes_.clear();
    assign_boxes(depth);
    lift_wires();
    return std::move(view_);
  }

 private:
  void find_devices() {
    std::set<std::string> names;
    for (size_t i = 0; i < wiring_.nodes.size(); ++i) {
      if (!wiring_.is_hidden[i]) names.insert(wiring_.device_of[i]);
    }
    for (const std::string& name : names) {
      index_of_device_[name] = static_cast<int>(devices_.size());
      ViewDevice device{.name = name, .label = name.empty() ? "no device" : name};
      try {
        const DeviceName parsed = DeviceName::parse(name);
        device.is_gpu = parsed.type == "GPU";
        if (parsed.is_complete())
          device.label = fmt::format("/job:{}/task:{} · {}:{}", *parsed.job, *parsed.task,
                                     *parsed.type, *parsed.id);
      } catch (const Error&) {
        // shown as it is written
      }
      devices_.push_back(std::move(device));
    }
    is_shown_.assign(devices_.size(), true);
    if (options_.only_device.empty()) return;
    const DeviceName wanted = DeviceName::parse(options_.only_device);
    bool is_any = false;
    for (size_t i = 0; i < devices_.size(); ++i) {
      try {
        is_shown_[i] = wanted.matches(DeviceName::parse(devices_[i].name));
      } catch (const Error&) {
        is_shown_[i] = false;
      }
      is_any |= is_shown_[i];
    }
    std::string known;
    for (const ViewDevice& device : devices_) known += (known.empty() ? "" : ", ") + device.name;
    check(is_any, "no node of the graph is on ", options_.only_device, "; the devices are ", known);
  }

  // By name, but: what is named below a variable (its read, an optimizer's slots, its first value)
  // is part of the variable's box, and so is a constant of the one box that uses it.
  void assign_boxes(int depth) {
    const auto& nodes = wiring_.nodes;
    find_variables();
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (wiring_.is_hidden[i] || nodes[i].op == "Const" || owner_of(i)) continue;
      put(i, path_of(i, depth));
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (wiring_.is_hidden[i]) continue;
      if (const auto owner = owner_of(i)) add_detail(i, box_of_[*owner]);
    }

    std::vector<std::set<int>> users(nodes.size());
    for (const Wire& wire : wiring_.wires) {
      const bool is_near = wire.transfer < 0;
      users[wire.from].insert(is_near ? box_of_[wire.to] : -1);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].op != "Const" || owner_of(i)) continue;
      const std::string path = path_of(i, depth);
      const bool is_folded = path != nodes[i].name;
      if (!is_folded && users[i].size() == 1 && *users[i].begin() >= 0) {
        add_detail(i, *users[i].begin());
      } else {
        put(i, path);
      }
    }
  }

  void find_variables() {
    variables_.clear();
    for (size_t i = 0; i < wiring_.nodes.size(); ++i) {
      if (kind_of(wiring_.nodes[i]) != ViewBox::Kind::variable) continue;
      variables_[{wiring_.device_of[i], wiring_.nodes[i].name}] = i;
    }
  }

  // The variable below whose name this node's lies, unless the user wants to see what is there.
  std::optional<size_t> owner_of(size_t node) const {
    const std::string& name = wiring_.nodes[node].name;
    for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
      const std::string scope = name.substr(0, end);
      const auto found = variables_.find({wiring_.device_of[node], scope});
      const bool is_expanded =
          std::count(options_.expand.begin(), options_.expand.end(), scope) > 0;
      if (found != variables_.end() && !is_expanded) return found->second;
    }
    return std::nullopt;
  }

  std::string path_of(size_t node, int depth) const {
    const std::string& name = wiring_.nodes[node].name;
    if (!is_shown_[device_index(node)]) return "";
    for (const std::string& scope : options_.expand) {
      if (name.starts_with(scope + "/")) depth = std::max(depth, parts_of(scope) + 1);
    }
    return first_parts(name, depth);
  }

  int device_index(size_t node) const { return index_of_device_.at(wiring_.device_of[node]); }

  void put(size_t node, const std::string& path) {
    const int device = device_index(node);
    const auto [found, is_new] =
        boxes_.try_emplace({device, path}, static_cast<int>(view_.boxes.size()));
    if (is_new) {
      view_.boxes.push_back({.kind = ViewBox::Kind::scope, .device = device, .path = path});
      view_.boxes.back().label = path.substr(path.rfind('/') + 1);
      if (path.empty()) view_.boxes.back().kind = ViewBox::Kind::device;
    }
    join(node, found->second);
  }

  // One of the nodes that a box stands for.
  void join(size_t node, int index) {
    count(node, index);
    ViewBox& box = view_.boxes[index];
    if (box.kind == ViewBox::Kind::device) return;
    const WrittenNode& written = wiring_.nodes[node];
    const bool is_alone = box.nodes == 1;
    box.kind = is_alone ? kind_of(written) : ViewBox::Kind::scope;
    box.dtype = is_alone ? output_dtype(written) : DType::invalid;
    box.shape = is_alone ? output_shape(written, 0) : Shape::unknown();
    box.op = is_alone ? op_title({written.name, written.op, written.attrs}) : "";
  }

  // A node that does not change what the box is.
  void add_detail(size_t node, int index) {
    count(node, index);
    ViewBox& box = view_.boxes[index];
    const WrittenNode& written = wiring_.nodes[node];
    if (box.kind == ViewBox::Kind::variable && kind_of(written) == ViewBox::Kind::variable) {
      box.slots.push_back(written.name.substr(written.name.rfind('/') + 1));
    }
  }

  void count(size_t node, int index) {
    box_of_[node] = index;
    ViewBox& box = view_.boxes[index];
    const WrittenNode& written = wiring_.nodes[node];
    ++view_.devices[box.device].nodes;
    ++box.nodes;
    ++box.ops[op_title({written.name, written.op, written.attrs})];
    if (kind_of(written) != ViewBox::Kind::variable) return;
    ++box.variables;
    box.variable_bytes +=
        std::max(int64_t{0}, bytes_of(output_dtype(written), output_shape(written, 0)));
  }

  void lift_wires() {
    std::map<std::tuple<ViewArrow::Kind, int, int>, int> arrows;
    std::map<int, std::pair<int, std::set<int>>> cables;  // transfer → from box, to boxes
    for (const Wire& wire : wiring_.wires) {
      const int from = box_of_[wire.from], to = box_of_[wire.to];
      if (wire.transfer >= 0) {
        auto& cable = cables[wire.transfer];
        cable.first = from;
        if (to >= 0) cable.second.insert(to);
        continue;
      }
      if (from < 0 || to < 0 || from == to || (wire.is_control && !options_.shows_control_edges))
        continue;
      const auto kind = wire.is_control ? ViewArrow::Kind::control : ViewArrow::Kind::data;
      const auto [found, is_new] =
          arrows.try_emplace({kind, from, to}, static_cast<int>(view_.arrows.size()));
      if (is_new) {
        view_.arrows.push_back({.kind = kind, .from = from, .to = to});
      } else {
        ++view_.arrows[found->second].count;
      }
    }

    // All that goes from one box to the same boxes of a device is one cable, and ends at a port if
    // those are several.
    std::map<std::pair<int, std::set<int>>, std::vector<Transfer>> merged;
    for (const auto& [transfer, ends] : cables) {
      const Transfer& value = wiring_.transfers[transfer];
      if (ends.first < 0 || ends.second.empty()) continue;
      if (value.dtype == DType::invalid && value.tensor.starts_with("^") &&
          !options_.shows_control_edges)
        continue;
      merged[ends].push_back(value);
    }
    for (auto& [ends, transfers] : merged) {
      std::stable_sort(transfers.begin(), transfers.end(),
                       [](const Transfer& a, const Transfer& b) { return a.bytes() > b.bytes(); });
      int to = *ends.second.begin();
      const int device = view_.boxes[to].device;
      for (const Transfer& transfer : transfers) {
        const int64_t bytes = std::max(int64_t{0}, transfer.bytes());
        view_.devices[device].bytes_in += bytes;
        view_.devices[view_.boxes[ends.first].device].bytes_out += bytes;
      }
      if (ends.second.size() > 1) {
        to = static_cast<int>(view_.boxes.size());
        view_.boxes.push_back({.kind = ViewBox::Kind::port, .device = device});
        for (const int consumer : ends.second) {
          view_.arrows.push_back({.kind = ViewArrow::Kind::data, .from = to, .to = consumer});
        }
      }
      const int count = static_cast<int>(transfers.size());
      view_.arrows.push_back({.kind = ViewArrow::Kind::cable,
                              .from = ends.first,
                              .to = to,
                              .count = count,
                              .transfers = std::move(transfers)});
    }
  }

  const Wiring& wiring_;
  const ViewOptions& options_;
  std::vector<ViewDevice> devices_;
  std::map<std::string, int> index_of_device_;
  std::vector<bool> is_shown_;
  ViewModel view_;
  std::map<std::pair<std::string, std::string>, size_t> variables_;  // device, name → node
  std::vector<int> box_of_;                                          // of every node; -1: hidden
  std::map<std::pair<int, std::string>, int> boxes_;                 // device, path → box
};

}  // namespace

ViewModel make_view(const std::vector<WrittenNode>& nodes, const ViewOptions& options) {
  const Wiring wiring = read_wiring(nodes);
  int deepest = 1;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!wiring.is_hidden[i]) deepest = std::max(deepest, parts_of(nodes[i].name));
  }
  for (const std::string& scope : options.expand) {
    // Or what is called so, with a number.
    const bool is_known = std::any_of(nodes.begin(), nodes.end(), [&](const WrittenNode& node) {
      const std::string part = first_parts(node.name, parts_of(scope));
      return node.name.starts_with(scope + "/") || (part != scope && without_number(part) == scope);
    });
    check(is_known, "no node's name begins with ", scope, "/, and no node is named ", scope,
          " with a number");
  }
  Folding folding(wiring, options);
  int depth = options.depth > 0 ? std::min(options.depth, deepest) : deepest;
  ViewModel view = folding.fold(depth);
  while (options.depth <= 0 && depth > 1 && visible_boxes(view) > readable_boxes)
    view = folding.fold(--depth);
  if (visible_boxes(view) > readable_boxes) fold_siblings(view, options.expand);
  view.deepest = deepest;
  view.mistakes = wiring.mistakes;
  return view;
}

size_t visible_boxes(const ViewModel& view) {
  return static_cast<size_t>(
      std::count_if(view.boxes.begin(), view.boxes.end(),
                    [](const ViewBox& box) { return box.kind != ViewBox::Kind::port; }));
}

std::string format_bytes(int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return value < 10 ? fmt::format("{:.1f} {}", value, unit) : fmt::format("{:.0f} {}", value, unit);
}

std::string cable_label(const std::vector<Transfer>& transfers) {
  int64_t total = 0;
  int values = 0, unknown = 0;
  for (const Transfer& transfer : transfers) {
    if (transfer.dtype == DType::invalid) continue;
    ++values;
    if (transfer.bytes() < 0) ++unknown;
    total += std::max(int64_t{0}, transfer.bytes());
  }
  if (values == 0)
    return transfers.size() == 1 ? "signal" : fmt::format("{} signals", transfers.size());
  if (values == 1) {
    for (const Transfer& transfer : transfers) {
      if (transfer.dtype == DType::invalid) continue;
      std::string what(dtype_name(transfer.dtype));
      if (transfer.shape.has_rank()) what += " " + transfer.shape.to_string();
      return transfer.bytes() < 0 ? what : what + " · " + format_bytes(transfer.bytes());
    }
  }
  const std::string amount =
      unknown == values ? "" : fmt::format(" · {}{}", unknown > 0 ? "≥ " : "", format_bytes(total));
  return fmt::format("{} tensors{}", values, amount);
}

std::string box_note(const ViewBox& box) {
  const auto value = [&](std::string_view what) {
    if (box.dtype == DType::invalid) return std::string(what);
    return fmt::format("{} {} {}", what, dtype_name(box.dtype),
                       box.shape.has_rank() ? box.shape.to_string() : "");
  };
  switch (box.kind) {
    case ViewBox::Kind::port:
      return "";
    case ViewBox::Kind::variable:
      return value("variable");
    case ViewBox::Kind::input:
      return value("fed");
    case ViewBox::Kind::constant:
      return value("constant");
    case ViewBox::Kind::op:
      return box.op == box.label ? "" : box.op;
    case ViewBox::Kind::scope:
    case ViewBox::Kind::device:
      break;
  }
  // Plumbing last.
  std::vector<std::pair<std::string, int>> ops(box.ops.begin(), box.ops.end());
  const auto rank = [](const auto& op) {
    const bool is_dull = op.first == "Const" || op.first == "Identity" || op.first == "NoOp";
    return std::tuple(is_dull, -op.second);
  };
  std::stable_sort(ops.begin(), ops.end(),
                   [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  constexpr size_t shown_ops = 3;
  if (box.siblings > 1 && ops.size() == 1) return ops[0].first == box.label ? "" : ops[0].first;
  std::string note = fmt::format("{} nodes: ", box.nodes);
  for (size_t i = 0; i < std::min(ops.size(), shown_ops); ++i) {
    note += fmt::format("{}{}", i == 0 ? "" : ", ", ops[i].first);
    if (ops[i].second > 1) note += fmt::format(" ×{}", ops[i].second);
  }
  return ops.size() > shown_ops ? note + ", …" : note;
}

}  // namespace leat::viz
