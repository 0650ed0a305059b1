#include "meshard/mesh/shardy_text.h"

#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

std::string axes_text(const Mesh& mesh) {
  std::string out = "[";
  for (std::size_t i = 0; i < mesh.rank(); ++i)
    append(out, cat(i == 0 ? "\"" : ", \"", mesh.axes()[i].name, "\"=", mesh.axes()[i].size));
  return out + "]";
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

Result<Mesh> parse_shardy_mesh(std::string_view text) {
  return parse_whole("sdy.mesh", text,
                     [](TextScanner& scanner) { return read_shardy_mesh(scanner); });
}

}  // namespace meshard
