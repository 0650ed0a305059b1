// Looks things up in a recorded program: which axis of which mesh an operation is about.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/conformance/devicemesh/rules.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// Dimension `dim` of the mesh that operation `op` has made.
struct RecordedAxis {
  std::size_t op;
  std::size_t dim;
};

/// The recorded side of a case. @pre outlived by `test`
class RecordedFacts {
 public:
  explicit RecordedFacts(const Json& test)
      : ops_(test.at("input").at("ops")), results_(test.at("expect")) {}

  /// What operation `op` gave on `rank` and on all others that got so far; null if nothing.
  Json common(std::size_t op, const std::string& rank) const;
  /// The axis that get_group, local_rank and all_submeshes ask for; none if its mesh has no
  /// recorded facts.
  std::optional<RecordedAxis> axis_of_query(std::size_t op) const;
  /// Dimension k of the mesh that an operation has made, or that all_groups asks.
  std::optional<RecordedAxis> axis_of_mesh(std::size_t op, std::size_t k) const;
  /// The root, rank map and layout of an axis as `rank` sees them; none if its root has no handle.
  std::optional<GroupSighting> sighting(RecordedAxis axis, const std::string& rank) const;
  /// Whether the axes that an unflatten made are not the function of the axis it took
  /// (exact-composition).
  bool composed_wrongly(std::size_t op) const;

 private:
  /// The operation before `op` that has made a handle.
  std::optional<std::size_t> maker(const Json& handle, std::size_t op) const;
  /// The facts of the mesh that an operation has made, on any rank.
  Json mesh_facts(std::size_t op) const;
  /// The operation that has made the root of the mesh of an operation.
  std::optional<std::size_t> root_of(std::size_t op) const;

  const Json& ops_;
  const Json& results_;
};

}  // namespace meshard::conformance
