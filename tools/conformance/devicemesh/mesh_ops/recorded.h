// Looks up which axis of which mesh an operation of a recorded program refers to.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/conformance/devicemesh/rules.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// Dimension `dim` of the mesh that operation `op` made.
struct RecordedAxis {
  std::size_t op;
  std::size_t dim;
};

/// The recorded facts of a case. @pre outlived by `test`
class RecordedFacts {
 public:
  explicit RecordedFacts(const Json& test)
      : ops_(test.at("input").at("ops")), results_(test.at("expect")) {}

  /// The result of operation `op` on `rank` and on all others that ran it; null if there is none.
  Json common(std::size_t op, const std::string& rank) const;
  /// The axis that get_group, local_rank and all_submeshes refer to; none if its mesh has no
  /// recorded facts.
  std::optional<RecordedAxis> axis_of_query(std::size_t op) const;
  /// Dimension k of the mesh that an operation made, or that all_groups queries.
  std::optional<RecordedAxis> axis_of_mesh(std::size_t op, std::size_t k) const;
  /// The root, rank map and layout of an axis on `rank`; none if its root has no handle.
  std::optional<GroupSighting> sighting(RecordedAxis axis, const std::string& rank) const;
  /// Whether the axes of an unflatten are a wrong composition of the axis it split
  /// (exact-composition).
  bool composed_wrongly(std::size_t op) const;

 private:
  /// The last operation before `op` that made a handle.
  std::optional<std::size_t> maker(const Json& handle, std::size_t op) const;
  /// The facts of the mesh that an operation made, on any rank.
  Json mesh_facts(std::size_t op) const;
  /// The operation that made the root of an operation's mesh.
  std::optional<std::size_t> root_of(std::size_t op) const;

  const Json& ops_;
  const Json& results_;
};

}  // namespace meshard::conformance
