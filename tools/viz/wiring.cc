#include "tools/viz/wiring.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "core/device_name.h"
#include "graph/endpoint.h"

namespace leat::viz {
namespace {

struct Source {
  int node = -1;
  int output = 0;
  bool is_control = false;
};

bool is_send(const WrittenNode& node) {
  return node.op == "_Send" || node.op == "_HostSend" || node.op == "Send";
}
bool is_recv(const WrittenNode& node) {
  return node.op == "_Recv" || node.op == "_HostRecv" || node.op == "Recv";
}

template <class T>
const T* find_attr(const WrittenNode& node, std::string_view name) {
  const auto found = node.attrs.find(name);
  return found == node.attrs.end() ? nullptr : std::get_if<T>(&found->second.variant());
}

std::string text_attr(const WrittenNode& node, std::string_view name) {
  const auto* text = find_attr<std::string>(node, name);
  return text == nullptr ? "" : *text;
}

// A type, or a list with one.
DType dtype_attr(const WrittenNode& node, std::string_view name) {
  if (const auto* one = find_attr<DType>(node, name)) return *one;
  const auto* list = find_attr<std::vector<DType>>(node, name);
  return list == nullptr || list->empty() ? DType::invalid : list->front();
}

std::string normal_device(const std::string& text) {
  try {
    return DeviceName::parse(text).to_string();
  } catch (const Error&) {
    return text;
  }
}

class Names {
 public:
  Names(const std::vector<WrittenNode>& nodes, const std::vector<std::string>& device_of)
      : device_of_(device_of) {
    for (size_t i = 0; i < nodes.size(); ++i)
      by_name_[nodes[i].name].push_back(static_cast<int>(i));
  }

  // "^name", "name:1", "name". Partitions written into one file may repeat a name: the node of this
  // device is meant.
  std::optional<Source> find(std::string_view input, const std::string& device) const {
    Source source;
    if (input.starts_with("^")) source.is_control = true, input.remove_prefix(1);
    const std::optional<Endpoint> endpoint = Endpoint::parse(input);
    if (!endpoint) return std::nullopt;
    source.output = endpoint->index;
    const auto found = by_name_.find(std::string(endpoint->node));
    if (found == by_name_.end()) return std::nullopt;
    source.node = found->second.front();
    for (const int node : found->second) {
      if (device_of_[node] == device) source.node = node;
    }
    return source;
  }

 private:
  const std::vector<std::string>& device_of_;
  std::unordered_map<std::string, std::vector<int>> by_name_;
};

using PairKey = std::tuple<int64_t, std::string, std::string, std::string>;

PairKey pair_key(const WrittenNode& node) {
  const auto* edge = find_attr<int64_t>(node, "edge");
  return {edge == nullptr ? -1 : *edge, text_attr(node, "tensor_name"),
          normal_device(text_attr(node, "send_device")),
          normal_device(text_attr(node, "recv_device"))};
}

std::string tensor_name(const WrittenNode& producer, const Source& from) {
  return from.is_control ? "^" + producer.name : fmt::format("{}:{}", producer.name, from.output);
}

// Of an edge between devices that has no Send and Recv yet.
// Its shape is that of `origin`.
Transfer describe_cut(const WrittenNode& producer, const Source& from, const WrittenNode& origin) {
  Transfer out{.tensor = tensor_name(producer, from)};
  if (from.is_control) return out;
  out.dtype = output_dtype(producer);
  out.shape = output_shape(producer, from.output);
  if (!out.shape.has_rank()) out.shape = output_shape(origin, 0);
  return out;
}

Transfer describe_transfer(const WrittenNode& send, const WrittenNode& recv,
                           const WrittenNode& producer, const Source& from) {
  Transfer out{.tensor = tensor_name(producer, from)};
  out.edge = std::get<0>(pair_key(recv));
  if (from.is_control) return out;
  out.dtype = dtype_attr(recv, "tensor_type");
  if (out.dtype == DType::invalid) out.dtype = dtype_attr(send, "T");
  out.shape = output_shape(recv, 0);
  if (!out.shape.has_rank()) out.shape = output_shape(producer, from.output);
  return out;
}

}  // namespace

int64_t Transfer::bytes() const { return bytes_of(dtype, shape); }

int64_t bytes_of(DType dtype, const Shape& shape) {
  if (dtype == DType::invalid || dtype == DType::string || !shape.is_complete()) return -1;
  try {
    return shape.elements() * static_cast<int64_t>(dtype_size(dtype));
  } catch (const Error&) {
    return -1;  // more than an int64 holds
  }
}

Shape output_shape(const WrittenNode& node, int output) {
  if (const auto* shapes = find_attr<std::vector<Shape>>(node, "_output_shapes")) {
    if (output >= 0 && output < static_cast<int>(shapes->size())) return (*shapes)[output];
  }
  if (const auto* shape = find_attr<Shape>(node, "shape")) return *shape;
  const auto value = node.tensors.find("value");
  return value == node.tensors.end() ? Shape::unknown() : value->second.shape;
}

DType output_dtype(const WrittenNode& node) {
  for (const char* name : {"dtype", "tensor_type", "DstT", "out_type", "T"}) {
    if (const DType dtype = dtype_attr(node, name); dtype != DType::invalid) return dtype;
  }
  return DType::invalid;
}

namespace {

// One kind of mistake: as many names as people read, and how many more there are.
class Mistakes {
 public:
  explicit Mistakes(const char* what) : what_(what) {}
  void add(std::string name) {
    if (names_.size() < shown) names_.push_back(std::move(name));
    ++count_;
  }
  void tell(std::vector<std::string>& to) const {
    if (count_ == 0) return;
    std::string text = fmt::format("{}: {}", what_, fmt::join(names_, ", "));
    if (count_ > names_.size()) text += fmt::format(" and {} more", count_ - names_.size());
    to.push_back(std::move(text));
  }

 private:
  static constexpr size_t shown = 10;
  const char* what_;
  std::vector<std::string> names_;
  size_t count_ = 0;
};

}  // namespace

Wiring read_wiring(const std::vector<WrittenNode>& nodes) {
  Wiring wiring{.nodes = nodes,
                .device_of = {},
                .is_hidden = std::vector<bool>(nodes.size()),
                .wires = {},
                .transfers = {},
                .mistakes = {}};
  for (const WrittenNode& node : nodes) wiring.device_of.push_back(normal_device(node.device));
  const Names names(nodes, wiring.device_of);
  Mistakes twice("nodes that share a name"), missing("inputs that no node produces"),
      own("nodes that feed themselves");
  std::set<std::pair<std::string, std::string>> seen;  // partitions in one file may share names
  for (size_t i = 0; i < nodes.size(); ++i)
    if (!seen.emplace(wiring.device_of[i], nodes[i].name).second) twice.add(nodes[i].name);

  // What each Recv hands on, and as which transfer. A Recv that feeds a Send is shown, so that the
  // second cable has somewhere to start.
  std::map<PairKey, int> sends;
  std::set<int> relays;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_send(nodes[i])) continue;
    sends[pair_key(nodes[i])] = static_cast<int>(i);
    if (nodes[i].inputs.empty()) continue;
    const auto from = names.find(nodes[i].inputs.front(), wiring.device_of[i]);
    if (from && is_recv(nodes[from->node])) relays.insert(from->node);
  }
  std::map<int, std::pair<int, int>> received;  // Recv → producer, transfer
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!is_recv(nodes[i])) continue;
    const auto send = sends.find(pair_key(nodes[i]));
    if (send == sends.end() || nodes[send->second].inputs.empty()) continue;
    const auto from =
        names.find(nodes[send->second].inputs.front(), wiring.device_of[send->second]);
    if (!from) continue;
    const int transfer = static_cast<int>(wiring.transfers.size());
    wiring.transfers.push_back(
        describe_transfer(nodes[send->second], nodes[i], nodes[from->node], *from));
    wiring.is_hidden[send->second] = true;
    if (relays.contains(static_cast<int>(i))) {
      wiring.wires.push_back({from->node, static_cast<int>(i), false, transfer});
    } else {
      wiring.is_hidden[i] = true;
      received[static_cast<int>(i)] = {from->node, transfer};
    }
  }

  std::map<std::tuple<int, int, std::string>, int>
      cuts;  // producer, output (-1: control), destination → transfer
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (is_send(nodes[i]) && wiring.is_hidden[i]) continue;
    for (const std::string& input : nodes[i].inputs) {
      const auto from = names.find(input, wiring.device_of[i]);
      if (!from) {
        missing.add(fmt::format("{} of {}", input, nodes[i].name));
        continue;
      }
      if (from->node == static_cast<int>(i)) own.add(nodes[i].name);
      Wire wire{.from = from->node, .to = static_cast<int>(i), .is_control = from->is_control};
      if (const auto value = received.find(from->node); value != received.end()) {
        std::tie(wire.from, wire.transfer) = value->second;
      } else if (wiring.device_of[from->node] != wiring.device_of[i]) {
        const auto [cut, is_new] = cuts.try_emplace(
            {from->node, from->is_control ? -1 : from->output, wiring.device_of[i]},
            static_cast<int>(wiring.transfers.size()));
        wire.transfer = cut->second;
        if (is_new) {
          // A read has its variable's shape.
          int origin = from->node;
          if (nodes[origin].op == "Identity" && !nodes[origin].inputs.empty()) {
            const auto read = names.find(nodes[origin].inputs.front(), wiring.device_of[origin]);
            if (read && !read->is_control) origin = read->node;
          }
          wiring.transfers.push_back(describe_cut(nodes[from->node], *from, nodes[origin]));
        }
      }
      wiring.wires.push_back(wire);
    }
  }
  for (const Mistakes* mistakes : {&twice, &missing, &own}) mistakes->tell(wiring.mistakes);
  return wiring;
}

}  // namespace leat::viz
