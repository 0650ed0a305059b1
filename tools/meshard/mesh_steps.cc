#include "tools/meshard/mesh_steps.h"

#include "meshard/layout/text_scanner.h"

namespace meshard::tool {
namespace {

std::vector<std::string> read_names(TextScanner& scanner) {
  std::vector<std::string> names;
  do {
    names.push_back(scanner.identifier());
  } while (scanner.accept(","));
  return names;
}

std::vector<MeshAxis> read_axes(TextScanner& scanner) {
  std::vector<MeshAxis> axes;
  do {
    MeshAxis axis{scanner.identifier()};
    scanner.expect("=");
    axis.size = scanner.integer();
    axes.push_back(std::move(axis));
  } while (scanner.accept(","));
  return axes;
}

RankMap read_devices(std::string_view text) {
  std::string list = text.starts_with('[') ? std::string(text) : cat('[', text, ']');
  return parse_whole("devices", list, [](TextScanner& scanner) { return RankMap::read(scanner); })
      .value();
}

// Operations report the caller's source line in errors; here, the step is reported instead.
constexpr SourceLocation kNowhere{};

Mesh flatten(const Mesh& mesh, TextScanner& scanner) {
  if (!scanner.accept(":")) return mesh.flatten("", kNowhere);
  std::vector<std::string> names;
  do {
    names.push_back(scanner.identifier());
  } while (scanner.accept("+"));
  if (scanner.accept("=")) return mesh.flatten(names, scanner.identifier(), kNowhere);
  if (names.size() > 1) scanner.fail("expected `=` and a name for these axes");
  return mesh.flatten(names[0], kNowhere);
}

Mesh unflatten(const Mesh& mesh, TextScanner& scanner) {
  scanner.expect(":");
  std::string axis = scanner.identifier();
  scanner.expect(":");
  return mesh.unflatten(axis, read_axes(scanner), kNowhere);
}

Mesh rename(const Mesh& mesh, TextScanner& scanner) {
  scanner.expect(":");
  std::vector<std::pair<std::string, std::string>> names;
  do {
    std::string from = scanner.identifier();
    scanner.expect("=");
    names.emplace_back(std::move(from), scanner.identifier());
  } while (scanner.accept(","));
  return mesh.rename(names, kNowhere);
}

Mesh unsqueeze(const Mesh& mesh, TextScanner& scanner) {
  scanner.expect(":");
  std::string name = scanner.identifier();
  scanner.expect("@");
  std::int64_t place = scanner.integer();
  if (place < 0) scanner.fail("the place must be at least 0");
  return mesh.unsqueeze(name, static_cast<std::size_t>(place), kNowhere);
}

Mesh submesh(const Mesh& mesh, TextScanner& scanner) {
  scanner.expect(":");
  std::vector<std::string> names = read_names(scanner);
  scanner.expect("@");
  std::int64_t device = scanner.integer();
  std::optional<Mesh> found = mesh.submesh(names, device, kNowhere);
  if (!found) throw Error(ErrorCode::kNotFound, cat("[mesh] device ", device, " is not in ", mesh));
  return *found;
}

Mesh read_step(const Mesh& mesh, TextScanner& scanner) {
  std::string operation = scanner.identifier();
  if (operation == "flatten") return flatten(mesh, scanner);
  if (operation == "unflatten") return unflatten(mesh, scanner);
  if (operation == "rename") return rename(mesh, scanner);
  if (operation == "unsqueeze") return unsqueeze(mesh, scanner);
  if (operation == "submesh") return submesh(mesh, scanner);
  if (operation == "root") return mesh.root();
  if (operation == "base") return mesh.base();
  if (operation == "as_root") return mesh.as_root(kNowhere);
  if (operation == "squeeze" && !scanner.accept(":")) return mesh.squeeze();
  if (operation == "squeeze") return mesh.squeeze(read_names(scanner), kNowhere);
  if (operation != "slice" && operation != "permute" && operation != "reshape")
    scanner.fail(cat("unknown step `", operation, "`"));
  scanner.expect(":");
  if (operation == "slice") return mesh.slice(read_names(scanner), kNowhere);
  if (operation == "permute") return mesh.permute(read_names(scanner), kNowhere);
  return mesh.reshape(read_axes(scanner), kNowhere);
}

}  // namespace

Mesh read_mesh(std::string_view text, std::string_view devices) {
  Mesh mesh;
  if (text.starts_with("mesh"))
    mesh = Mesh::parse(text).value();
  else
    mesh = Mesh(parse_whole("mesh", text, read_axes).value(), kNowhere);
  if (devices.empty()) return mesh;
  return Mesh({mesh.axes().begin(), mesh.axes().end()}, read_devices(devices), kNowhere);
}

Mesh apply_step(const Mesh& mesh, std::string_view step) {
  return parse_whole("step", step, [&](TextScanner& scanner) { return read_step(mesh, scanner); })
      .value();
}

}  // namespace meshard::tool
