// The global mesh: the mesh used where none is given.
#pragma once
#include <optional>

#include "meshard/mesh/mesh.h"

namespace meshard {

/// The mesh of this thread's innermost MeshScope, else the process's mesh, else none.
std::optional<Mesh> global_mesh();

/// The mesh that global_mesh() returns. @error failed precondition: there is no global mesh.
Mesh require_global_mesh(SourceLocation where = SourceLocation::current());

/// Sets the process's mesh; nullopt removes it. All threads see the change at once, except threads
/// inside a MeshScope.
void set_global_mesh(std::optional<Mesh> mesh);

/// Makes a mesh this thread's global mesh while the scope lives. Other threads are not affected.
/// Scopes nest.
/// @pre destroyed by the thread that made it, innermost first, like a local variable
class MeshScope {
 public:
  explicit MeshScope(Mesh mesh);
  ~MeshScope();
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;
};

}  // namespace meshard
