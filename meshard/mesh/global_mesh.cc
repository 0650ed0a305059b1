#include "meshard/mesh/global_mesh.h"

#include <mutex>

#include "meshard/base/threads.h"

namespace meshard {
namespace {

struct ProcessMesh {
  std::mutex mutex;
  std::optional<Mesh> mesh;
};

ProcessMesh& process_mesh() {
  static auto* mesh = new ProcessMesh;  // leaked: destructors of static objects may use it
  return *mesh;
}

struct Scopes {
  std::vector<Mesh> meshes;
};

std::vector<Mesh>& scopes_of_this_thread() { return internal::thread_instance<Scopes>().meshes; }

}  // namespace

std::optional<Mesh> global_mesh() {
  if (const std::vector<Mesh>& scopes = scopes_of_this_thread(); !scopes.empty())
    return scopes.back();
  std::lock_guard lock(process_mesh().mutex);
  return process_mesh().mesh;
}

Mesh require_global_mesh(SourceLocation where) {
  if (std::optional<Mesh> mesh = global_mesh()) return *std::move(mesh);
  throw Error(ErrorCode::kFailedPrecondition,
              "[mesh] no mesh is given, and no global mesh is set; call set_global_mesh or open a "
              "MeshScope first",
              where);
}

void set_global_mesh(std::optional<Mesh> mesh) {
  std::lock_guard lock(process_mesh().mutex);
  process_mesh().mesh.swap(mesh);
}

MeshScope::MeshScope(Mesh mesh) { scopes_of_this_thread().push_back(std::move(mesh)); }
MeshScope::~MeshScope() { scopes_of_this_thread().pop_back(); }

}  // namespace meshard
