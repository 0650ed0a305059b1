// Mesh::to_string and Mesh::parse.
#include "meshard/layout/text_scanner.h"
#include "meshard/mesh/mesh.h"
#include "meshard/mesh/root_table.h"

namespace meshard {

// The text after the axes of a root: devices, properties, flattened names.
std::string Mesh::root_suffix(MeshText form) const {
  std::string out;
  auto part = [&](const auto&... text) { append(out, cat("; ", text...)); };
  RankMap ids = rank_map().simplest();
  if (!ids.is_identity()) append(out, cat(rank() == 0 ? "" : "; ", "devices=", ids));
  if (!device_type().empty()) part("device_type=", device_type());
  if (uneven() == Uneven::kError) part("uneven=error");
  if (form == MeshText::kValue) return out;
  bool first = true;
  for (const RootTable::FlatAxis& axis : root_state().table->flat_axes()) {
    append(out, cat(first ? "; flattened " : ", ", axis.name, '=', axis.digits.layout()));
    if (axis.kind == AxisKind::kExplicit) out += " explicit";
    first = false;
  }
  return out;
}

// The text of a derived mesh: its axes as layouts over `from`.
std::string Mesh::text_over(std::string_view link, const Mesh& from,
                            const std::vector<Digits>& steps, MeshText form) const {
  std::string out = "mesh<";
  for (std::size_t i = 0; i < rank(); ++i) {
    append(out, cat(i == 0 ? "" : ", ", axes()[i].name, '='));
    append(out, axes()[i].size > 1 ? cat(steps[i].layout()) : cat(axes()[i].size));
    if (axes()[i].kind == AxisKind::kExplicit) out += " explicit";
  }
  return cat(out, rank() == 0 ? "" : " ", link, ' ', from.to_string(form), '>');
}

std::string Mesh::to_string(MeshText form) const {
  std::vector<Digits> steps, in_root;
  Digits all;
  for (std::size_t i = 0; i < rank(); ++i) {
    in_root.push_back(axis_digits(i));
    if (std::optional<Digits> digits = axis_in_base(i)) {
      all.append(digits->modes());
      steps.push_back(std::move(*digits));
    }
  }
  if (form == MeshText::kWithRoot && !is_root()) {
    if (is_base()) return text_over(cat("from ", state_->offset, " of"), root(), in_root, form);
    if (steps.size() < rank()) return text_over("in", base(), in_root, form);
    return text_over("of", base(), steps, form);
  }
  // Printed as a root if a root with these devices is equal, otherwise as layouts over the base.
  bool unique = true;  // axes of size 1 may share a name, but not in a root
  for (std::size_t i = 0; i < rank(); ++i) unique = unique && find_axis(axes()[i].name) == i;
  bool as_root = is_base() || (unique && all == Digits::whole(base_state().size)) ||
                 (steps.size() < rank() && rows() == 1);
  if (!as_root && steps.size() < rank())
    return text_over("in", base(), in_root, MeshText::kWithRoot);
  if (!as_root) return text_over("of", base(), steps, form);
  std::string out = "mesh<";
  for (std::size_t i = 0; i < rank(); ++i) {
    append(out, cat(i == 0 ? "" : ", ", axes()[i].name, '=', axes()[i].size));
    if (axes()[i].kind == AxisKind::kExplicit) out += " explicit";
  }
  return cat(out, root_suffix(form), '>');
}

Mesh Mesh::read(TextScanner& scanner) {
  scanner.expect("mesh");
  scanner.expect("<");
  std::vector<MeshAxis> axes;
  Axes layouts;  // of a derived mesh
  while (!scanner.peek(">") && !scanner.peek(";")) {
    if (axes.empty() && scanner.peek("devices=[")) break;
    if (scanner.peek("of mesh<") || scanner.peek("in mesh<") || scanner.peek("from "))
      return read_derived(axes, layouts, scanner);
    if (!axes.empty()) scanner.expect(",");
    std::string name = scanner.identifier();
    scanner.expect("=");
    layouts.push_back({name, {}});
    if (scanner.peek("(")) {
      axes.push_back({name, read_steps(IntTuple::read(scanner), layouts.back(), scanner)});
    } else {
      axes.push_back({name, scanner.integer()});
      if (scanner.peek(":")) read_steps(axes.back().size, layouts.back(), scanner);
    }
    if (scanner.accept("explicit")) axes.back().kind = layouts.back().kind = AxisKind::kExplicit;
  }
  for (const Axis& axis : layouts)
    if (axis.digits.size() > 1) scanner.fail("expected `of mesh<...>` after axes with layouts");
  return read_root(std::move(axes), scanner);
}

// Reads the text after the axes of a root, including the closing `>`.
Mesh Mesh::read_root(std::vector<MeshAxis> axes, TextScanner& scanner) {
  std::optional<RankMap> map;
  Properties properties;
  bool flattened = false;
  bool more = axes.empty() ? scanner.peek("devices=[") || scanner.accept(";") : scanner.accept(";");
  for (; more && !flattened; more = scanner.accept(";")) {
    if ((flattened = scanner.accept("flattened"))) break;
    std::string what = scanner.identifier();
    scanner.expect("=");
    if (what == "devices" && !map) {
      map = RankMap::read(scanner);
    } else if (what == "device_type" && properties.device_type.empty()) {
      properties.device_type = scanner.identifier();
    } else if (what == "uneven" && properties.uneven == Uneven::kAllow) {
      scanner.expect("error");
      properties.uneven = Uneven::kError;
    } else {
      scanner.fail("expected `devices`, `device_type`, `uneven` or `flattened`, each once");
    }
  }
  Mesh mesh = (map ? Mesh(std::move(axes), *map, {}) : Mesh(std::move(axes), SourceLocation{}))
                  .with_properties(std::move(properties), {});
  if (flattened) mesh.read_flattened(scanner);
  scanner.expect(">");
  return mesh;
}

// Reads the flattened names and registers them at this root.
void Mesh::read_flattened(TextScanner& scanner) const {
  do {
    Axis axis{scanner.identifier(), {}};
    scanner.expect("=");
    if (scanner.peek("("))
      read_steps(IntTuple::read(scanner), axis, scanner);
    else
      read_steps(scanner.integer(), axis, scanner);
    if (scanner.accept("explicit")) axis.kind = AxisKind::kExplicit;
    if (!axis.digits.is_orthogonal() || !axis.digits.lies_within(size()))
      scanner.fail("the flattened axis is not within the mesh");
    registered(std::move(axis), {});
  } while (scanner.accept(","));
}

// Reads the stride of an axis, which follows its shape. Returns the size of the axis.
std::int64_t Mesh::read_steps(const IntTuple& shape, Axis& axis, TextScanner& scanner) {
  scanner.expect(":");
  Layout layout(shape, IntTuple::read(scanner));
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i) {
    if (layout.stride().leaves()[i] < 1) scanner.fail("the strides of an axis must be at least 1");
    axis.digits.push_back({layout.shape().leaves()[i], layout.stride().leaves()[i]});
  }
  return layout.size();
}

// Reads the mesh that a derived mesh is made from. `of`: the axes are layouts over its positions.
// `in`: the axes are layouts over its root's ranks. `from`: a submesh that starts at the given
// rank.
Mesh Mesh::read_derived(const std::vector<MeshAxis>& sizes, const Axes& axes,
                        TextScanner& scanner) {
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i].size != axes[i].digits.size())
      scanner.fail("each axis of a derived mesh needs a layout, such as 4:2");
  Digits all = merged(axes);
  std::optional<std::int64_t> from;
  bool in = false;
  if (scanner.accept("from")) from = scanner.integer();
  if (!from) in = scanner.accept("in");
  if (!in) scanner.expect("of");
  Mesh base = read(scanner);
  scanner.expect(">");
  if (!all.is_orthogonal()) scanner.fail("the axes overlap");
  if (!base.is_base()) scanner.fail("the base must be a root mesh or a submesh of one");
  if (from) return base.read_submesh(axes, *from, scanner);
  if (in ? !all.within(base.state_->domain.sorted()).ok() : !all.lies_within(base.size()))
    scanner.fail("the axes are not within the base mesh");
  if (in || base.is_root()) return base.derive(axes, {});
  Digits frame = merged(base.all_axes());
  Axes in_root = axes;
  for (Axis& axis : in_root) {
    Digits steps;
    for (const Digit& mode : axis.digits.modes())
      steps.append(cut(frame, mode.size, mode.stride).value().modes());
    axis.digits = steps;
  }
  return base.derive(in_root, {});
}

// The submesh of this root that starts at position `from`.
Mesh Mesh::read_submesh(const Axes& axes, std::int64_t from, TextScanner& scanner) const {
  Digits all = merged(axes);
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (axes[i].name == axes[j].name) scanner.fail("an axis is named twice");
  if (!is_root() || from < 0 || from >= size() || !all.lies_within(size()) || all(from) != 0)
    scanner.fail(
        "invalid start of a submesh: its axes must fit the root mesh and begin at this rank");
  return submesh_at(axes, from, {});
}

Result<Mesh> Mesh::parse(std::string_view text) {
  return parse_whole("mesh", text, [](TextScanner& scanner) { return read(scanner); });
}

std::string MeshAxis::to_string() const {
  return cat(name, '=', size, kind == AxisKind::kExplicit ? " explicit" : "");
}
std::string_view to_string(RankOrder order) {
  return order == RankOrder::kMesh ? "mesh" : "sorted";
}
std::string_view to_string(Uneven uneven) { return uneven == Uneven::kAllow ? "allow" : "error"; }

}  // namespace meshard
