#include "meshard/stablehlo/shardy_text.h"

#include <algorithm>

#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

std::string axes_text(const Mesh& mesh) {
  std::string out = "[";
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    append(out, cat(i == 0 ? "\"" : ", \"", mesh.axes()[i].name, "\"=", mesh.axes()[i].size));
  return out + "]";
}

Mesh read_shardy_mesh(TextScanner& scanner) {
  scanner.expect("<");
  scanner.expect("[");
  std::vector<MeshAxis> axes;
  scanner.list("]", [&] {
    std::string name = scanner.quoted();
    scanner.expect("=");
    axes.push_back({std::move(name), scanner.integer()});
  });
  if (scanner.accept(">")) return Mesh(std::move(axes), SourceLocation{});
  scanner.expect(",");
  scanner.expect("device_ids");
  scanner.expect("=");
  RankMap map = RankMap::read(scanner);
  scanner.expect(">");
  return Mesh(std::move(axes), std::move(map), SourceLocation{});
}

AxisList read_axes(TextScanner& scanner, bool* is_open) {
  AxisList axes;
  scanner.expect("{");
  scanner.list("}", [&] {
    if (is_open != nullptr && *is_open) scanner.fail("`?` must be the last entry");
    if (is_open != nullptr && scanner.accept("?"))
      *is_open = true;
    else
      axes.push_back(AxisRef::read(scanner));
  });
  return axes;
}

void read_mesh(TextScanner& scanner, const Mesh& mesh) {
  if (scanner.accept("@")) {
    scanner.identifier();
    return;
  }
  scanner.expect("mesh");
  Mesh written = read_shardy_mesh(scanner);
  if (!std::equal(written.axes().begin(), written.axes().end(), mesh.axes().begin(),
                  mesh.axes().end()))
    scanner.fail(cat("the mesh in the text, ", written, ", does not have the axes of ", mesh));
}

Sharding read(TextScanner& scanner, const Mesh& mesh) {
  scanner.accept("#sdy.sharding");
  scanner.expect("<");
  read_mesh(scanner, mesh);
  scanner.expect(",");
  scanner.expect("[");
  std::vector<DimensionSpec> dimensions;
  scanner.list("]", [&] {
    bool is_open = false;
    AxisList axes = read_axes(scanner, &is_open);
    dimensions.emplace_back(std::move(axes), is_open);
  });
  AxisList replicated, unreduced;
  UnreducedKind kind = UnreducedKind::kSum;
  while (scanner.accept(",")) {
    bool is_replicated = scanner.accept("replicated");
    if (!is_replicated) scanner.expect("unreduced");
    scanner.expect("=");
    if (!is_replicated) kind = Sharding::read_unreduced_kind(scanner);
    (is_replicated ? replicated : unreduced) = read_axes(scanner, nullptr);
  }
  scanner.expect(">");
  return Sharding(mesh, PartitionSpec(std::move(dimensions)), SourceLocation{})
      .with_replicated(replicated, {})
      .with_unreduced(unreduced, kind, {});
}

}  // namespace

std::string shardy_text(const Mesh& mesh) {
  return cat('<', axes_text(mesh.rows() > 1 ? mesh.base() : mesh), '>');
}

std::string shardy_text(const Mesh& mesh, const Mesh& numbering) {
  if (mesh.rows() > 1) return shardy_text(mesh.base(), numbering);
  if (mesh.rank_map() == numbering.rank_map()) return shardy_text(mesh);
  if (!mesh.same_devices(numbering))
    throw_invalid({}, "[mesh] two meshes of one program have different devices: ", mesh, " and ",
                  numbering);
  std::string ids;
  for (std::int64_t device : mesh.device_ids())
    append(ids, cat(ids.empty() ? "" : ", ", *numbering.position(device)));
  return cat('<', axes_text(mesh), ", device_ids=[", ids, "]>");
}

Result<Mesh> parse_shardy_mesh(std::string_view text) {
  return parse_whole("sdy.mesh", text,
                     [](TextScanner& scanner) { return read_shardy_mesh(scanner); });
}

std::string shardy_text(const Sharding& sharding, std::string_view mesh_name) {
  std::string out = cat("#sdy.sharding<@", mesh_name, ", [");
  for (std::size_t d = 0; d < sharding.rank(); ++d) {
    append(out, d == 0 ? "{" : ", {");
    append(out, join(sharding.axes(d), ", "));
    if (sharding.is_open(d)) append(out, sharding.axes(d).empty() ? "?" : ", ?");
    append(out, "}");
  }
  append(out, "]");
  if (!sharding.replicated_axes().empty())
    append(out, cat(", replicated=", to_string(sharding.replicated_axes())));
  if (!sharding.unreduced_axes().empty())
    append(out, cat(", unreduced=", sharding.unreduced_text()));
  return out + ">";
}

Result<Sharding> parse_shardy_sharding(std::string_view text, const Mesh& mesh) {
  return parse_whole("sdy.sharding", text,
                     [&](TextScanner& scanner) { return read(scanner, mesh); });
}

}  // namespace meshard
