// meshard torus: builds a mesh on TPU hardware, and prints the hops between neighbors.
#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>

#include "meshard/layout/picture.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/picture.h"
#include "meshard/topology/hybrid_mesh.h"
#include "meshard/topology/ring_mesh.h"
#include "meshard/topology/tpu_topology.h"
#include "tools/meshard/mesh_steps.h"
#include "tools/meshard/subcommands.h"

namespace meshard::tool {
namespace {

struct TorusOptions {
  std::string tpu, shape, outer;
  bool assigned = false, no_picture = false;
};

/// Parses `8x8`.
IntVector sizes_in(std::string_view text) {
  return parse_whole("shape", text,
                     [](TextScanner& scanner) {
                       IntVector sizes;
                       do sizes.push_back(scanner.integer());
                       while (scanner.accept("x"));
                       return sizes;
                     })
      .value();
}

struct NamedShape {
  IntVector sizes;
  MaybeNames names;
};

/// Parses `64`, `8x8`, or `data=8,model=8`.
NamedShape shape_in(const std::string& text) {
  if (!text.empty() && std::isdigit(static_cast<unsigned char>(text[0])))
    return {sizes_in(text), std::nullopt};
  NamedShape shape{{}, std::vector<std::string>()};
  Mesh mesh = read_mesh(text, "");
  for (const MeshAxis& axis : mesh.axes()) {
    shape.sizes.push_back(axis.size);
    shape.names->push_back(axis.name);
  }
  return shape;
}

std::string hardware(const Topology& topology) {
  std::size_t slices = granules_of(topology, Granule::kSlice).size();
  std::string out = cat(topology.size(), " devices, ", topology.kind(), ", ");
  if (slices > 1) append(out, cat(slices, " slices of "));
  append(out, cat(join(topology.extent(), " x "), " chips"));
  if (!topology.wrap()) return cat(out, "; where the grid closes is not known\n");
  std::string closed;
  for (std::size_t k = 0; k < topology.wrap()->size(); ++k)
    if ((*topology.wrap())[k]) append(closed, cat(closed.empty() ? "" : ", ", "xyz"[k]));
  return cat(out, closed.empty() ? ", open" : cat(", closed in ", closed), '\n');
}

/// The hops of the mesh that the references' assignment gives.
std::string assigned_hops(const Topology& topology, const NamedShape& shape,
                          const IntVector& outer) {
  try {
    IntVector inner = shape.sizes;
    for (std::size_t i = 0; i < outer.size(); ++i) inner[i] /= outer[i];
    Mesh mesh = hybrid_mesh(topology, inner, outer, shape.names);
    return mesh_hops(mesh, topology).to_string(mesh);
  } catch (const Error& error) {
    return cat("refused: ", error.message());
  }
}

int run_torus(const TorusOptions& options) {
  Topology topology = tpu_topology(options.tpu).value();
  NamedShape shape = shape_in(options.shape);
  IntVector outer = options.outer.empty() ? IntVector() : sizes_in(options.outer);
  RingMesh ring = ring_mesh(topology, shape.sizes, shape.names, outer);
  std::string out =
      cat(hardware(topology), "hops in rings      ", ring.hops->to_string(ring.mesh), '\n');
  if (options.assigned)
    append(out, cat("hops as assigned   ", assigned_hops(topology, shape, outer), '\n'));
  if (!options.no_picture)
    append(out, ring.mesh.size() <= kMostCells
                    ? cat('\n', picture(ring.mesh))
                    : cat('\n', ring.mesh.size(), " devices are too many for a picture\n"));
  std::fputs(out.c_str(), stdout);
  return 0;
}

}  // namespace

void add_torus(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<TorusOptions>();
  CLI::App* command = app.add_subcommand(
      "torus", "Shows a mesh on the hardware of a TPU, and the distance between its neighbors");
  command->footer(
      "Hops are links between chips from each device to the next along an axis, including from "
      "the\n"
      "last to the first. Neither a TPU nor a plugin is needed.");
  command->add_option("tpu", options->tpu, "v5e:8x8, v5p:4x4x4, v5e:16x16*2, v4:4x4x4/megacore")
      ->required();
  command->add_option("--shape", options->shape, "64, 8x8, or data=8,model=8")->required();
  command->add_option("--outer", options->outer, "number of slices along each axis: 2x1");
  command->add_flag("--assigned", options->assigned,
                    "also show the hops of the order that JAX and torch_xla choose");
  command->add_flag("--no-picture", options->no_picture, "omit the picture");
  command->callback([options, &exit_code] { exit_code = run_torus(*options); });
}

}  // namespace meshard::tool
