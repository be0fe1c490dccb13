#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/markup.h"
#include "tools/viz/render.h"

namespace leat::viz {
namespace {

// Okabe and Ito's palette, which people with any kind of colour vision tell apart; the fill is the
// same colour at 12 %.
struct Colour {
  const char* line;
  const char* fill;
};
constexpr Colour palette[] = {
    {"#0072B2", "#E0EEF6"}, {"#D55E00", "#FAEBE0"}, {"#009E73", "#E0F3EE"}, {"#CC79A7", "#F9EFF4"},
    {"#B8860B", "#F6F0E1"}, {"#56B4E9", "#EAF6FC"}, {"#666666", "#ECECEC"}};
constexpr const char* font = "DejaVu Sans,Verdana,sans-serif";
constexpr const char* ink = "#222222";
constexpr const char* faint = "#8A8A8A";
constexpr size_t longest_label = 30;

const Colour& colour_of(int device) {
  return palette[static_cast<size_t>(device) % std::size(palette)];
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Both ends of a long name say more than its middle.
std::string shortened(const std::string& name) {
  if (name.size() <= longest_label) return name;
  const size_t half = longest_label / 2 - 1;
  return name.substr(0, half) + "…" + name.substr(name.size() - half);
}

class DotWriter {
 public:
  explicit DotWriter(const ViewModel& view) : view_(view) {}

  std::string write(const std::string& title) {
    out_ = fmt::format(R"(digraph leat {{
  graph [fontname="{0}", fontsize=11, fontcolor="{1}", rankdir=TB, newrank=true, nodesep=0.22, ranksep=0.42, pad=0.2, bgcolor=white,
         labelloc=b, labeljust=l, tooltip=" "]
  node [fontname="{0}", fontsize=10, fontcolor="{1}", shape=box, style="rounded,filled", fillcolor=white, margin="0.09,0.045",
        height=0.3]
  edge [fontname="{0}", fontsize=8.5, fontcolor="{1}", color="#5A5A5A", arrowsize=0.6]
)",
                       font, ink);
    for (size_t device = 0; device < view_.devices.size(); ++device)
      write_device(static_cast<int>(device));
    for (const ViewArrow& arrow : view_.arrows) write_arrow(arrow);
    write_legend(title);
    return out_ + "}\n";
  }

 private:
  void write_device(int device) {
    const ViewDevice& on = view_.devices[device];
    const Colour& colour = colour_of(device);
    out_ += fmt::format("  subgraph cluster_device_{} {{\n", device);
    out_ += fmt::format(
        "    graph [label=<<b>{}</b>>, labelloc=t, fontsize=12, fontcolor=\"{}\", "
        "style=\"rounded,filled\", color=\"{}\", "
        "fillcolor=\"{}\", penwidth={}, margin=12, tooltip={}]\n",
        escaped_markup(on.label), colour.line, colour.line, colour.fill, on.is_gpu ? 3 : 1.4,
        quoted(on.label));
    write_scope(device, "", 0);
    out_ += "  }\n";
  }

  // Boxes below a scope; a scope with several boxes is a frame around them.
  void write_scope(int device, const std::string& scope, int depth) {
    std::map<std::string, std::vector<int>> below;  // next part of the path → boxes
    for (size_t i = 0; i < view_.boxes.size(); ++i) {
      const ViewBox& box = view_.boxes[i];
      if (box.device != device) continue;
      if (box.kind == ViewBox::Kind::port) {
        if (scope.empty()) write_port(static_cast<int>(i));
        continue;
      }
      if (!scope.empty() && !box.path.starts_with(scope + "/") && box.path != scope) continue;
      const size_t start = scope.empty() ? 0 : std::min(scope.size() + 1, box.path.size());
      below[box.path.substr(start, box.path.find('/', start) - start)].push_back(
          static_cast<int>(i));
    }
    for (const auto& [part, boxes] : below) {
      const std::string path = scope.empty() ? part : scope + "/" + part;
      const bool is_frame = boxes.size() > 1 && !part.empty();
      if (!is_frame) {
        for (const int box : boxes) write_box(box, scope);
        continue;
      }
      const std::string indent(static_cast<size_t>(2 * depth + 4), ' ');
      out_ += fmt::format("{}subgraph cluster_scope_{} {{\n", indent, ++frames_);
      out_ += fmt::format(
          "{}  graph [label=<<i>{}</i>>, fontsize=9.5, fontcolor=\"{}\", style=\"rounded,filled\", "
          "fillcolor=\"#FFFFFF80\", "
          "color=\"{}\", penwidth=0.6, margin=7, tooltip={}]\n",
          indent, escaped_markup(shortened(part)), colour_of(device).line, colour_of(device).line,
          quoted(path));
      write_scope(device, path, depth + 1);
      out_ += indent + "}\n";
    }
  }

  void write_port(int index) {
    const ViewBox& box = view_.boxes[index];
    out_ += fmt::format(
        "    b{} [label=\"\", shape=circle, style=filled, width=0.11, height=0.11, fixedsize=true, "
        "color=\"{}\", "
        "fillcolor=\"{}\", tooltip=\"arrives once, used by several\"]\n",
        index, colour_of(box.device).line, colour_of(box.device).line);
  }

  void write_box(int index, const std::string& scope) {
    const ViewBox& box = view_.boxes[index];
    const std::string in_scope =
        box.path.size() > scope.size() && !scope.empty() ? box.path.substr(scope.size() + 1) : "";
    std::string title = shortened(in_scope.empty() ? box.label : in_scope);
    if (box.siblings > 1) title += fmt::format(" ×{}", box.siblings);
    if (box.kind == ViewBox::Kind::device) title = "not shown";
    std::string rows = fmt::format("<tr><td><b>{}</b></td></tr>", escaped_markup(title));
    const auto add_row = [&](const std::string& text) {
      if (!text.empty())
        rows += fmt::format(R"(<tr><td><font point-size="8" color="#555555">{}</font></td></tr>)",
                            escaped_markup(text));
    };
    add_row(box_note(box));
    if (!box.slots.empty()) add_row(fmt::format("with {}", fmt::join(box.slots, ", ")));
    if (box.variables > 0 && box.kind != ViewBox::Kind::variable) {
      add_row(fmt::format("{} variable{} · {}", box.variables, box.variables == 1 ? "" : "s",
                          format_bytes(box.variable_bytes)));
    }
    const std::string label =
        R"(<table border="0" cellborder="0" cellspacing="0" cellpadding="1">)" + rows + "</table>";
    std::string style;
    switch (box.kind) {
      case ViewBox::Kind::variable:
        style = "shape=cylinder, style=filled, margin=\"0.1,0.06\"";
        break;
      case ViewBox::Kind::input:
        style = "shape=invhouse, style=filled, margin=\"0.02,0.01\"";
        break;
      case ViewBox::Kind::constant:
        style = "shape=ellipse, style=filled, margin=\"0.01,0.01\"";
        break;
      case ViewBox::Kind::scope:
        style = "style=\"rounded,filled\", penwidth=1.6";
        break;
      case ViewBox::Kind::device:
        style = "style=\"rounded,filled,dashed\"";
        break;
      default:
        style = "penwidth=0.8";
        break;
    }
    if (box.siblings > 1 && box.kind != ViewBox::Kind::variable) style += ", peripheries=2";
    std::string tooltip = box.path;
    for (const auto& [op, count] : box.ops) tooltip += fmt::format("\n{} {}", count, op);
    out_ += fmt::format("    b{} [label=<{}>, {}, color=\"{}\", tooltip={}]\n", index, label, style,
                        colour_of(box.device).line, quoted(tooltip));
  }

  void write_arrow(const ViewArrow& arrow) {
    std::string attributes;
    if (arrow.kind == ViewArrow::Kind::control) {
      attributes = fmt::format(
          "style=dotted, color=\"{}\", penwidth=0.8, arrowsize=0.45, tooltip=\"control: runs "
          "after\"",
          faint);
    } else if (arrow.kind == ViewArrow::Kind::cable) {
      const bool is_signal =
          std::all_of(arrow.transfers.begin(), arrow.transfers.end(),
                      [](const Transfer& transfer) { return transfer.dtype == DType::invalid; });
      int64_t bytes = 0;
      std::string tooltip;
      for (const Transfer& transfer : arrow.transfers) {
        bytes += std::max(int64_t{0}, transfer.bytes());
        tooltip += (tooltip.empty() ? "" : "\n") + transfer.tensor + " " + cable_label({transfer});
        if (transfer.edge >= 0) tooltip += fmt::format(" (edge {})", transfer.edge);
      }
      // From 1 pt below a kilobyte to 4 pt above a gigabyte.
      const double width =
          is_signal ? 0.9
                    : std::clamp(1.0 + 0.5 * (std::log2(std::max(bytes, int64_t{1})) - 10) / 3.3,
                                 1.0, 4.0);
      const char* colour = is_signal ? faint : colour_of(view_.boxes[arrow.from].device).line;
      attributes =
          fmt::format("style=dashed, color=\"{}\", penwidth={:.1f}, arrowsize={}, tooltip={}",
                      colour, width, is_signal ? 0.6 : 0.8, quoted(tooltip));
      // A lone signal has nothing to say but that it is one: its colour does.
      if (!is_signal || arrow.count > 1) {
        attributes += fmt::format(", fontcolor=\"{}\", label=<{}>, labeltooltip={}", colour,
                                  cable_text(arrow, is_signal), quoted(tooltip));
      }
    } else if (arrow.count > 1) {
      attributes = fmt::format("tooltip=\"{} values\"", arrow.count);
    } else {
      attributes = "tooltip=\"1 value\"";
    }
    out_ += fmt::format("  b{} -> b{} [{}]\n", arrow.from, arrow.to, attributes);
  }

  // Up to three values are named one by one, more are counted.
  static std::string cable_text(const ViewArrow& arrow, bool is_signal) {
    constexpr size_t named = 3;
    std::string out;
    if (is_signal || arrow.transfers.size() > named) {
      out = "<tr><td><b>" + escaped_markup(cable_label(arrow.transfers)) + "</b></td></tr>";
    } else {
      for (const Transfer& transfer : arrow.transfers) {
        out += "<tr><td>" + escaped_markup(cable_label({transfer})) + "</td></tr>";
      }
    }
    return R"(<table border="0" cellborder="0" cellpadding="1" cellspacing="0" bgcolor="#FFFFFFD0">)" +
           out + "</table>";
  }

  void write_legend(const std::string& title) {
    std::string rows;
    for (size_t i = 0; i < view_.devices.size(); ++i) {
      const ViewDevice& device = view_.devices[i];
      rows += fmt::format(
          R"(<tr><td align="left"><font color="{}">■</font> {}</td><td align="right">{} nodes</td>)"
          R"(<td align="right">in {}</td><td align="right">out {}</td></tr>)",
          colour_of(static_cast<int>(i)).line, escaped_markup(device.label), device.nodes,
          format_bytes(device.bytes_in), format_bytes(device.bytes_out));
    }
    const std::string folded =
        view_.depth == view_.deepest
            ? "nothing is folded"
            : fmt::format("name scopes folded below {} part{} (of {})", view_.depth,
                          view_.depth == 1 ? "" : "s", view_.deepest);
    constexpr const char* table =
        R"(<table border="0" cellborder="0" cellspacing="0" cellpadding="2">)";
    constexpr const char* signs[] = {
        "→ a value   ╌╌▶ a value that a Send and a Recv carry to another device at every step; the "
        "thicker, the more bytes",
        "┄┄&gt; runs after (dashed: on another device)   ● arrives once, used by several boxes   "
        "cylinder: variable   pointed "
        "box: fed   thick frame: several nodes",
        "double frame, ×N: N boxes whose names differ in their numbers only, and which do the same",
    };
    std::string keys;
    for (const char* sign : signs)
      keys +=
          fmt::format(R"(<tr><td align="left"><font color="#555555">{}</font></td></tr>)", sign);
    out_ += fmt::format(
        R"(  label=<{0}<tr><td align="left"><b>{1}</b>: {2} nodes, {3}</td></tr><tr><td align="left">{0}{4}</table></td></tr>{5}</table>>)"
        "\n",
        table, escaped_markup(title), view_.nodes, folded, rows, keys);
  }

  const ViewModel& view_;
  std::string out_;
  int frames_ = 0;
};

}  // namespace

std::string to_dot(const ViewModel& view, const std::string& title) {
  return DotWriter(view).write(title);
}

}  // namespace leat::viz
