#include "tools/conformance/txla/scenario/judge.h"

#include <set>

#include "meshard/base/cat.h"
#include "tools/conformance/txla/rules.h"
#include "tools/conformance/txla/scenario/numbers.h"
#include "tools/conformance/txla/scenario/same_shards.h"
#include "tools/conformance/txla/scenario/standing.h"
#include "tools/conformance/txla/scenario/transfers.h"

namespace meshard::conformance {
namespace {

/// Compares the steps; stops at the first difference that no rule covers.
class StepsJudge {
 public:
  Verdict judge(const Json& steps, const Json& recorded, const Json& ours) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (!recorded.at(i).value("matches_numpy", true)) wrong_.insert(steps[i].at("t"));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step_ = &steps[i];
      std::string difference = judge_step(recorded.at(i), ours.at(i));
      if (!difference.empty())
        return Verdict::failed(
            cat("step ", i, " (", step_->at("op").get<std::string>(), "): ", difference));
    }
    if (transfers_.are_fewer()) rules_.insert(Rule::kFewerTransfers);
    return {Verdict::Kind::kPassed, {rules_.begin(), rules_.end()}, {}};
  }

 private:
  std::string judge_step(const Json& recorded, const Json& ours) {
    bool refused = recorded.at("ok") == false, failed = ours.at("ok") == false;
    if (failed && !refused) return shown_error(ours);
    std::string difference = failed    ? judge_error(recorded, ours)
                             : refused ? judge_refused(recorded, ours)
                                       : judge_results(recorded, ours);
    if (!difference.empty()) return difference;
    Standings before = standings_;
    if (!failed) standings_.after(*step_, rank_in(ours), refused && !lost_);
    if (lost_) standings_.forget();
    difference = judge_states(recorded.at("state"), ours.at("state"));
    return difference.empty() ? transfers_.after(*step_, recorded, ours, before) : difference;
  }

  static std::string shown_error(const Json& ours) {
    return cat("ours is an error, the recorded one is not: ",
               ours.at("error").at("message").get<std::string>());
  }

  std::string judge_error(const Json& recorded, const Json& ours) {
    const Json& category = recorded.at("error").at("category");
    if (category == "other" || no_abort(recorded.at("error"), {})) return {};
    if (ours.at("error").at("category") == category) return {};
    return cat("ours fails with ", ours.at("error").dump(), ", recorded ", category.dump());
  }

  /// The reference reports an error where we return a result.
  std::string judge_refused(const Json& recorded, const Json& ours) {
    const Json& error = recorded.at("error");
    const std::string& op = step_->at("op").get_ref<const std::string&>();
    if (step_->contains("spec") && step_->contains("t")) {
      std::size_t rank = rank_in(ours);
      const Json& state = ours.at("state").at(step_->at("t").get<std::string>());
      if (short_spec(error, step_->at("spec").size(), rank)) return pass(Rule::kShortSpec);
      if (reshard_on_remark(error, standings_.asked_by(*step_, rank), state))
        return pass(Rule::kReshardOnRemark);
    }
    if (no_abort(error, op)) {
      lost_ = true;
      return pass(Rule::kNoAbort);
    }
    return cat("ours does it, the reference refuses: ", error.dump());
  }

  std::string pass(Rule rule) {
    rules_.insert(rule);
    return {};
  }

  std::string judge_results(const Json& recorded, const Json& ours) {
    if (recorded.contains("values")) {
      if (std::string difference = judge_values(recorded, ours); !difference.empty())
        return cat("values", difference);
    }
    if (recorded.contains("shards"))
      if (std::string difference = judge_shards(recorded, ours); !difference.empty())
        return difference;
    for (const char* field : {"shape", "spec", "returns_same", "can_apply"})
      if (recorded.contains(field) && ours.value(field, Json()) != recorded.at(field))
        return cat(field, ": ours ", ours.value(field, Json()).dump(), ", recorded ",
                   recorded.at(field).dump());
    return {};
  }

  std::string judge_values(const Json& recorded, const Json& ours) {
    if (!ours.contains("values")) return ": nothing was read";
    return judge_elements(doubles_of(ours.at("values")), doubles_of(recorded.at("values")));
  }

  std::string judge_shards(const Json& recorded, const Json& ours) {
    std::string name = step_->at("t");
    const Json& state = recorded.at("state").at(name);
    const Json& our_state = ours.at("state").at(name);
    if (our_state.at("where") == "host" && ours.at("shards").empty())
      return pass(Rule::kFewerTransfers);                       // listing shards transfers nothing
    bool small = recorded.at("shards").at(0).contains("data");  // large shards have no data
    std::string difference;
    if (small)
      difference = judge_elements(assembled(ours.at("shards"), state.at("shape")),
                                  assembled(recorded.at("shards"), state.at("shape")));
    if (!difference.empty()) return cat("shards", difference);
    if (our_state.at("data_sharding") != state.at("data_sharding")) return {};  // in judge_state
    ShardsComparison compared = compare_shards(ours.at("shards"), recorded.at("shards"));
    return compared.in_mesh_order ? pass(Rule::kMeshOrderReplicas) : compared.difference;
  }

  /// If the reference reads wrong elements of a tensor, compares with the data sent from the host.
  std::string judge_elements(const std::vector<double>& ours, const std::vector<double>& recorded) {
    std::string name = step_->at("t");
    if (!wrong_.contains(name)) return first_difference_of(ours, recorded);
    const std::vector<double> sent = standings_.of(name).data;
    std::string difference = sent.empty() ? std::string() : first_difference_of(ours, sent);
    return difference.empty() ? pass(Rule::kNoAbort) : difference;
  }

  std::string judge_states(const Json& recorded, const Json& ours) {
    for (const auto& [name, state] : recorded.items()) {
      if (!ours.contains(name)) return cat(name, " does not exist");
      if (std::string difference = judge_state(name, state, ours.at(name)); !difference.empty())
        return cat(name, ".", difference);
    }
    return {};
  }

  std::string judge_state(const std::string& name, const Json& recorded, const Json& ours) {
    if (std::string difference = differing(recorded, ours, {"shape"}); !difference.empty())
      return difference;
    // If the reference has a value in both places, it does not record which one is used.
    bool in_both = recorded.at("where").get<std::string>().find('+') != std::string::npos;
    if (lost_ || in_both) return {};
    Known known = standings_.of(name);
    if (known.standing == Standing::kChosen) return judge_chosen(recorded, ours);
    if (known.standing == Standing::kResharded) {
      if (ours.at("spec") == known.asked) return {};
      return cat("spec: ours ", ours.at("spec").dump(), ", marked ", known.asked);
    }
    if (known.standing == Standing::kHost)
      return differing(recorded, ours, {"where", "spec", "type", "data_sharding", "num_shards"});
    if (ours.at("spec") == known.asked && is_uneven(recorded, ours))
      return note_uneven(recorded, ours);
    if (std::string difference = differing(recorded, ours, {"spec", "type"}); !difference.empty())
      return difference;
    // A value that the reference has only recorded may already be computed in ours.
    bool early = recorded.at("where") == "ir" && ours.at("where") == "device";
    if (early) return {};
    if (recorded.at("data_sharding").is_null()) return differing(recorded, ours, {"where"});
    return differing(recorded, ours, {"where", "data_sharding", "num_shards"});
  }

  /// A pending result has no sharding until the compiler chooses one; a local value stays manual.
  std::string judge_chosen(const Json& recorded, const Json& ours) {
    bool pending = recorded.at("spec") == "" && ours.at("where") == "ir";
    if (pending && ours.at("type") != "MANUAL") return differing(recorded, ours, {"spec", "type"});
    return note_uneven(recorded, ours);
  }

  static bool is_uneven(const Json& recorded, const Json& ours) {
    return uneven_kept(recorded.at("spec"), ours.at("spec"), ours.at("shape"));
  }

  std::string note_uneven(const Json& recorded, const Json& ours) {
    if (!is_uneven(recorded, ours)) return {};
    transfers_.lie_otherwise();
    return pass(Rule::kUnevenKept);
  }

  static std::string differing(const Json& recorded, const Json& ours,
                               std::initializer_list<const char*> fields) {
    for (const char* field : fields)
      if (ours.at(field) != recorded.at(field))
        return cat(field, ": ours ", ours.at(field).dump(), ", recorded ",
                   recorded.at(field).dump());
    return {};
  }

  /// The rank of the tensor that the step names.
  std::size_t rank_in(const Json& result) const {
    for (const char* field : {"t", "out"})
      if (step_->contains(field))
        if (const Json& states = result.at("state"); states.contains(step_->at(field)))
          return states.at(step_->at(field).get<std::string>()).at("shape").size();
    return 0;
  }

  const Json* step_ = nullptr;
  Standings standings_;
  TransfersJudge transfers_;
  std::set<Rule> rules_;
  std::set<std::string> wrong_;  // tensors of which the reference reads wrong elements
  bool lost_ = false;            // the reference lost values: later steps are not comparable
};

}  // namespace

Verdict judge_steps(const Json& steps, const Json& recorded, const Json& ours) {
  return StepsJudge().judge(steps, recorded, ours);
}

}  // namespace meshard::conformance
