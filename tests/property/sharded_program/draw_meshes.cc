// The meshes of a program.
#include <algorithm>

#include "tests/property/sharded_program/draw.h"

namespace meshard::property {

std::vector<std::int64_t> Draw::shuffled_devices(int count) {
  std::vector<std::int64_t> ids = own_places();
  if (!one_in(3)) std::shuffle(ids.begin(), ids.end(), random_);
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(count)));
  return ids;
}

MeshSpec Draw::root_mesh(std::vector<std::int64_t> devices) {
  MeshSpec spec;
  auto left = static_cast<std::int64_t>(devices.size());
  // The same names again, so that a mistaken mesh is not noticed by its names.
  const char* names = one_in(2) ? "xyz" : "abc";
  for (int i = 0; i < 3 && (left > 1 || one_in(8)); ++i) {
    std::int64_t size =
        i == 2 ? left : between(1, static_cast<int>(std::min<std::int64_t>(left, 4)));
    while (left % size != 0 || left / size > 16) --size;
    left /= size;
    spec.axes.push_back({std::string(1, names[i]), size});
  }
  if (left > 1 || spec.axes.empty())
    spec.axes.push_back({std::string(1, names[spec.axes.size()]), left});
  if (kind_ == Kind::kExplicit) {
    bool all = !one_in(3);
    for (MeshAxis& axis : spec.axes)
      if (all || one_in(2)) axis.kind = AxisKind::kExplicit;
  }
  spec.devices = std::move(devices);
  return spec;
}

// Several axes of several devices.
MeshSpec Draw::stage_mesh() {
  static const std::vector<std::vector<std::int64_t>> kSizes{{2, 2},    {2, 4},    {4, 2},
                                                             {2, 2, 2}, {2, 2, 2}, {2, 3}};
  const std::vector<std::int64_t>& sizes = one_of(kSizes);
  MeshSpec spec;
  std::int64_t devices = 1;
  const char* names = one_in(2) ? "xyz" : "abc";
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    spec.axes.push_back({std::string(1, names[a]), sizes[a]});
    devices *= sizes[a];
  }
  spec.devices = shuffled_devices(static_cast<int>(devices));
  return spec;
}

void Draw::add_mesh(MeshSpec spec) {
  program_.meshes.push_back(std::move(spec));
  Mesh mesh = make_meshes(program_.meshes, own_places()).back();
  std::vector<std::int64_t> ids = devices_of(mesh);
  program_.meshes.back().devices = ids;
  set_of_mesh_.push_back(sets_.number_of(std::move(ids)));
  meshes_.push_back(std::move(mesh));
}

// Other orders of devices that there are.
void Draw::draw_other_orders() {
  int orders = kind_ == Kind::kMeshes ? between(0, 2) : one_in(3) ? 1 : 0;
  for (; orders > 0; --orders) {
    std::vector<std::int64_t> same = devices_of(one_of(meshes_));
    if (!one_in(4)) std::shuffle(same.begin(), same.end(), random_);
    add_mesh(root_mesh(std::move(same)));
  }
}

// A mesh and two of its submeshes, or meshes of other devices.
void Draw::draw_apart() {
  if (on_two_platforms() || one_in(3)) {
    static constexpr int kCounts[] = {1, 2, 2, 3, 4};
    for (int count = between(2, 3); count > 0; --count) {
      std::vector<std::int64_t> ids = shuffled_devices(static_cast<int>(own_places().size()));
      // Meshes without a common device are on two platforms.
      if (on_two_platforms())
        std::erase_if(ids, [half = between(0, 1)](std::int64_t id) { return id / 4 != half; });
      ids.resize(static_cast<std::size_t>(one_of(kCounts)));
      add_mesh(root_mesh(std::move(ids)));
    }
    return;
  }
  static constexpr int kCounts[] = {4, 4, 6, 8};
  MeshSpec root{MeshSpec::kRoot, {}, shuffled_devices(one_of(kCounts)), -1};
  auto all = static_cast<std::int64_t>(root.devices.size());
  root.axes = {{"s", 2}, {"x", all / 2}};
  if (all == 8 && one_in(2)) root.axes = {{"s", 2}, {"x", 2}, {"y", 2}};
  if (one_in(3)) std::rotate(root.axes.begin(), root.axes.begin() + 1, root.axes.end());
  add_mesh(root);
  std::vector<MeshAxis> kept;
  for (const MeshAxis& axis : root.axes)
    if (axis.name != "s") kept.push_back(axis);
  int first = between(0, static_cast<int>(root.devices.size()) - 1);
  add_mesh({MeshSpec::kSubmesh, kept, {root.devices[static_cast<std::size_t>(first)]}, 0});
  for (std::int64_t id : root.devices) {
    if (meshes_[1].position(id)) continue;
    add_mesh({MeshSpec::kSubmesh, kept, {id}, 0});
    break;
  }
}

void Draw::draw_meshes() {
  if (kind_ == Kind::kTransforms && one_in(3)) return;  // what nobody places
  if (kind_ == Kind::kMeshes && !program_.gradient && !one_in(4)) {
    draw_apart();
  } else {
    static constexpr int kCounts[] = {1, 2, 2, 3, 4, 4, 4, 6, 6, 8, 8, 8};
    MeshSpec first =
        kind_ == Kind::kStages ? stage_mesh() : root_mesh(shuffled_devices(one_of(kCounts)));
    bool is_explicit = kind_ == Kind::kExplicit || kind_ == Kind::kStages;
    if (first.axes.size() > 1 && !is_explicit && one_in(8)) first.form = MeshSpec::kFlat;
    add_mesh(first);
    if (first.form == MeshSpec::kRoot && first.axes.size() > 1 && !is_explicit && one_in(6)) {
      MeshSpec part{MeshSpec::kSubmesh, first.axes, {devices_of(meshes_[0]).front()}, 0};
      part.axes.erase(part.axes.begin());
      add_mesh(part);
    }
  }
  if (kind_ != Kind::kExplicit && kind_ != Kind::kStages) draw_other_orders();
  bool one_run = kind_ == Kind::kOneSet || kind_ == Kind::kStages;
  if (kind_ == Kind::kMeshes ? one_in(2) : !one_run && one_in(4)) {
    program_.retarget = own_places();
    std::shuffle(program_.retarget.begin(), program_.retarget.end(), random_);
  }
}

}  // namespace meshard::property
