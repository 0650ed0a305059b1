// The meshes of one program: the numbering of its logical devices 0..n-1, and the name of each
// mesh. Device ids play no role here; runtime/internal/device_assignment.h maps the numbers to
// them.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The meshes of a program, in order of first use. The first one numbers the logical devices:
/// logical device i is its device at position i.
///
/// Inside the program, all meshes use this device order: XLA's partitioner computes wrong values if
/// orders are mixed (in 13 of 300 gradients of products whose operands are on meshes with two
/// orders). Values over a mesh with another order are converted where they enter and leave the
/// program. Inside it, `x` on mesh_1 is written as `x` on a mesh that has the axes of mesh_1 and
/// the common device order.
class ProgramMeshes {
 public:
  /// Without a mesh: the program is for one device.
  ProgramMeshes() = default;
  /// Collects the meshes of all leaves, marks and manual axes of a graph and of the bodies of its
  /// nodes.
  /// @error invalid argument if two meshes have different devices; names both and where they are
  /// used.
  /// @param calls_host the program calls functions of this process, in manual regions over all axes
  /// of the first mesh
  explicit ProgramMeshes(const Graph& graph, bool calls_host = false);

  /// The mesh that numbers the devices; empty for a program on one device without a mesh.
  const std::optional<Mesh>& numbering() const { return numbering_; }
  /// All meshes, beginning with the one that numbers the devices.
  std::vector<Mesh> all() const;
  /// A sharding inside the program: `<@mesh, [{"data"}, {}]>`; empty if it has only one device.
  std::string sharding_text(const Sharding& sharding) const;
  /// The shardings of several values: `#sdy.sharding_per_value<[...]>`.
  std::string shardings_text(const std::vector<Sharding>& shardings) const;
  /// A sharding at the program's boundary: the same in the device order of its own mesh.
  std::string border_text(const Sharding& sharding) const;
  /// The name of the mesh that stands for `mesh` inside the program: with its axes, and the common
  /// device order.
  /// @pre the program has the mesh
  const std::string& name_inside(const Mesh& mesh) const;
  /// Whether the devices of `mesh` have the common order. @pre the program has the mesh
  bool has_common_order(const Mesh& mesh) const;
  /// The mesh that numbers the devices for `mesh` inside the program.
  /// @pre the program has a mesh
  const Mesh& numbering_inside(const Mesh& mesh) const;
  /// True if a sub-axis splits dimension d of a value at the program's boundary: a sub-axis of the
  /// sharding itself, or an axis that becomes a sub-axis when the compiler rewrites the sharding in
  /// terms of the first mesh ("a" of 4x2 is {"x", "y":(1)2} of 2x4).
  /// @pre d < sharding.rank(); the graph has the sharding's mesh
  bool is_split_by_sub_axis(const Sharding& sharding, std::size_t d) const;
  bool has_sub_axis(const Sharding& sharding) const;
  /// False if a sub-axis of the sharding does not divide the axes of the module's first mesh, so
  /// that the compiler cannot rewrite it in terms of that mesh: "z":(1)2 of 6 beside a
  /// first mesh of 3x2.
  /// @pre the graph has the sharding's mesh
  bool can_express(const Sharding& sharding) const;
  /// The symbol and `sdy.mesh` body of each mesh; empty if the program has only one device.
  ///
  /// The compiler rewrites every sharding in terms of the first mesh. It terminates the process if
  /// a manual axis becomes a part of an axis of that mesh, and produces incorrect shardings for a
  /// part of an axis that the axes of that mesh do not divide into. Where this could happen, the
  /// first mesh is `@common_axes`, which has the cuts of all meshes as far as they are compatible;
  /// the cuts of such axes take precedence.
  std::vector<std::pair<std::string, std::string>> definitions() const;

 private:
  struct Named;
  void add(const Mesh& mesh, SourceLocation where);
  void add(const Sharding& sharding, SourceLocation where);
  const Named& named(const Mesh& mesh) const;
  void collect(const Graph& graph);
  void collect_nodes(const Graph& graph);
  void find_first_cuts();
  struct Named {
    Mesh mesh;
    std::string name;
    std::string inside;   // the name of the mesh with these axes in the common device order
    Mesh numbering;       // the mesh that numbers the devices for it inside
    bool manual = false;  // true if some of its axes are manual
    std::set<std::int64_t> parts{};  // the cuts of sub-axes that shardings use
  };
  std::optional<Mesh> numbering_;
  SourceLocation first_;
  std::vector<Named> meshes_;
  std::set<std::int64_t> first_cuts_;  // where the axes of the module's first mesh begin and end
};

/// The mesh that the module contains for a mesh: Shardy cannot represent a slice.
Mesh printed_mesh(const Mesh& mesh);

/// The error of an `op` that needs values on two meshes with different devices. Each mesh is used
/// at the line that follows it.
Error two_device_sets(std::string_view op, const Mesh& first, SourceLocation first_where,
                      const Mesh& second, SourceLocation second_where, SourceLocation where);

}  // namespace meshard
