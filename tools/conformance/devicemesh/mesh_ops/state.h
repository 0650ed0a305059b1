// What a program of mesh_ops.json has made so far, and what of it has no place in our meshes.
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

/// A mesh, and what the reference keeps beside one.
struct MeshEntry {
  Mesh mesh;
  /// False: the reference's mesh has no names; ours has placeholders (`_0`, `_1`).
  bool named = true;
  /// False: made without groups. Ours always have them; a question for them is an error then.
  bool has_groups = true;
  /// True: groups keep the order of the mesh in the reference. Ours always do.
  bool preserves_order = false;
  std::string device = "cpu";

  /// The reference's equality: ours, and what it keeps beside.
  friend bool operator==(const MeshEntry& a, const MeshEntry& b) {
    return a.mesh == b.mesh && a.beside() == b.beside();
  }
  /// Equal for equal entries.
  std::size_t hash() const { return mesh.hash() ^ std::hash<std::string>()(beside()); }

 private:
  std::string beside() const {
    return device + (named ? " named" : "") + (preserves_order ? " in order" : "");
  }
};

/// The meshes that have a name in the program, in order.
class Handles {
 public:
  struct Handle {
    std::string name;
    MeshEntry entry;
  };
  void add(std::string name, MeshEntry entry);
  /// None if no operation has made it.
  const MeshEntry* find(const std::string& name) const;
  const std::deque<Handle>& all() const { return all_; }
  /// The first handle of this very mesh, or null.
  Json name_of(const Mesh& mesh) const;

 private:
  std::deque<Handle> all_;
};

/// Names for groups, as the golden file gives them: where a group was first reported, apart for
/// each rank.
class GroupIds {
 public:
  /// The name under which `rank` has seen this very group; `where` if it has not.
  std::string id(std::int64_t rank, const DeviceGroup& group, const std::string& where);

 private:
  struct Seen {
    DeviceGroup group;
    std::string name;
  };
  std::map<std::int64_t, std::vector<Seen>> by_rank_;
};

/// The whole state of a running program.
struct ProgramState {
  std::int64_t world_size = 1;
  std::vector<std::int64_t> observers;
  Handles handles;
  GroupIds group_ids;
};

}  // namespace meshard::conformance
