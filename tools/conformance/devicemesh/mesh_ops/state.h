// The state of a program of mesh_ops.json, including properties that our meshes do not have.
#pragma once
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "meshard/mesh/device_groups.h"
#include "meshard/mesh/mesh.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// A mesh, and additional properties that the reference stores.
struct MeshEntry {
  Mesh mesh;
  /// False: the reference's mesh has no names. Ours has placeholders (`_0`, `_1`).
  bool named = true;
  /// False: made without groups, so that a query for groups is an error. Ours always have groups.
  bool has_groups = true;
  /// True: the reference keeps groups in mesh order. Ours always do.
  bool preserves_order = false;
  std::string device = "cpu";

  /// The reference's equality: our equality, and that of the additional properties.
  friend bool operator==(const MeshEntry& a, const MeshEntry& b) {
    return a.mesh == b.mesh && a.beside() == b.beside();
  }
  /// Equal entries have equal hashes.
  std::size_t hash() const { return mesh.hash() ^ std::hash<std::string>()(beside()); }

 private:
  std::string beside() const {
    return device + (named ? " named" : "") + (preserves_order ? " in order" : "");
  }
};

/// The meshes with a name in the program, in order.
class Handles {
 public:
  struct Handle {
    std::string name;
    MeshEntry entry;
  };
  void add(std::string name, MeshEntry entry);
  /// Null if no operation has made it.
  const MeshEntry* find(const std::string& name) const;
  const std::deque<Handle>& all() const { return all_; }
  /// The first handle of the same mesh object, or null.
  Json name_of(const Mesh& mesh) const;

 private:
  std::deque<Handle> all_;
};

/// Names of groups in the golden file's form: where each rank first saw the group.
class GroupIds {
 public:
  /// The name under which `rank` has first seen the same group; `where` if it has not seen it
  /// before.
  std::string id(std::int64_t rank, const DeviceGroup& group, const std::string& where);

 private:
  struct Seen {
    DeviceGroup group;
    std::string name;
  };
  std::map<std::int64_t, std::vector<Seen>> by_rank_;
};

/// The state of a running program.
struct ProgramState {
  std::int64_t world_size = 1;
  std::vector<std::int64_t> observers;
  Handles handles;
  GroupIds group_ids;
};

}  // namespace meshard::conformance
