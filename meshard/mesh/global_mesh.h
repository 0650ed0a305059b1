// The mesh that is meant where none is named.
#pragma once
#include <optional>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// The mesh of the innermost MeshScope of this thread; else the one set for the process; else none.
std::optional<Mesh> global_mesh();

/// The same. @error failed precondition: there is none.
Mesh require_global_mesh(SourceLocation where = SourceLocation::current());

/// Sets the process's mesh, or with nullopt takes it away. All threads see it at once, except
/// inside a MeshScope of theirs.
void set_global_mesh(std::optional<Mesh> mesh);

/// While it lives, its mesh is this thread's global mesh; other threads do not see it. Scopes nest.
/// @pre destroyed by the thread that made it, innermost first, as a local variable is
class MeshScope {
 public:
  explicit MeshScope(Mesh mesh);
  ~MeshScope();
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;
};

}  // namespace meshard
