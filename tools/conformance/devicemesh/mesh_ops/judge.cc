#include "tools/conformance/devicemesh/mesh_ops/judge.h"

#include <algorithm>
#include <map>
#include <set>

#include "meshard/base/cat.h"
#include "tools/conformance/devicemesh/mesh_ops/recorded.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

bool contains(const Json& list, const Json& value) {
  return list.is_array() && std::find(list.begin(), list.end(), value) != list.end();
}

/// The handles that an operation uses.
std::set<std::string> used_handles(const Json& op) {
  std::set<std::string> used;
  for (const char* field : {"on", "a", "b"})
    if (op.contains(field)) used.insert(op.at(field));
  for (const Json& handle : op.value("of", Json::array())) used.insert(handle);
  for (const Json& group : op.value("groups", Json::array())) used.insert(group[0]);
  return used;
}

bool meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& name) { return b.contains(name); });
}

std::int64_t place_in(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) - list.begin();
}

class ProgramJudge {
 public:
  ProgramJudge(const Json& test, const Json& answer)
      : ops_(test.at("input").at("ops")),
        ours_(answer.at("expect")),
        recorded_(test.at("expect")),
        facts_(test),
        is_quirk_(quirk(test.at("tags"))) {
    for (const Json& rank : test.at("input").at("observe"))
      ranks_.push_back(std::to_string(rank.get<std::int64_t>()));
  }

  Verdict judge() {
    for (std::size_t i = 0; i < ops_.size(); ++i) judge_op(i);
    judge_groups();
    if (!failure_.empty() && !is_quirk_) return Verdict::failed(failure_);
    if (!failure_.empty()) rules_.insert(Rule::kQuirk);
    Verdict verdict;
    verdict.rules.assign(rules_.begin(), rules_.end());
    return verdict;
  }

 private:
  void judge_op(std::size_t i) {
    const Json& op = ops_[i];
    const Json& ours = ours_[i];
    const Json& recorded = recorded_[i];
    at_ = cat("op ", i, " ", op.at("op").get<std::string>());
    bool we_fail = ours.contains("error") || ours.contains("skipped");
    bool they_fail = recorded.contains("error") || recorded.contains("skipped");
    bool comparable = !meet(used_handles(op), only_one_has_);
    if (comparable && we_fail && they_fail) return;
    if (comparable && they_fail) judge_their_failure(i);
    if (comparable && we_fail && !they_fail) judge_our_failure(i);
    if (comparable && !we_fail && !they_fail) judge_facts(i);
    bool they_have_it = !they_fail && !fails_on_every_rank(recorded);
    if (we_fail == they_have_it && op.contains("as"))
      only_one_has_.insert(op.at("as").get<std::string>());
  }

  /// We return a result; the recorded answer is an error on every rank.
  void judge_their_failure(std::size_t i) {
    const Json& recorded = recorded_[i];
    if (!recorded.contains("error"))
      return fail(cat("ours is an answer, recorded ", recorded.dump()));
    const Json& error = recorded.at("error");
    if (ops_[i].at("op") == "slice" && slice_any_order(error))
      rules_.insert(Rule::kSliceAnyOrder);
    else if (all_are_outside(i, error))
      rules_.insert(Rule::kOutsideIsEmpty);
    else
      fail(cat("ours is an answer, recorded fails with ", error.dump()));
  }

  bool all_are_outside(std::size_t i, const Json& error) const {
    return !ranks_.empty() && ours_[i].contains("views") &&
           std::all_of(ranks_.begin(), ranks_.end(), [&](const std::string& rank) {
             return outside_is_empty(error, ours_[i].at("views").at(rank));
           });
  }

  /// We report an error; the recorded answer is a result, or an error on some ranks.
  void judge_our_failure(std::size_t i) {
    if (fails_on_every_rank(recorded_[i])) return;
    if (ops_[i].at("op") == "unflatten" && facts_.composed_wrongly(i))
      rules_.insert(Rule::kExactComposition);
    else
      fail(cat("ours fails with ", ours_[i].dump(), ", recorded ",
               shortened(recorded_[i].value("common", recorded_[i]))));
  }

  /// Whether no rank has a result, because it fails in this operation or failed in an earlier one.
  bool fails_on_every_rank(const Json& recorded) const {
    return recorded.contains("error") ||
           (!recorded.contains("views") && recorded.contains("errors_by_rank"));
  }

  void judge_facts(std::size_t i) {
    const Json& recorded = recorded_[i];
    const Json no_errors = Json::object();
    const Json& errors =
        recorded.contains("errors_by_rank") ? recorded.at("errors_by_rank") : no_errors;
    for (const std::string& rank : ranks_) {
      if (contains(recorded.value("skipped_on_ranks", Json()), std::stoll(rank))) continue;
      if (errors.contains(rank)) {
        judge_error_of_rank(i, rank, errors.at(rank));
        continue;
      }
      judge_common(i, rank);
      if (recorded.contains("views")) judge_view(i, rank);
      if (ops_[i].contains("as")) handles_of_[rank].insert(ops_[i].at("as").get<std::string>());
    }
  }

  /// A rank that failed earlier lacks the handles that it would have made, which can cause later
  /// errors.
  void judge_error_of_rank(std::size_t i, const std::string& rank, const Json& error) {
    const Json& view = ours_[i].at("views").at(rank);
    if (!outside_is_empty(error, view) && !behind_.contains(rank))
      fail(cat("rank ", rank, ": ours ", shortened(view), ", recorded fails with ", error.dump()));
    rules_.insert(Rule::kOutsideIsEmpty);
    behind_.insert(rank);
  }

  /// Compares the facts that do not depend on the rank, restricted to handles that the rank has.
  void judge_common(std::size_t i, const std::string& rank) {
    Json recorded = facts_.common(i, rank);
    Json ours = ours_[i].value("common", Json());
    for (Json* common : {&recorded, &ours}) {
      if (!common->is_object() || !common->contains("equal_to")) continue;
      common->erase("new_groups");
      Json known = Json::array();
      for (const Json& handle : common->at("equal_to"))
        if (handles_of_[rank].contains(handle.get<std::string>())) known.push_back(handle);
      (*common)["equal_to"] = known;
    }
    std::string difference = first_difference(ours, recorded);
    if (!difference.empty()) fail(cat("rank ", rank, ": ", difference));
  }

  void judge_view(std::size_t i, const std::string& rank) {
    Json recorded = recorded_[i].at("views").at(rank);
    Json ours = ours_[i].at("views").at(rank);
    if (ops_[i].at("op") == "local_rank") return judge_local_rank(i, rank, ours, recorded);
    see_groups(i, rank, ours, recorded);
    judge_order(rank, ours, recorded);
    for (const char* field : {"group_ids", "group_id", "group_ranks", "local_ranks"}) {
      if (ours.contains(field) != recorded.contains(field))
        fail(cat("rank ", rank, ": ", field, " in one of the two only"));
      ours.erase(field);
      recorded.erase(field);
    }
    std::string difference = first_difference(ours, recorded);
    if (!difference.empty()) fail(cat("rank ", rank, ": ", difference));
  }

  /// Compares the order of the ranks of each group, and the positions in it.
  void judge_order(const std::string& rank, const Json& ours, const Json& recorded) {
    if (!ours.contains("group_ranks") || !recorded.contains("group_ranks")) return;
    Json our_groups = ours.at("group_ranks"), their_groups = recorded.at("group_ranks");
    if (ours.contains("group_id")) {  // a single group, not one for each dimension
      our_groups = Json::array({our_groups});
      their_groups = Json::array({their_groups});
    }
    auto count = [](const Json& view) { return view.value("local_ranks", Json()).size(); };
    if (our_groups.size() != their_groups.size() || count(ours) != count(recorded))
      return fail(cat("rank ", rank, ": ", first_difference(ours, recorded)));
    for (std::size_t k = 0; k < our_groups.size(); ++k) {
      judge_group(rank, our_groups[k], their_groups[k]);
      if (ours.contains("local_ranks"))
        judge_place(rank, {our_groups[k], ours.at("local_ranks").at(k)},
                    {their_groups[k], recorded.at("local_ranks").at(k)});
    }
  }

  void judge_group(const std::string& rank, const std::vector<std::int64_t>& ours,
                   const std::vector<std::int64_t>& recorded) {
    if (ours == recorded) return;
    if (group_in_mesh_order(ours, recorded))
      rules_.insert(Rule::kGroupInMeshOrder);
    else
      fail(cat("rank ", rank, ": group_ranks: ", first_difference(ours, recorded)));
  }

  /// A group, and the position of the observing rank in it.
  struct Place {
    std::vector<std::int64_t> group;
    std::int64_t local_rank;
  };
  void judge_place(const std::string& rank, const Place& ours, const Place& recorded) {
    if (ours.local_rank == recorded.local_rank && ours.group == recorded.group) return;
    judge_group(rank, ours.group, recorded.group);
    if (ours.local_rank != place_in(ours.group, std::stoll(rank)) ||
        recorded.local_rank != place_in(recorded.group, std::stoll(rank)))
      fail(cat("rank ", rank, ": local rank: ours ", ours.local_rank, ", recorded ",
               recorded.local_rank));
  }

  void judge_local_rank(std::size_t i, const std::string& rank, const Json& ours,
                        const Json& recorded) {
    if (ours == recorded) return;
    std::optional<RecordedAxis> axis = facts_.axis_of_query(i);
    if (!axis || ours.at("value").is_null())
      return fail(cat("rank ", rank, ": ", first_difference(ours, recorded)));
    auto group = [&](const Json& answers) {
      return answers[axis->op].at("views").at(rank).at("group_ranks").at(axis->dim);
    };
    judge_place(rank, {group(ours_), ours.at("value")}, {group(recorded_), recorded.at("value")});
  }

  /// Records the group names that a view contains, for judge_groups.
  void see_groups(std::size_t i, const std::string& rank, const Json& ours, const Json& recorded) {
    auto see = [&](std::optional<RecordedAxis> axis, const Json& our_id, const Json& their_id) {
      if (!axis || !our_id.is_string() || !their_id.is_string()) return;
      if (std::optional<GroupSighting> sighting = facts_.sighting(*axis, rank)) {
        sighting->ours = our_id;
        sighting->recorded = their_id;
        sightings_.push_back(*sighting);
      }
    };
    if (ours.contains("group_id") && recorded.contains("group_id"))
      return see(facts_.axis_of_query(i), ours.at("group_id"), recorded.at("group_id"));
    if (!ours.contains("group_ids") || !recorded.contains("group_ids")) return;
    const Json& our_ids = ours.at("group_ids");
    const Json& their_ids = recorded.at("group_ids");
    if (our_ids.size() != their_ids.size())
      return fail(cat("rank ", rank, ": group_ids: ", first_difference(our_ids, their_ids)));
    for (std::size_t k = 0; k < our_ids.size(); ++k) {
      if (ops_[i].at("op") == "all_submeshes")
        see(facts_.axis_of_query(i), our_ids[k][0], their_ids[k][0]);
      else
        see(facts_.axis_of_mesh(i, k), our_ids[k], their_ids[k]);
    }
  }

  void judge_groups() {
    auto has_one_name = [](const GroupSighting& each) { return each.ours == each.recorded; };
    if (std::all_of(sightings_.begin(), sightings_.end(), has_one_name)) return;
    at_ = "groups";
    if (std::string broken = one_group_per_axis(sightings_); !broken.empty()) return fail(broken);
    rules_.insert(Rule::kOneGroupPerAxis);
  }

  void fail(const std::string& difference) {
    if (failure_.empty()) failure_ = cat(at_, ": ", difference);
  }

  const Json& ops_;
  const Json& ours_;
  const Json& recorded_;
  RecordedFacts facts_;
  bool is_quirk_;
  std::vector<std::string> ranks_;
  std::string at_;       // the current operation
  std::string failure_;  // the first failure
  std::set<Rule> rules_;
  std::set<std::string> only_one_has_;                       // handles that only one answer has
  std::set<std::string> behind_;                             // ranks with an earlier failure
  std::map<std::string, std::set<std::string>> handles_of_;  // by rank, recorded
  std::vector<GroupSighting> sightings_;
};

}  // namespace

Verdict judge_program(const Json& test, const Json& answer) {
  return ProgramJudge(test, answer).judge();
}

}  // namespace meshard::conformance
