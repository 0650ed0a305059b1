// Tested in meshard/plan/search_test.cc.
#include <algorithm>
#include <limits>

#include "meshard/base/cat.h"
#include "meshard/base/json_fields.h"
#include "meshard/explain/byte_text.h"
#include "meshard/plan/search.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

// What front() minimizes besides memory.
std::string speed_text(const PlanVerdict& verdict) {
  return verdict.seconds > 0 ? seconds_text(verdict.seconds)
                             : cat(byte_text(verdict.collective_bytes), " in collectives");
}

void write_planned(JsonWriter& json, const PlannedCandidate& one,
                   const std::vector<FreeValue>& values, bool is_on_front) {
  json.begin_object().member("as_given", one.as_given).member("on_front", is_on_front);
  json.key("axes").begin_object();
  for (const MeshAxis& axis : one.candidate.axes) json.member(axis.name, axis.size);
  json.end_object().key("specs").begin_array();
  for (std::size_t v = 0; v < one.candidate.specs.size() && v < values.size(); ++v) {
    json.begin_object().member("name", values[v].name);
    json.member("spec", one.candidate.specs[v].to_string()).end_object();
  }
  json.end_array();
  write_json_members(json, one.verdict);
  json.key("estimate");
  write_json(json, one.estimate);
  json.end_object();
}

}  // namespace

std::string verdict_text(const PlanVerdict& verdict) {
  if (verdict.outcome == PlanOutcome::kRefused) return cat("refused: ", verdict.problem);
  std::string text(to_string(verdict.outcome));
  if (verdict.memory > 0) append(text, ", ", byte_text(verdict.memory));
  if (verdict.capacity > 0) append(text, " of ", byte_text(verdict.capacity));
  if (verdict.seconds > 0) append(text, ", ", seconds_text(verdict.seconds));
  if (verdict.basis == TimeBasis::kSchedule)
    append(text, " by the schedule (", seconds_text(verdict.exposed_seconds),
           " exposed communication, ", seconds_text(verdict.hidden_seconds), " hidden)");
  if (verdict.basis == TimeBasis::kRoofline) append(text, " by the roofline");
  if (verdict.return_seconds > 0)
    append(text, " with ", seconds_text(verdict.return_seconds),
           " to reshard results for the next run");
  if (verdict.outcome == PlanOutcome::kFits || verdict.memory > 0)
    append(text, ", ", byte_text(verdict.collective_bytes), " in collectives");
  return text;
}

std::string title_of(const PlannedCandidate& planned, const std::vector<std::string>& names) {
  return cat(planned.as_given ? "as given: " : "", planned.candidate.to_string(names));
}

const PlannedCandidate* PlanResult::given() const {
  for (const PlannedCandidate& one : ranking)
    if (one.as_given) return &one;
  return nullptr;
}

bool PlanResult::given_is_best() const {
  const PlannedCandidate* own = given();
  return own && own->verdict.outcome == PlanOutcome::kFits &&
         !better(ranking.front().verdict, own->verdict);
}

std::vector<std::size_t> PlanResult::front() const {
  std::vector<std::size_t> found;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ranking.size(); ++i) {
    const PlanVerdict& verdict = ranking[i].verdict;
    if (verdict.outcome != PlanOutcome::kFits) break;
    if (!found.empty() && verdict.memory >= least) continue;
    found.push_back(i);
    least = verdict.memory;
  }
  return found;
}

std::string PlanResult::to_string(std::size_t most) const {
  std::string out =
      cat(candidates, " candidates: ", compiled, " compiled, ", resumed, " read from the journal, ",
          ruled_out, " ruled out by the bytes of their arguments");
  if (repeated > 0) append(out, ", ", repeated, " equal to others but for the names of axes");
  std::size_t left = candidates - compiled - resumed - ruled_out - repeated;
  if (left > 0) append(out, ", ", left, " not tried");
  append(out, "\n");
  if (!ended_by.empty()) append(out, "stopped by ", ended_by, "\n");
  if (!exhaustive && ended_by.empty()) append(out, "not all combinations were considered\n");
  if (!anything_fits()) append(out, "nothing fits\n");
  if (const PlannedCandidate* own = given())
    append(out, title_of(*own, names), "\n   ", verdict_text(own->verdict), "\n");
  if (given_is_best()) append(out, "nothing better than the given program was found\n");
  for (std::size_t i = 0; i < ranking.size() && i < most; ++i)
    append(out, i + 1, ". ", title_of(ranking[i], names), "\n   ", verdict_text(ranking[i].verdict),
           "\n");
  std::vector<std::size_t> least = front();
  if (least.size() < 2 || most == 0) return out;
  append(out, "time and memory: the fastest candidates that need so little memory\n");
  for (std::size_t i : least)
    append(out, "   ", byte_text(ranking[i].verdict.memory), ", ", speed_text(ranking[i].verdict),
           ": ", i + 1, ". ", title_of(ranking[i], names), "\n");
  return out;
}

std::string to_json(const PlanResult& result, const std::vector<FreeValue>& values,
                    std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object().member("schema", "meshard.plan").member("version", 1);
  json.member("considered", result.candidates).member("ruled_out", result.ruled_out);
  json.member("repeated", result.repeated);
  json.member("compiled", result.compiled).member("resumed", result.resumed);
  json.member("exhaustive", result.exhaustive).member("ended_by", result.ended_by);
  json.member("anything_fits", result.anything_fits());
  json.member("given_is_best", result.given_is_best());
  json.key("candidates").begin_array();
  std::vector<std::size_t> front = result.front();
  for (std::size_t i = 0; i < result.ranking.size(); ++i)
    write_planned(json, result.ranking[i], values, std::ranges::find(front, i) != front.end());
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace meshard
