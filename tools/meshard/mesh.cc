// meshard mesh: prints a mesh, applies operations to it, and prints groups.
#include "meshard/mesh/mesh.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "meshard/layout/picture.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/picture.h"
#include "meshard/sharding/replica_groups.h"
#include "meshard/stablehlo/shardy_text.h"
#include "tools/meshard/mesh_steps.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"
#include "tools/meshard/write_file.h"

namespace meshard::tool {
namespace {

constexpr std::int64_t kMostGroups = 32;

struct MeshOptions {
  std::string mesh, devices, svg;
  std::vector<std::string> steps, groups;
  std::vector<std::int64_t> ranks;
  bool no_picture = false, shardy = false;
};

AxisList axes_named(const std::vector<std::string>& names) {
  return AxisList(names.begin(), names.end());
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string described(const Mesh& mesh) {
  std::string out = cat(mesh, '\n');
  std::size_t widest = 1;
  for (const MeshAxis& axis : mesh.axes()) widest = std::max(widest, axis.name.size());
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    append(out,
           cat("  axis ", padded(mesh.axes()[i].name, widest), "  ", mesh.axis_layout(i), '\n'));
  append(out, cat("  ", mesh.size(), " devices in ", mesh.rows() == 1 ? "1 row" : "each of "));
  if (mesh.rows() > 1) append(out, cat(mesh.rows(), " rows"));
  if (!mesh.is_root()) append(out, cat(", root ", mesh.root()));
  out += '\n';
  if (auto flat = mesh.flattened(); !flat.empty()) {
    append(out, "  names at the root:");
    for (const auto& [name, layout] : flat) append(out, cat(' ', name, " = ", layout));
    out += '\n';
  }
  return out;
}

// The groups in the compiler's compact form, if the axes are sub-axes of the base. Numbers are
// positions in the base.
std::string compact_groups(const Mesh& mesh, const AxisList& axes) {
  if (Result<AxisList> in_base = mesh.axes_in_base(axes); !in_base) return "";
  return cat("  compact ", replica_groups(mesh, axes).to_string(),
             mesh.base().rank_map().is_identity() ? "" : cat(", positions in ", mesh.base()), '\n');
}

std::string all_groups(const Mesh& mesh, const std::vector<std::string>& names) {
  AxisList axes = axes_named(names);
  DeviceGroups groups = mesh.groups(axes);
  std::string out = cat("groups along ", join(names, ","), ": ", groups.count(), " of ",
                        groups.group_size(), " devices\n", compact_groups(mesh, axes));
  for (std::int64_t g = 0; g < std::min(groups.count(), kMostGroups); ++g)
    append(out, cat("  ", g, ": ", groups[g].ranks(), '\n'));
  if (groups.count() > kMostGroups)
    append(out, cat("  and ", groups.count() - kMostGroups, " more\n"));
  return out;
}

std::string group_of(const Mesh& mesh, const std::vector<std::string>& names, std::int64_t device) {
  AxisList axes = axes_named(names);
  return cat("  along ", join(names, ","), ": group ", mesh.group(axes, device)->ranks(),
             ", local rank ", *mesh.local_rank(axes, device), ", sorted ",
             *mesh.local_rank(axes, device, RankOrder::kSorted), '\n');
}

std::string seen_from(const Mesh& mesh, std::int64_t device,
                      const std::vector<std::string>& names) {
  if (!mesh.position(device)) return cat("device ", device, " is not in the mesh\n");
  IntVector coordinate = *mesh.coordinate(device);
  std::string out = cat("device ", device, ": position ", *mesh.position(device), ", row ",
                        *mesh.row(device), " of ", mesh.rows(), ", coordinate (");
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    append(out, cat(i == 0 ? "" : ", ", mesh.axes()[i].name, '=', coordinate[i]));
  append(out, ")\n");
  for (const MeshAxis& axis : mesh.axes()) append(out, group_of(mesh, {axis.name}, device));
  if (names.size() > 1) append(out, group_of(mesh, names, device));
  return out;
}

int run(const MeshOptions& options) {
  Mesh mesh = read_mesh(options.mesh, options.devices);
  if (options.svg == "-") {  // instead of the text
    for (const std::string& step : options.steps) mesh = apply_step(mesh, step);
    write_file(options.svg, picture_svg(mesh, axes_named(options.groups)));
    return 0;
  }
  print_text(described(mesh));
  for (const std::string& step : options.steps) {
    mesh = apply_step(mesh, step);
    print_text(cat('\n', step, '\n', described(mesh)));
  }
  std::int64_t cells = mesh.device_ids().size();
  if (!options.no_picture)
    print_text(cells <= kMostCells ? cat('\n', picture(mesh))
                                   : cat('\n', cells, " devices are too many for a picture\n"));
  if (!options.groups.empty()) print_text(cat('\n', all_groups(mesh, options.groups)));
  for (std::int64_t device : options.ranks)
    print_text(cat('\n', seen_from(mesh, device, options.groups)));
  if (options.shardy) print_text(cat("\nsdy.mesh @mesh = ", shardy_text(mesh, mesh.base()), '\n'));
  if (!options.svg.empty()) write_file(options.svg, picture_svg(mesh, axes_named(options.groups)));
  return 0;
}

}  // namespace

void add_mesh(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<MeshOptions>();
  CLI::App* command = app.add_subcommand(
      "mesh", "Shows a mesh of devices, and the meshes that operations derive from it");
  command->footer(std::string(kMeshSteps));
  command->add_option("mesh", options->mesh, "mesh<data=2, model=4>, or data=2,model=4")
      ->required();
  command->add_option("steps", options->steps, "operations, applied in order");
  command->add_option("--devices", options->devices, "device ids: 4,5,6,7 or 0,2,...,14");
  command
      ->add_option("--groups", options->groups,
                   "list the groups along these axes, and their short form in HLO")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--rank", options->ranks, "show the coordinates and groups of these devices")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--shardy", options->shardy, "print the mesh in Shardy's syntax");
  command->add_flag("--no-picture", options->no_picture, "omit the picture");
  command->add_option("--svg", options->svg,
                      "write the picture to this file or -; --groups colors each group alike");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace meshard::tool
