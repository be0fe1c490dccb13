#include "tools/viz/siblings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace leat::viz {
namespace {

constexpr size_t fewest = 3;

// What a box is, without its number.
struct Kind {
  int device;
  std::string path;
  ViewBox::Kind kind;
  std::string op;
  std::map<std::string, int> ops;
  DType dtype;
  std::string shape;
  std::vector<std::string> slots;
  auto operator<=>(const Kind&) const = default;
};

Kind kind_of(const ViewBox& box) {
  // What a node gives may depend on its inputs. Kept, fed and constant values do not.
  const bool has_shape = box.kind == ViewBox::Kind::variable || box.kind == ViewBox::Kind::input ||
                         box.kind == ViewBox::Kind::constant;
  return {box.device,
          without_number(box.path),
          box.kind,
          box.op,
          box.ops,
          box.dtype,
          has_shape ? box.shape.to_string() : "",
          box.slots};
}

// Arrows of which only the ends are known: kind of arrow, whether it goes out, kind of the other
// end.
using Neighbour = std::tuple<ViewArrow::Kind, bool, int>;

// For every box the number of its kind; equal for boxes that may be one.
std::vector<int> classes_of(const ViewModel& view) {
  std::map<Kind, int> kinds;
  std::vector<int> kind(view.boxes.size());
  for (size_t i = 0; i < view.boxes.size(); ++i)
    kind[i] =
        kinds.try_emplace(kind_of(view.boxes[i]), static_cast<int>(kinds.size())).first->second;
  std::vector<std::set<Neighbour>> neighbours(view.boxes.size());
  for (const ViewArrow& arrow : view.arrows) {
    neighbours[arrow.from].emplace(arrow.kind, true, kind[arrow.to]);
    neighbours[arrow.to].emplace(arrow.kind, false, kind[arrow.from]);
  }
  std::map<std::pair<int, std::set<Neighbour>>, int> classes;
  std::vector<int> out(view.boxes.size());
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    out[i] = classes.try_emplace({kind[i], neighbours[i]}, static_cast<int>(classes.size()))
                 .first->second;
  }
  return out;
}

void join(const ViewBox& from, ViewBox& into) {
  if (into.siblings++ == 1) {
    into.path = without_number(into.path);
    into.label = into.path.substr(into.path.rfind('/') + 1);
    into.op.clear();
  }
  into.nodes += from.nodes;
  for (const auto& [op, count] : from.ops) into.ops[op] += count;
  into.variables += from.variables;
  into.variable_bytes += from.variable_bytes;
}

}  // namespace

std::string without_number(const std::string& name) {
  const size_t last = name.find_last_not_of("0123456789");
  const bool has_number = last != name.npos && last + 1 < name.size() && last > 0 &&
                          name[last] == '_' && name[last - 1] != '/';
  return has_number ? name.substr(0, last) : name;
}

void fold_siblings(ViewModel& view, const std::vector<std::string>& apart) {
  const std::vector<int> classes = classes_of(view);
  std::map<int, std::vector<int>> members;
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    const ViewBox& box = view.boxes[i];
    const std::string path = without_number(box.path);
    const bool may_fold = box.kind != ViewBox::Kind::port && box.kind != ViewBox::Kind::device &&
                          std::find(apart.begin(), apart.end(), path) == apart.end();
    if (may_fold) members[classes[i]].push_back(static_cast<int>(i));
  }

  std::vector<int> place(view.boxes.size(), -1);  // of each box, among those that stay
  std::vector<int> stands_for(view.boxes.size());
  for (size_t i = 0; i < view.boxes.size(); ++i) stands_for[i] = static_cast<int>(i);
  for (const auto& [number, boxes] : members) {
    if (boxes.size() < fewest) continue;
    for (size_t i = 1; i < boxes.size(); ++i) {
      stands_for[boxes[i]] = boxes[0];
      join(view.boxes[boxes[i]], view.boxes[boxes[0]]);
    }
  }
  std::vector<ViewBox> boxes;
  for (size_t i = 0; i < view.boxes.size(); ++i) {
    if (stands_for[i] != static_cast<int>(i)) continue;
    place[i] = static_cast<int>(boxes.size());
    boxes.push_back(std::move(view.boxes[i]));
  }
  view.boxes = std::move(boxes);

  std::map<std::tuple<ViewArrow::Kind, int, int>, size_t> known;
  std::vector<ViewArrow> arrows;
  for (ViewArrow& arrow : view.arrows) {
    arrow.from = place[stands_for[arrow.from]];
    arrow.to = place[stands_for[arrow.to]];
    if (arrow.from == arrow.to) continue;
    const auto [found, is_new] =
        known.try_emplace({arrow.kind, arrow.from, arrow.to}, arrows.size());
    if (is_new) {
      arrows.push_back(std::move(arrow));
      continue;
    }
    ViewArrow& same = arrows[found->second];
    same.count += arrow.count;
    same.transfers.insert(same.transfers.end(), arrow.transfers.begin(), arrow.transfers.end());
    std::stable_sort(same.transfers.begin(), same.transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.bytes() > b.bytes(); });
  }
  view.arrows = std::move(arrows);
}

}  // namespace leat::viz
