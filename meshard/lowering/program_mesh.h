// The meshes of one program: which numbering its logical devices have, and what each mesh is
// called.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The meshes of a program, in the order they are met. The first gives the logical devices their
/// numbers: logical device i is the first mesh's device at position i.
///
/// Inside of the program all meshes have this order of devices: XLA's partitioner makes wrong
/// values where orders meet (in 13 of 300 gradients of products whose operands lie on meshes of
/// two orders). Values over a mesh in another order are put into that order where they leave the
/// program, and out of it where they enter: there `x` on mesh_1 is `x` on a mesh with the axes of
/// mesh_1 in the order of the numbers.
class ProgramMeshes {
 public:
  /// No mesh: the program is for one device.
  ProgramMeshes() = default;
  /// Collects the meshes of all leaves, marks and manual axes of a graph and of the programs inside
  /// of its nodes.
  /// @error invalid argument if two meshes have different devices, naming both and where they came
  /// from.
  explicit ProgramMeshes(const Graph& graph);

  /// Empty for a program on one device, without a mesh.
  const std::optional<Mesh>& numbering() const { return numbering_; }
  /// All of them, the one that gives the numbers first.
  std::vector<Mesh> all() const;
  /// Inside of the program: `<@mesh, [{"data"}, {}]>`, or empty if it has one device only.
  std::string sharding_text(const Sharding& sharding) const;
  /// The same where values enter and leave the program: in the order of their own mesh.
  std::string border_text(const Sharding& sharding) const;
  /// What numbers the devices for a mesh inside of the program.
  /// @pre the program has a mesh
  const Mesh& numbering_inside(const Mesh& mesh) const;
  /// True if a sub-axis splits dimension d of a value where it enters or leaves the program: one of
  /// the sharding itself, or an axis that is a sub-axis once the compiler has rewritten the
  /// sharding in terms of the first mesh ("a" of 4x2 beside a first mesh of 2x4 is "x":(1)2 and
  /// "y":(1)2).
  /// @pre d < sharding.rank(); the graph has the sharding's mesh
  bool is_split_by_sub_axis(const Sharding& sharding, std::size_t d) const;
  bool has_sub_axis(const Sharding& sharding) const;
  /// Symbol and `sdy.mesh` body of each mesh; empty if the program has one device only.
  ///
  /// The compiler rewrites every sharding in terms of the first mesh. It ends the process if a
  /// manual axis becomes part of an axis there, and writes nonsense for a part of an axis that the
  /// axes there do not divide into. Where that could happen, the first mesh is `@common_axes`,
  /// which has the cuts of all meshes, as far as they fit together, those of such axes first.
  std::vector<std::pair<std::string, std::string>> definitions() const;

 private:
  struct Named;
  void add(const Mesh& mesh, SourceLocation where);
  void add(const Sharding& sharding, SourceLocation where);
  const Named& named(const Mesh& mesh) const;
  void collect(const Graph& graph);
  void collect_nodes(const Graph& graph);
  std::optional<Mesh> common_axes() const;
  struct Named {
    Mesh mesh;
    std::string name;
    std::string inside;   // the name of the mesh with these axes in the order of the numbers
    Mesh numbering;       // what numbers the devices for it inside
    bool manual = false;  // some of its axes are
    std::set<std::int64_t> parts{};  // the cuts of parts of its axes that shardings name
  };
  std::optional<Mesh> numbering_;
  SourceLocation first_;
  std::vector<Named> meshes_;
};

/// `op` needs values on both of these meshes, which have different devices; each is used at the
/// line that follows it.
Error two_device_sets(std::string_view op, const Mesh& first, SourceLocation first_where,
                      const Mesh& second, SourceLocation second_where, SourceLocation where);

}  // namespace meshard
