#include "tests/property/mesh_model.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace meshard::model {
namespace {

int product(const Axes& axes) {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  return static_cast<int>(size);
}

// Whether the values are those of a flat layout that starts at 0.
bool is_layout(const Ints& values) {
  std::size_t n = values.size();
  if (values[0] != 0) return false;
  if (n == 1) return true;
  std::size_t run = 1;  // of the last mode: how far its stride continues
  while (run < n && values[run] == static_cast<int>(run) * values[1]) ++run;
  if (n % run != 0) return false;
  Ints rest;
  for (std::size_t i = 0; i < n; ++i) {
    if (values[i] != values[i - i % run] + values[i % run]) return false;
    if (i % run == 0) rest.push_back(values[i]);
  }
  return is_layout(rest);
}

}  // namespace

std::vector<std::int64_t> Mesh::devices(int row) const {
  std::vector<std::int64_t> ids;
  for (int place : rows[row]) ids.push_back(root->devices[place]);
  return ids;
}

std::vector<std::int64_t> Mesh::sorted_devices() const {
  std::vector<std::int64_t> ids;
  for (const Ints& row : rows)
    for (int place : row) ids.push_back(root->devices[place]);
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::optional<int> Mesh::place(std::int64_t device) const {
  auto found = std::find(root->devices.begin(), root->devices.end(), device);
  if (found == root->devices.end()) return std::nullopt;
  int place = static_cast<int>(found - root->devices.begin());
  return row_of[place] < 0 ? std::nullopt : std::optional(place);
}

Ints Mesh::coordinate(int position) const {
  Ints coordinate(axes.size());
  for (std::size_t i = axes.size(); i-- > 0;) {
    coordinate[i] = position % static_cast<int>(axes[i].size);
    position /= static_cast<int>(axes[i].size);
  }
  return coordinate;
}

bool Mesh::has_repeated_name() const {
  std::set<std::string> names;
  for (const MeshAxis& axis : axes)
    if (!names.insert(axis.name).second) return true;
  return false;
}

bool equal(const Mesh& a, const Mesh& b) {
  if (a.axes != b.axes || a.rows.size() != b.rows.size()) return false;
  if (a.base_mesh().devices(0) != b.base_mesh().devices(0)) return false;
  for (int row = 0; row < static_cast<int>(a.rows.size()); ++row)
    if (a.devices(row) != b.devices(row)) return false;
  return true;
}

bool is_submesh_of(const Mesh& a, const Mesh& b) {
  if (a.root != b.root) return false;
  for (const Ints& row : a.rows)
    for (int place : row)
      if (b.row_of[place] < 0 || b.row_of[place] != b.row_of[row[0]]) return false;
  return true;
}

AxisTable axis_of_lines(std::string name, std::vector<Ints> lines, std::size_t places) {
  AxisTable table{std::move(name), std::move(lines), Ints(places, -1), Ints(places, -1)};
  for (std::size_t line = 0; line < table.lines.size(); ++line)
    for (std::size_t c = 0; c < table.lines[line].size(); ++c) {
      int place = table.lines[line][c];
      table.line_of[place] = static_cast<int>(line);
      table.index_of[place] = static_cast<int>(c);
    }
  return table;
}

AxisTable axis_table(const Mesh& mesh, std::size_t axis) {
  std::vector<Ints> lines;
  int size = static_cast<int>(mesh.axes[axis].size), stride = 1;
  for (std::size_t i = axis + 1; i < mesh.axes.size(); ++i)
    stride *= static_cast<int>(mesh.axes[i].size);
  for (const Ints& row : mesh.rows)
    for (int start = 0; start < mesh.size(); ++start) {
      if (start / stride % size != 0) continue;
      lines.emplace_back();
      for (int c = 0; c < size; ++c) lines.back().push_back(row[start + c * stride]);
    }
  return axis_of_lines(mesh.axes[axis].name, std::move(lines), mesh.root->devices.size());
}

AxisTable moved_along(std::string name, const Ints& offsets, std::size_t places) {
  std::vector<Ints> lines;
  std::vector<bool> covered(places);
  for (std::size_t start = 0; start < places; ++start) {
    if (covered[start]) continue;
    lines.emplace_back();
    for (int offset : offsets) {
      lines.back().push_back(static_cast<int>(start) + offset);
      covered.at(start + offset) = true;
    }
  }
  return axis_of_lines(std::move(name), std::move(lines), places);
}

void put_in_order(const Mesh& base, std::vector<Ints>& lists) {
  std::sort(lists.begin(), lists.end(), [&](const Ints& a, const Ints& b) {
    return base.position_of[a[0]] < base.position_of[b[0]];
  });
  Ints steps;
  for (const Ints& list : lists) steps.push_back(list[0] - lists[0][0]);
  if (!is_layout(steps)) std::sort(lists.begin(), lists.end());
}

std::optional<std::vector<Ints>> join(const Mesh& base, const std::vector<AxisTable>& axes) {
  const Ints& places = base.rows[0];
  std::vector<Ints> rows;
  std::vector<bool> seen(base.root->devices.size());
  std::size_t count = 0;
  for (int start : places) {
    bool is_start = true;
    for (const AxisTable& axis : axes) is_start = is_start && axis.index_of[start] == 0;
    if (!is_start) continue;
    Ints row = {start};
    for (const AxisTable& axis : axes) {
      Ints longer;
      if (row.size() * axis.size() > places.size()) return std::nullopt;
      for (int place : row)
        for (int next : axis.lines[axis.line_of[place]]) longer.push_back(next);
      row = std::move(longer);
    }
    for (std::size_t p = 0; p < row.size(); ++p) {
      int rest = static_cast<int>(p);
      for (std::size_t i = axes.size(); i-- > 0; rest /= axes[i].size())
        if (axes[i].index_of[row[p]] != rest % axes[i].size()) return std::nullopt;
      if (seen[row[p]]) return std::nullopt;
      seen[row[p]] = true;
    }
    count += row.size();
    rows.push_back(std::move(row));
  }
  if (count != places.size()) return std::nullopt;
  put_in_order(base, rows);
  return rows;
}

bool splits_into_layouts(const Ints& values, const Ints& part_sizes) {
  std::vector<Ints> parts(part_sizes.size());
  int stride = static_cast<int>(values.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    stride /= part_sizes[i];
    for (int k = 0; k < part_sizes[i]; ++k) parts[i].push_back(values[k * stride] - values[0]);
    if (!is_layout(parts[i])) return false;
  }
  for (int p = 0; p < static_cast<int>(values.size()); ++p) {
    int rest = p, sum = values[0];
    for (std::size_t i = parts.size(); i-- > 0; rest /= part_sizes[i])
      sum += parts[i][rest % part_sizes[i]];
    if (sum != values[p]) return false;
  }
  return true;
}

MeshPtr Model::finish(Mesh mesh) {
  mesh.object = ++objects_;
  mesh.row_of = mesh.position_of = Ints(mesh.root->devices.size(), -1);
  for (int row = 0; row < static_cast<int>(mesh.rows.size()); ++row)
    for (int p = 0; p < mesh.size(); ++p) {
      mesh.row_of[mesh.rows[row][p]] = row;
      mesh.position_of[mesh.rows[row][p]] = p;
    }
  return std::make_shared<const Mesh>(std::move(mesh));
}

MeshPtr Model::make_root(Axes axes, std::vector<std::int64_t> devices) {
  Mesh mesh;
  mesh.root = std::make_shared<Root>();
  mesh.root->devices = std::move(devices);
  mesh.root->axes = axes;
  mesh.axes = std::move(axes);
  mesh.rows.emplace_back(product(mesh.axes));
  std::iota(mesh.rows[0].begin(), mesh.rows[0].end(), 0);
  MeshPtr made = finish(std::move(mesh));
  made->root->object = made->object;
  return made;
}

// A mesh over the devices of from's base. Two axes may have the same name only if both have size 1.
Answer Model::derived(const MeshPtr& from, Axes axes, std::vector<Ints> rows, bool may_refuse) {
  bool repeated = false;
  for (std::size_t i = 0; i < axes.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (axes[i].name != axes[j].name) continue;
      if (axes[i].size > 1 || axes[j].size > 1) return {};
      repeated = true;
    }
  Mesh mesh;
  mesh.root = from->root;
  mesh.base = from->base ? from->base : from;
  mesh.axes = std::move(axes);
  mesh.rows = std::move(rows);
  return {repeated && may_refuse ? Answer::kEither : Answer::kMesh, finish(std::move(mesh))};
}

Answer Model::root(const MeshPtr& mesh) {
  Mesh top;
  top.root = mesh->root;
  top.axes = mesh->root->axes;
  top.rows.emplace_back(mesh->root->devices.size());
  std::iota(top.rows[0].begin(), top.rows[0].end(), 0);
  auto made = std::make_shared<Mesh>(*finish(std::move(top)));
  made->object = mesh->root->object;
  return {Answer::kMesh, made};
}

Answer Model::base(const MeshPtr& mesh) { return {Answer::kMesh, mesh->base ? mesh->base : mesh}; }

}  // namespace meshard::model
