// Compares all properties of a mesh with the model's table.
#include <algorithm>
#include <map>

#include "meshard/base/cat.h"
#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/stablehlo/shardy_text.h"
#include "tests/property/mesh_program.h"

namespace meshard::model {
namespace {

using LibraryMesh = meshard::Mesh;
using Ids = std::vector<std::int64_t>;

std::string show(const std::string& text) { return text; }
std::string show(std::int64_t value) { return std::to_string(value); }
std::string show(const MeshAxis& axis) { return cat(axis.name, '=', axis.size); }
template <class T>
std::string show(const std::vector<T>& list) {
  std::string out;
  for (const T& element : list) out += (out.empty() ? "" : ",") + show(element);
  return "[" + out + "]";
}

template <class T>
std::string show(const std::optional<T>& value) {
  return value ? show(*value) : "none";
}
template <class T>
void same(const char* check, const T& got, const T& expected, const LibraryMesh& mesh) {
  if (!(got == expected))
    throw Failure{check, cat("of ", mesh, ": expected ", show(expected), ", got ", show(got)), 0};
}

std::optional<Ids> ids_of(const std::optional<IntVector>& list) {
  return list ? std::optional(Ids(list->begin(), list->end())) : std::nullopt;
}

// The root's devices, and some ids that are not devices of the root.
Ids devices_to_ask(const Mesh& model) {
  Ids ids = model.root->devices;
  std::int64_t largest = *std::max_element(ids.begin(), ids.end());
  for (std::int64_t id : {std::int64_t{-1}, std::int64_t{0}, largest / 2, largest + 1})
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  return ids;
}

void compare_places(const LibraryMesh& mesh, const Mesh& model) {
  same("axes", Axes(mesh.axes().begin(), mesh.axes().end()), model.axes, mesh);
  Ids sizes;
  for (const MeshAxis& axis : model.axes) sizes.push_back(axis.size);
  same("shape", Ids(mesh.shape().begin(), mesh.shape().end()), sizes, mesh);
  same("size", mesh.size(), std::int64_t{model.size()}, mesh);
  same("number of rows", mesh.rows(), static_cast<std::int64_t>(model.rows.size()), mesh);
  same("is_root", std::int64_t{mesh.is_root()}, std::int64_t{model.object == model.root->object},
       mesh);
  same("is_base", std::int64_t{mesh.is_base()}, std::int64_t{!model.base}, mesh);

  Ids all;
  for (int row = 0; row < static_cast<int>(model.rows.size()); ++row) {
    Ids devices = model.devices(row), got;
    RankMap ranks = mesh.ranks(row);
    for (std::int64_t p = 0; p < ranks.size(); ++p) got.push_back(ranks[p]);
    same("ranks of a row", got, devices, mesh);
    all.insert(all.end(), devices.begin(), devices.end());
  }
  same("device_ids", mesh.device_ids().to_vector(), all, mesh);

  for (std::int64_t id : devices_to_ask(model)) {
    std::optional<int> place = model.place(id);
    std::optional<std::int64_t> position, row;
    std::optional<Ids> coordinate;
    if (place) {
      position = model.position_of[*place];
      row = model.row_of[*place];
      Ints along = model.coordinate(model.position_of[*place]);
      coordinate = Ids(along.begin(), along.end());
    }
    same("position of a device", mesh.position(id), position, mesh);
    same("row of a device", mesh.row(id), row, mesh);
    same("coordinate of a device", ids_of(mesh.coordinate(id)), coordinate, mesh);
    if (!place) continue;
    same("device at its coordinate", mesh.device_id(*mesh.coordinate(id), id), std::optional(id),
         mesh);
    if (model.rows.size() == 1) same("device at its position", mesh.device_id(*position), id, mesh);
    same("coordinate at a position", ids_of(mesh.coordinate_at(*position)), coordinate, mesh);
  }
}

void compare_layouts(const LibraryMesh& mesh, const Mesh& model) {
  Layout layout = mesh.layout();
  for (int p = 0; p < model.size(); ++p)
    same("layout", layout(p), std::int64_t{model.rows[0][p] - model.rows[0][0]}, mesh);
  for (std::size_t i = 0; i < model.axes.size(); ++i) {
    Layout axis = mesh.axis_layout(i);
    if (axis.size() == 1)
      same("layout of a unit axis", axis.to_string(), std::string("():()"), mesh);
    Ints line = axis_table(model, i).lines[0];
    for (std::size_t c = 0; c < line.size(); ++c)
      same("layout of an axis", axis(static_cast<std::int64_t>(c)), std::int64_t{line[c] - line[0]},
           mesh);
  }
  LibraryMesh root = mesh.root();
  same("devices of the root", root.device_ids().to_vector(), model.root->devices, mesh);

  auto flattened = mesh.flattened();
  same("number of registered names", static_cast<std::int64_t>(flattened.size()),
       static_cast<std::int64_t>(model.root->flat_names.size()), mesh);
  for (std::size_t i = 0; i < flattened.size(); ++i) {
    const FlatName& flat = model.root->flat_names[i];
    same("registered name", flattened[i].first, flat.name, mesh);
    for (std::size_t c = 0; c < flat.offsets.size(); ++c)
      same("layout of a registered name", flattened[i].second(static_cast<std::int64_t>(c)),
           std::int64_t{flat.offsets[c]}, mesh);
  }
}

// A list of axes and sub-axes, with the group and the member index of each mesh position, computed
// from coordinates.
struct Along {
  AxisList axes;
  std::vector<std::pair<std::int64_t, std::int64_t>> group_and_member;
  bool is_whole = true, is_possible = true;
};

Along axes_along(const Mesh& model, const std::vector<AxisRef>& refs) {
  Along along;
  along.axes = AxisList(refs.begin(), refs.end());
  for (const AxisRef& ref : refs) {
    if (ref.is_whole()) continue;
    along.is_whole = false;
    std::size_t axis = 0;
    while (model.axes[axis].name != ref.name) ++axis;
    int size = static_cast<int>(model.axes[axis].size);
    Ints parts = {static_cast<int>(ref.pre_size), static_cast<int>(ref.size),
                  size / static_cast<int>(ref.pre_size * ref.size)};
    along.is_possible =
        along.is_possible && splits_into_layouts(axis_table(model, axis).lines[0], parts);
  }
  for (int p = 0; p < model.size(); ++p) {
    Ints coordinate = model.coordinate(p), rest = coordinate;
    std::int64_t member = 0, group = 0;
    for (const AxisRef& ref : refs) {
      std::size_t axis = 0;
      while (model.axes[axis].name != ref.name) ++axis;
      int size = static_cast<int>(model.axes[axis].size);
      int own = static_cast<int>(ref.is_whole() ? size : ref.size);
      int after = static_cast<int>(ref.is_whole() ? 1 : size / (ref.pre_size * ref.size));
      int index = coordinate[axis] / after % own;
      member = member * own + index;
      rest[axis] -= index * after;
    }
    for (std::size_t i = 0; i < rest.size(); ++i) group = group * model.axes[i].size + rest[i];
    along.group_and_member.emplace_back(group, member);
  }
  return along;
}

void compare_groups(const LibraryMesh& mesh, const Mesh& model, const Along& along,
                    std::mt19937_64& random) {
  std::optional<DeviceGroups> groups;
  try {
    groups = mesh.groups(along.axes);
  } catch (const Error& error) {
    if (along.is_possible) throw Failure{"groups", cat("of ", mesh, ": ", error.what()), 0};
    return;
  }
  // Grouped by the coordinates that all members share. Members are in the order of the axes.
  std::map<std::pair<int, std::int64_t>, std::map<std::int64_t, int>> members;
  for (int row = 0; row < static_cast<int>(model.rows.size()); ++row)
    for (int p = 0; p < model.size(); ++p) {
      auto [group, member] = along.group_and_member[p];
      members[{row, group}][member] = model.rows[row][p];
    }
  std::vector<Ints> expected;
  for (const auto& [key, group] : members) {
    expected.emplace_back();
    for (const auto& [member, place] : group) expected.back().push_back(place);
  }
  put_in_order(model.base_mesh(), expected);
  std::string text = to_string(along.axes);

  same("number of groups", groups->count(), static_cast<std::int64_t>(expected.size()), mesh);
  same("size of groups", groups->group_size(), static_cast<std::int64_t>(expected[0].size()), mesh);
  for (std::size_t g = 0; g < expected.size(); ++g) {
    Ids ids, sorted;
    for (int place : expected[g]) ids.push_back(model.root->devices[place]);
    DeviceGroup group = (*groups)[static_cast<std::int64_t>(g)];
    same("a group", group.to_vector(), ids, mesh);
    RankMap ranks = group.ranks();
    for (std::int64_t k = 0; k < ranks.size(); ++k)
      same("ranks of a group", ranks[k], ids[static_cast<std::size_t>(k)], mesh);
    sorted = ids;
    std::sort(sorted.begin(), sorted.end());
    // Checks all properties for one member of each group, and only the ranks for the others.
    std::size_t asked = random() % ids.size();
    for (std::size_t k = 0; k < ids.size(); ++k) {
      std::int64_t place = std::lower_bound(sorted.begin(), sorted.end(), ids[k]) - sorted.begin();
      same("local rank", mesh.local_rank(along.axes, ids[k]),
           std::optional(static_cast<std::int64_t>(k)), mesh);
      same("sorted local rank", mesh.local_rank(along.axes, ids[k], RankOrder::kSorted),
           std::optional(place), mesh);
      if (k != asked) continue;
      same("number of a device's group", groups->find(ids[k]),
           std::optional(static_cast<std::int64_t>(g)), mesh);
      std::optional<DeviceGroup> own = mesh.group(along.axes, ids[k]), of = groups->of(ids[k]);
      if (!own || !of || !own->is_same_object(group) || !of->is_same_object(group))
        throw Failure{"a device's group", cat("of ", ids[k], " along ", text, " in ", mesh), 0};
      same("local rank in the group", group.local_rank(ids[k]),
           std::optional(static_cast<std::int64_t>(k)), mesh);
      same("member of a group", group[static_cast<std::int64_t>(k)], ids[k], mesh);
    }
  }
  for (std::int64_t id : devices_to_ask(model)) {
    if (model.place(id)) continue;
    if (groups->find(id) || groups->of(id) || mesh.group(along.axes, id) ||
        mesh.local_rank(along.axes, id))
      throw Failure{"a device outside has no group", cat(id, " along ", text, " in ", mesh), 0};
  }
  Result<AxisList> in_base = mesh.axes_in_base(along.axes);
  if (!in_base.ok()) return;
  DeviceGroups of_base = mesh.base().groups(*in_base);
  if (!of_base.is_same_object(*groups))
    throw Failure{"axes in the base have the same groups",
                  cat(text, " of ", mesh, " is ", to_string(*in_base), " of ", mesh.base()), 0};
}

void compare_all_groups(const LibraryMesh& mesh, const Mesh& model, std::mt19937_64& random) {
  std::vector<AxisRef> whole, parts;
  for (std::size_t i = 0; i < model.axes.size(); ++i) {
    const MeshAxis& axis = model.axes[i];
    bool is_first = true;
    for (std::size_t j = 0; j < i; ++j) is_first = is_first && model.axes[j].name != axis.name;
    if (!is_first) continue;
    compare_groups(mesh, model, axes_along(model, {axis.name}), random);
    if (random() % 2 == 0) whole.push_back(axis.name);
    // A sub-axis: (pre, own, rest) multiply to the axis size.
    std::int64_t pre = 1 + static_cast<std::int64_t>(random() % axis.size);
    while (axis.size % pre != 0) --pre;
    std::int64_t own = 1 + static_cast<std::int64_t>(random() % (axis.size / pre));
    while (axis.size / pre % own != 0) --own;
    if (own > 1 && random() % 2 == 0) parts.push_back({axis.name, pre, own});
  }
  std::shuffle(whole.begin(), whole.end(), random);
  std::shuffle(parts.begin(), parts.end(), random);
  compare_groups(mesh, model, axes_along(model, whole), random);
  if (!parts.empty()) compare_groups(mesh, model, axes_along(model, parts), random);
}

void compare_text(const LibraryMesh& mesh, const MeshPtr& expected, Model& model) {
  MeshPtr printed = model.as_printed(expected);
  // Names of unit axes may repeat, except in a root.
  bool readable = printed->base || !printed->has_repeated_name();
  std::string text = mesh.to_string();
  Result<LibraryMesh> parsed = LibraryMesh::parse(text);
  if (!parsed.ok()) {
    if (readable)
      throw Failure{"parse of what was printed", cat(text, ": ", parsed.error().what()), 0};
    return;
  }
  same("text of the parsed", parsed->to_string(), text, mesh);
  compare_places(*parsed, *printed);
  compare_pair(mesh, expected, *parsed, printed);

  if (expected->rows.size() > 1 || expected->has_repeated_name()) return;
  Result<LibraryMesh> shardy = parse_shardy_mesh(shardy_text(mesh));
  if (!shardy.ok()) throw Failure{"Shardy text", cat(text, ": ", shardy.error().what()), 0};
  Ids logical(static_cast<std::size_t>(expected->size()));
  for (std::size_t i = 0; i < logical.size(); ++i) logical[i] = static_cast<std::int64_t>(i);
  compare_places(*shardy, *model.make_root(expected->axes, logical));
  LibraryMesh base = mesh.base();
  Result<LibraryMesh> numbered = parse_shardy_mesh(shardy_text(mesh, base));
  if (!numbered.ok()) throw Failure{"Shardy text", cat(text, ": ", numbered.error().what()), 0};
  for (std::size_t i = 0; i < logical.size(); ++i)
    logical[i] = expected->base_mesh().position_of[expected->rows[0][i]];
  compare_places(*numbered, *model.make_root(expected->axes, logical));
}

}  // namespace

void compare(const LibraryMesh& mesh, const MeshPtr& expected, Model& model,
             std::mt19937_64& random) {
  compare_places(mesh, *expected);
  compare_layouts(mesh, *expected);
  compare_all_groups(mesh, *expected, random);
  compare_text(mesh, expected, model);
}

void compare_pair(const LibraryMesh& a, const MeshPtr& expected_a, const LibraryMesh& b,
                  const MeshPtr& expected_b) {
  auto check = [&](const char* what, bool got, bool wanted) {
    if (got != wanted)
      throw Failure{what,
                    cat(a, " of ", a.root(), " and ", b, " of ", b.root(), ": expected ",
                        wanted ? "yes" : "no", ", got ", got ? "yes" : "no"),
                    0};
  };
  bool are_equal = equal(*expected_a, *expected_b);
  check("==", a == b, are_equal);
  check("== the other way", b == a, are_equal);
  if (are_equal) check("hash of equal meshes", a.hash() == b.hash(), true);
  if (expected_a->object == expected_b->object) check("is_same_object", a.is_same_object(b), true);
  if (a.is_same_object(b)) check("equal if one object", are_equal, true);
  check("same_root", a.same_root(b), expected_a->root == expected_b->root);
  check("is_submesh_of", a.is_submesh_of(b), is_submesh_of(*expected_a, *expected_b));
  check("is_submesh_of the other way", b.is_submesh_of(a), is_submesh_of(*expected_b, *expected_a));

  Ids first = expected_a->sorted_devices(), second = expected_b->sorted_devices(), both;
  std::set_intersection(first.begin(), first.end(), second.begin(), second.end(),
                        std::back_inserter(both));
  Overlap wanted = first == second  ? Overlap::kSame
                   : both == first  ? Overlap::kFirstInSecond
                   : both == second ? Overlap::kSecondInFirst
                   : both.empty()   ? Overlap::kNone
                                    : Overlap::kSome;
  Overlap got = overlap(a, b);
  if (got != wanted)
    throw Failure{"overlap",
                  cat(a, " and ", b, ": expected ", meshard::to_string(wanted), ", got ",
                      meshard::to_string(got)),
                  0};
  check("same_devices", a.same_devices(b), wanted == Overlap::kSame);
}

}  // namespace meshard::model
