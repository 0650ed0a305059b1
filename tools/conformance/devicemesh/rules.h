// The rules about answers recorded from PyTorch's DeviceMesh.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "meshard/layout/layout.h"
#include "tools/conformance/rules.h"

namespace meshard::conformance {

/// slice-any-order: a slice may name its axes in any order. The recorded answer is the error that
/// the order of strides is not the root's, and ours is a mesh.
bool slice_any_order(const nlohmann::json& recorded_error);

/// outside-is-empty: a rank outside a mesh sees an empty answer, where the reference raises an
/// error.
/// @param recorded_error of this rank alone: it is in none of a slice's rows, or has no group
/// @param our_view what the rank sees: no coordinate, no group, no place; the mesh itself only if
/// it has one row
bool outside_is_empty(const nlohmann::json& recorded_error, const nlohmann::json& our_view);

/// group-in-mesh-order: the ranks of a group stand in the order of the mesh, where the reference
/// sorts them. Ours must be a reordering of the recorded, ascending ones, and a local rank the
/// position in the own list.
bool group_in_mesh_order(std::span<const std::int64_t> ours,
                         std::span<const std::int64_t> recorded);

/// A group that a rank was shown: along which axis of which root, and under which name in both
/// answers.
struct GroupSighting {
  std::string rank;
  std::string root;      // the handle of the root
  std::string rank_map;  // of the root, as text
  std::string axis;      // the layout of the axis, as text
  std::string ours;
  std::string recorded;
};

/// one-group-per-axis: the reference makes new groups for an axis that it meets again (a flatten
/// under another name, every unflatten) and shares one group among all axes that span the world;
/// ours has one group for each axis of a root. Recorded names are merged where they stand for the
/// same axis of the same rank map, the name of the world apart for each axis. Then, within a root,
/// ours must be the same exactly where the merged ones are.
/// @return empty, or the sightings that break this
std::string one_group_per_axis(std::span<const GroupSighting> sightings);

/// exact-composition: an error where the recorded composition is wrong. Decided by listing: the
/// recorded result disagrees with left(right(i)) at some i, or has fewer indices than `right`. An
/// index beyond the size of `left` runs on as in coalesce(left).
/// @param recorded the values of the recorded result, in order
bool exact_composition(const Layout& left, const Layout& right,
                       std::span<const std::int64_t> recorded);

/// quirk: the case carries the tag `quirk`: behavior that is recorded as it is and that a better
/// library may change.
bool quirk(const nlohmann::json& tags);

}  // namespace meshard::conformance
