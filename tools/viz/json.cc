#include <nlohmann/json.hpp>

#include "tools/viz/render.h"

namespace leat::viz {
namespace {

const char* name_of(ViewBox::Kind kind) {
  switch (kind) {
    case ViewBox::Kind::op:
      return "op";
    case ViewBox::Kind::scope:
      return "scope";
    case ViewBox::Kind::variable:
      return "variable";
    case ViewBox::Kind::input:
      return "input";
    case ViewBox::Kind::constant:
      return "constant";
    case ViewBox::Kind::port:
      return "port";
    case ViewBox::Kind::device:
      return "device";
  }
  return "";
}

const char* name_of(ViewArrow::Kind kind) {
  switch (kind) {
    case ViewArrow::Kind::data:
      return "data";
    case ViewArrow::Kind::control:
      return "control";
    case ViewArrow::Kind::cable:
      return "cable";
  }
  return "";
}

}  // namespace

std::string to_json(const ViewModel& view) {
  using Json = nlohmann::ordered_json;
  Json out = {{"nodes", view.nodes}, {"depth", view.depth}, {"deepest", view.deepest}};
  for (const ViewDevice& device : view.devices) {
    out["devices"].push_back({{"name", device.name},
                              {"nodes", device.nodes},
                              {"bytes_in", device.bytes_in},
                              {"bytes_out", device.bytes_out}});
  }
  for (const ViewBox& box : view.boxes) {
    Json json = {{"kind", name_of(box.kind)},
                 {"device", box.device},
                 {"path", box.path},
                 {"nodes", box.nodes},
                 {"ops", box.ops}};
    if (box.siblings > 1) json["siblings"] = box.siblings;
    if (box.dtype != DType::invalid)
      json["dtype"] = dtype_name(box.dtype), json["shape"] = box.shape.to_string();
    if (box.variables > 0)
      json["variables"] = box.variables, json["variable_bytes"] = box.variable_bytes;
    if (!box.slots.empty()) json["slots"] = box.slots;
    out["boxes"].push_back(std::move(json));
  }
  for (const ViewArrow& arrow : view.arrows) {
    Json json = {{"kind", name_of(arrow.kind)},
                 {"from", arrow.from},
                 {"to", arrow.to},
                 {"count", arrow.count}};
    for (const Transfer& transfer : arrow.transfers) {
      json["transfers"].push_back({{"tensor", transfer.tensor},
                                   {"edge", transfer.edge},
                                   {"dtype", dtype_name(transfer.dtype)},
                                   {"shape", transfer.shape.to_string()},
                                   {"bytes", transfer.bytes()}});
    }
    out["arrows"].push_back(std::move(json));
  }
  if (!view.mistakes.empty()) out["mistakes"] = view.mistakes;
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace leat::viz
