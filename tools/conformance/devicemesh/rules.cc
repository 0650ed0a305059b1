#include "tools/conformance/devicemesh/rules.h"

#include <algorithm>
#include <map>

#include "meshard/base/cat.h"
#include "meshard/layout/algebra.h"

namespace meshard::conformance {
namespace {

/// Equivalence classes of names (union-find); initially, every name is in its own class.
class Classes {
 public:
  std::string of(const std::string& name) {
    std::string next = next_.try_emplace(name, name).first->second;
    return next == name ? name : next_[name] = of(next);
  }
  void merge(const std::string& a, const std::string& b) { next_[of(a)] = of(b); }

 private:
  std::map<std::string, std::string> next_;
};

/// The recorded name of a group, for its rank. The default group is separate for each axis.
std::string recorded_name(const GroupSighting& sighting) {
  if (sighting.recorded != "world") return cat(sighting.rank, "/", sighting.recorded);
  return cat(sighting.rank, "/world/", sighting.axis);
}

std::string described(const GroupSighting& sighting) {
  return cat("rank ", sighting.rank, ", axis ", sighting.axis, " of ", sighting.root, ": ours ",
             sighting.ours, ", recorded ", sighting.recorded);
}

}  // namespace

bool slice_any_order(const nlohmann::json& recorded_error) {
  return recorded_error.at("code") == "slice_order";
}

bool outside_is_empty(const nlohmann::json& recorded_error, const nlohmann::json& our_view) {
  bool in_no_row = recorded_error.at("code") == "rank_not_in_sliced_mesh";
  if (!in_no_row && recorded_error.at("code") != "index_out_of_range") return false;
  auto says_nothing = [&](const auto& fact) {
    bool may_be_seen = fact.key() == "mesh" && !in_no_row;
    return may_be_seen || fact.value().is_null() || fact.value().empty();
  };
  auto facts = our_view.items();
  return std::all_of(facts.begin(), facts.end(), says_nothing);
}

bool group_in_mesh_order(std::span<const std::int64_t> ours,
                         std::span<const std::int64_t> recorded) {
  return std::is_sorted(recorded.begin(), recorded.end()) &&
         std::is_permutation(ours.begin(), ours.end(), recorded.begin(), recorded.end());
}

std::string one_group_per_axis(std::span<const GroupSighting> sightings) {
  Classes classes;
  std::map<std::string, std::string> by_axis;  // rank, rank map and axis -> a recorded name
  for (const GroupSighting& each : sightings) {
    std::string key = cat(each.rank, "/", each.rank_map, "/", each.axis);
    classes.merge(recorded_name(each), by_axis.try_emplace(key, recorded_name(each)).first->second);
  }
  std::map<std::string, const GroupSighting*> by_ours, by_class;  // within a root, for a rank
  for (const GroupSighting& each : sightings) {
    std::string scope = cat(each.root, "/", each.rank, "/");
    std::string merged = classes.of(recorded_name(each));
    const GroupSighting* first = by_ours.try_emplace(scope + each.ours, &each).first->second;
    if (classes.of(recorded_name(*first)) != merged)
      return cat("one group for two: ", described(*first), "; ", described(each));
    first = by_class.try_emplace(scope + merged, &each).first->second;
    if (first->ours != each.ours)
      return cat("two groups for one: ", described(*first), "; ", described(each));
  }
  return {};
}

bool exact_composition(const Layout& left, const Layout& right,
                       std::span<const std::int64_t> recorded) {
  if (std::ssize(recorded) < right.size()) return true;
  Layout outer = coalesce(left);
  for (std::int64_t i = 0; i < right.size(); ++i)
    if (recorded[static_cast<std::size_t>(i)] != outer(right(i))) return true;
  return false;
}

bool quirk(const nlohmann::json& tags) {
  return std::find(tags.begin(), tags.end(), "quirk") != tags.end();
}

}  // namespace meshard::conformance
