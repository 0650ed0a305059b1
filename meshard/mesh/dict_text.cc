#include "meshard/mesh/dict_text.h"

#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/builders.h"

namespace meshard {
namespace {

// A Python tuple, `(1,)` or `(1, 2)`. The comma after a single element makes it a tuple.
std::string tuple_text(const std::vector<std::string>& elements) {
  return cat('(', join(elements, ", "), elements.size() == 1 ? ",)" : ")");
}

std::string quoted_key(TextScanner& scanner) {
  std::string_view quote = scanner.accept("'") ? "'" : "\"";
  if (quote == "\"") scanner.expect(quote);
  std::string name = scanner.identifier();
  scanner.expect(quote);
  return name;
}

// Reads the elements of `[...]` or `(...)`; a trailing comma is allowed.
template <class Item>
void read_sequence(TextScanner& scanner, Item item) {
  std::string_view close = scanner.accept("[") ? "]" : ")";
  if (close == ")") scanner.expect("(");
  while (!scanner.accept(close)) {
    item();
    if (scanner.accept(",")) continue;
    scanner.expect(close);
    return;
  }
}

struct MeshDict {
  std::optional<std::vector<std::int64_t>> device_ids, mesh_shape;
  MaybeNames axis_names;
};

std::vector<std::int64_t> read_numbers(TextScanner& scanner) {
  std::vector<std::int64_t> numbers;
  read_sequence(scanner, [&] { numbers.push_back(scanner.integer()); });
  return numbers;
}

void read_entry(TextScanner& scanner, MeshDict& dict) {
  std::string key = quoted_key(scanner);
  scanner.expect(":");
  if (key == "device_ids") {
    dict.device_ids = read_numbers(scanner);
  } else if (key == "mesh_shape") {
    dict.mesh_shape = read_numbers(scanner);
  } else if (key != "axis_names") {
    scanner.fail(cat("unknown entry ", key, "; expected device_ids, mesh_shape or axis_names"));
  } else if (!scanner.accept("None")) {
    dict.axis_names.emplace();
    read_sequence(scanner, [&] { dict.axis_names->push_back(quoted_key(scanner)); });
  }
}

Mesh read_mesh_dict(TextScanner& scanner) {
  MeshDict dict;
  scanner.expect("{");
  scanner.list("}", [&] { read_entry(scanner, dict); });
  if (!dict.device_ids || !dict.mesh_shape) scanner.fail("device_ids or mesh_shape is missing");
  return Mesh(mesh_axes(*dict.mesh_shape, dict.axis_names), *std::move(dict.device_ids));
}

}  // namespace

std::string mesh_dict_text(const Mesh& mesh) {
  std::vector<std::string> sizes, names;
  for (const MeshAxis& axis : mesh.axes()) {
    sizes.push_back(cat(axis.size));
    names.push_back(cat('\'', axis.name, '\''));
  }
  return cat("{'device_ids': [", join(mesh.as_root().device_ids(), ", "),
             "], 'mesh_shape': ", tuple_text(sizes),
             ", 'axis_names': ", axes_are_unnamed(mesh) ? "None" : tuple_text(names), "}");
}

Result<Mesh> parse_mesh_dict(std::string_view text) {
  return parse_whole("mesh", text, read_mesh_dict);
}

}  // namespace meshard
