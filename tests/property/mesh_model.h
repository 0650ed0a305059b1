// A model of the mesh algebra without layouts: every mesh is a table of its devices.
//
// The table has one line for each row, with the place of each device in the root's list, ordered by
// position. Every operation enumerates table entries. If the library agrees with the model over
// random chains of operations, its arithmetic is right.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "meshard/mesh/mesh.h"

namespace meshard::model {

using Ints = std::vector<int>;
using Axes = std::vector<MeshAxis>;
using Names = std::vector<std::string>;

/// A name that flatten has registered, with the offset of each index of the axis from index 0.
struct FlatName {
  std::string name;
  Ints offsets;
  // The last mesh that was flattened to this name, and its base; 0: none.
  int object = 0, base_object = 0;
};

/// Shared by all meshes of one root.
struct Root {
  std::vector<std::int64_t> devices;
  Axes axes;
  int object = 0;
  std::vector<FlatName> flat_names;
};

/// A mesh as a table.
struct Mesh {
  std::shared_ptr<Root> root;
  std::shared_ptr<const Mesh> base;  // null: the mesh itself
  Axes axes;
  std::vector<Ints> rows;  // places in root->devices
  int object = 0;          // meshes with the same number are the same object
  // For each place in root->devices: its row and the position in it; -1: not in this mesh.
  Ints row_of, position_of;

  int size() const { return static_cast<int>(rows[0].size()); }
  const Mesh& base_mesh() const { return base ? *base : *this; }
  std::int64_t device(int row, int position) const { return root->devices[rows[row][position]]; }
  std::vector<std::int64_t> devices(int row) const;
  /// The devices of all rows, sorted.
  std::vector<std::int64_t> sorted_devices() const;
  std::optional<int> place(std::int64_t device) const;
  Ints coordinate(int position) const;
  bool has_repeated_name() const;
};
using MeshPtr = std::shared_ptr<const Mesh>;

/// Equality as Mesh documents it: equal names, and equal steps into equal lists of devices.
bool equal(const Mesh& a, const Mesh& b);
/// Whether each row of `a` is part of a row of `b`, with the same root.
bool is_submesh_of(const Mesh& a, const Mesh& b);

/// The required result of an operation.
struct Answer {
  /// kEither: the contract does not define whether this is an error; a result must be this mesh.
  enum Kind { kMesh, kNone, kRefused, kEither } kind = kRefused;
  MeshPtr mesh;
};

/// Deliberate errors of the model, to test the tests.
enum class Wrong { kNothing, kUnflattenTurnsParts, kSubmeshOfFirstRow };

/// The operations. @pre sizes multiply to a few hundred
class Model {
 public:
  explicit Model(Wrong wrong = Wrong::kNothing) : wrong_(wrong) {}

  MeshPtr make_root(Axes axes, std::vector<std::int64_t> devices);
  Answer slice(const MeshPtr& mesh, const Names& names);
  Answer permute(const MeshPtr& mesh, const Names& names);
  Answer flatten(const MeshPtr& mesh, std::string name);
  Answer flatten(const MeshPtr& mesh, const Names& names, const std::string& name);
  Answer unflatten(const MeshPtr& mesh, const std::string& name, const Axes& parts);
  Answer reshape(const MeshPtr& mesh, const Axes& axes);
  Answer rename(const MeshPtr& mesh, const std::vector<std::pair<std::string, std::string>>& names);
  Answer squeeze(const MeshPtr& mesh);
  Answer squeeze(const MeshPtr& mesh, const Names& names);
  Answer unsqueeze(const MeshPtr& mesh, const std::string& name, int place);
  Answer concatenate(const std::vector<MeshPtr>& meshes);
  Answer submesh(const MeshPtr& mesh, const Names& names, std::int64_t device);
  Answer submesh_at(const MeshPtr& mesh, const Names& names, int index);
  Answer as_root(const MeshPtr& mesh);
  Answer root(const MeshPtr& mesh);
  Answer base(const MeshPtr& mesh);
  /// The mesh that the printed text of `mesh` describes.
  MeshPtr as_printed(const MeshPtr& mesh);

 private:
  MeshPtr finish(Mesh mesh);
  Answer derived(const MeshPtr& from, Axes axes, std::vector<Ints> rows, bool may_refuse = false);
  Answer row_as_mesh(const MeshPtr& mesh, const MeshPtr& slice, int row);

  Wrong wrong_;
  int objects_ = 0;
};

/// One axis, or several combined: each line is the sequence of places along the axis.
struct AxisTable {
  std::string name;
  std::vector<Ints> lines;
  Ints line_of, index_of;  // indexed by the place in the root's list
  int size() const { return lines.empty() ? 1 : static_cast<int>(lines[0].size()); }
};
AxisTable axis_of_lines(std::string name, std::vector<Ints> lines, std::size_t places);
AxisTable axis_table(const Mesh& mesh, std::size_t axis);
/// The axis whose lines are shifted copies of the first one and cover all `places`.
AxisTable moved_along(std::string name, const Ints& offsets, std::size_t places);
/// Sorts lists of places into the order in which rows and groups are numbered: by their first
/// places, in the order of `base` if that is a layout of the root's places, otherwise in the root's
/// order.
void put_in_order(const Mesh& base, std::vector<Ints>& lists);
/// A table of all places of `base` with these axes; empty if the axes are not independent.
std::optional<std::vector<Ints>> join(const Mesh& base, const std::vector<AxisTable>& axes);
/// Whether `values` (of index 0..n-1) are the sum of one flat layout for each part of the index.
bool splits_into_layouts(const Ints& values, const Ints& part_sizes);

}  // namespace meshard::model
