// The rules for answers recorded from PyTorch's DeviceMesh.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "meshard/layout/layout.h"
#include "tools/conformance/rules.h"

namespace meshard::conformance {

/// slice-any-order: a slice may list its axes in any order. The recorded answer is the error that
/// the strides are not in the root's order; ours is a mesh.
bool slice_any_order(const nlohmann::json& recorded_error);

/// outside-is-empty: a rank outside a mesh gets an empty answer, where the reference raises an
/// error.
/// @param recorded_error of this rank alone: it is in none of a slice's rows, or has no group
/// @param our_view what the rank observes: no coordinate, group or position; the mesh itself only
/// if it has one row
bool outside_is_empty(const nlohmann::json& recorded_error, const nlohmann::json& our_view);

/// group-in-mesh-order: the ranks of a group are in mesh order, where the reference sorts them.
/// Ours must be a permutation of the recorded, ascending ranks, and a local rank must be the
/// position in our list.
bool group_in_mesh_order(std::span<const std::int64_t> ours,
                         std::span<const std::int64_t> recorded);

/// A group as observed by a rank: along which axis of which root, and under which name in both
/// answers.
struct GroupSighting {
  std::string rank;
  std::string root;      // the handle of the root
  std::string rank_map;  // of the root, as text
  std::string axis;      // the layout of the axis, as text
  std::string ours;
  std::string recorded;
};

/// one-group-per-axis: the reference makes new groups when an axis recurs (a flatten under another
/// name, every unflatten), and shares one group among all axes that span the world; we have one
/// group for each axis of a root. Recorded names are merged if they refer to the same axis of the
/// same rank map; the world's name is separate for each axis. Then, within a root, our names must
/// be equal exactly where the merged names are.
/// @return empty, or the observations that violate this
std::string one_group_per_axis(std::span<const GroupSighting> sightings);

/// exact-composition: we report an error where the recorded composition is wrong. This is decided
/// by enumeration: the recorded result differs from left(right(i)) at some i, or has fewer indices
/// than `right`. An index beyond the size of `left` continues as in coalesce(left).
/// @param recorded the values of the recorded result, in order
bool exact_composition(const Layout& left, const Layout& right,
                       std::span<const std::int64_t> recorded);

/// quirk: the case has the tag `quirk`, for recorded behavior that a better library may change.
bool quirk(const nlohmann::json& tags);

}  // namespace meshard::conformance
