// bin/leat-viz, run as `leat viz`: a GraphDef as a picture.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "core/error.h"
#include "tools/standard_output.h"
#include "tools/viz/render.h"
#include "tools/viz/view_model.h"

namespace {

using leat::Code;
using leat::concat;
using leat::fail;
namespace viz = leat::viz;

struct Flags {
  std::string input, output, format, title;
  viz::ViewOptions view;
  bool hides_control = false;
  size_t most_boxes = 600;
};

std::string read_file(const std::string& path) {
  // As TensorFlow saves a model: a directory.
  if (const std::filesystem::path model = std::filesystem::path(path) / "saved_model.pb";
      std::filesystem::exists(model))
    return read_file(model.string());
  leat::check(!std::filesystem::is_directory(path), path, " is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Code::not_found, "cannot read ", path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What makes fewer boxes of this graph, with how many.
std::string advice(const std::vector<leat::WrittenNode>& nodes, const viz::ViewModel& view,
                   const Flags& flags) {
  const auto boxes_with = [&](const viz::ViewOptions& options) {
    return viz::visible_boxes(viz::make_view(nodes, options));
  };
  std::string out;
  for (int depth = view.depth - 1; depth >= 1; --depth) {
    viz::ViewOptions folded = flags.view;
    folded.depth = depth;
    if (const size_t boxes = boxes_with(folded); boxes <= flags.most_boxes) {
      out = fmt::format("--depth {} shows {}, ", depth, boxes);
      break;
    }
  }
  if (!flags.view.expand.empty()) {
    viz::ViewOptions closed = flags.view;
    closed.expand.clear();
    if (const size_t boxes = boxes_with(closed); boxes <= flags.most_boxes)
      out += fmt::format("without --expand there are {}, ", boxes);
  }
  if (view.devices.size() > 1 && flags.view.only_device.empty()) {
    viz::ViewOptions alone = flags.view;
    size_t fewest = flags.most_boxes + 1;
    std::string device;
    for (const viz::ViewDevice& each : view.devices) {
      alone.only_device = each.name;
      if (each.name.empty()) continue;
      if (const size_t boxes = boxes_with(alone); boxes < fewest)
        fewest = boxes, device = each.name;
    }
    if (!device.empty()) out += fmt::format("--device {} shows {}, ", device, fewest);
  }
  return out + fmt::format("--max-nodes {} draws it anyway, ", viz::visible_boxes(view));
}

void check_size(const std::vector<leat::WrittenNode>& nodes, const viz::ViewModel& view,
                const Flags& flags) {
  const size_t boxes = viz::visible_boxes(view);
  if (boxes <= flags.most_boxes) return;
  fail(Code::invalid_argument, boxes, " boxes are too many for a readable picture (--max-nodes ",
       flags.most_boxes, "): ", advice(nodes, view, flags), "-o FILE.json has all of it");
}

int run(const Flags& flags) {
  std::string format = flags.format;
  if (format.empty()) {
    const std::string extension = std::filesystem::path(flags.output).extension().string();
    format = extension.empty() ? "dot" : extension.substr(1);
  }
  const bool is_drawn = format == "svg" || format == "png" || format == "pdf";
  leat::check(is_drawn || format == "dot" || format == "json", "\"", format,
              "\" is not a format: use svg, png, pdf, dot or json");

  const auto nodes = leat::read_graph_def(read_file(flags.input), flags.input);
  const viz::ViewModel view = viz::make_view(nodes, flags.view);
  for (const std::string& mistake : view.mistakes)
    std::cerr << concat("leat viz: ", flags.input, ": ", mistake, "\n");
  if (format != "json") check_size(nodes, view, flags);
  const std::string title =
      flags.title.empty() ? std::filesystem::path(flags.input).filename().string() : flags.title;
  std::string text = format == "json" ? viz::to_json(view) : viz::to_dot(view, title);
  if (is_drawn) text = viz::draw(text, format);

  if (flags.output.empty() || flags.output == "-") {
    std::cout << text;
    leat::finish_standard_output();
    return 0;
  }
  std::ofstream file(flags.output, std::ios::binary);
  file << text << std::flush;
  if (!file) fail(Code::permission_denied, "cannot write ", flags.output);
  std::cerr << fmt::format(
      "leat viz: {} nodes on {} devices as {} boxes (--depth {} of {}) in {}\n", view.nodes,
      view.devices.size(), viz::visible_boxes(view), view.depth, view.deepest, flags.output);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app(
      "Draws a graph: devices as boxes, the tensors that cross between them as dashed cables with "
      "dtype, shape and bytes.",
      "leat viz");
  app.add_option("graph", flags.input,
                 "A GraphDef, binary (.pb) or text (.pbtxt); also a .meta, a SavedModel, or an "
                 "event file that holds a graph")
      ->required();
  app.add_option("-o,--output", flags.output,
                 "FILE.svg, .png, .pdf, .dot or .json (default: dot on standard output)");
  app.add_option("--format", flags.format,
                 "If the file name does not end in it: svg, png, pdf, dot, json");
  app.add_option("--depth", flags.view.depth,
                 fmt::format("Parts of a name that stay separate: 1 folds dense/MatMul into dense "
                             "(default: the deepest that leaves {} boxes)",
                             viz::readable_boxes))
      ->check(CLI::PositiveNumber);
  app.add_option(
      "--expand", flags.view.expand,
      "A scope to show one level deeper, or a box ×N to show one by one; may be repeated");
  app.add_option("--device", flags.view.only_device,
                 "Show only this device or task; the others are one box each");
  app.add_flag("--no-control", flags.hides_control, "Leave out control edges");
  app.add_option("--max-nodes", flags.most_boxes, "Refuse to draw more boxes than this")
      ->capture_default_str();
  app.add_option("--title", flags.title, "Default: the file's name");
  app.footer(
      "\nExit status: 0, 2 for a mistake in the command line or the file, 1 for anything else.");
  try {
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {  // also --help
      if (app.exit(error) != 0) return 2;
      leat::finish_standard_output();
      return 0;
    }
    flags.view.shows_control_edges = !flags.hides_control;
    return run(flags);
  } catch (const leat::Error& error) {
    std::cerr << "leat viz: " << error.message() << "\n";
    return error.code() == Code::invalid_argument || error.code() == Code::not_found ? 2 : 1;
  } catch (const std::exception& error) {
    std::cerr << "leat viz: " << error.what() << "\n";
    return 1;
  }
}
