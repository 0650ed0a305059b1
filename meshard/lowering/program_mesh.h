// The meshes of one program: which numbering its logical devices have, and what each mesh is
// called.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The meshes of a program, in the order they are met. The first gives the logical devices their
/// numbers: logical device i is the first mesh's device at position i.
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
  /// `<@mesh, [{"data"}, {}]>`, or empty if the program has one device only.
  std::string sharding_text(const Sharding& sharding) const;
  /// Symbol and `sdy.mesh` body of each mesh; empty if the program has one device only.
  std::vector<std::pair<std::string, std::string>> definitions() const;

 private:
  void add(const Mesh& mesh, SourceLocation where);
  void collect(const Graph& graph);
  void collect_nodes(const Graph& graph);
  struct Named {
    Mesh mesh;
    std::string name;
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
