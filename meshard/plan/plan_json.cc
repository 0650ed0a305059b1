#include "meshard/plan/plan_json.h"

#include <algorithm>

#include "meshard/base/json_fields.h"

namespace meshard {
namespace {

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
  json.key("estimate").begin_object().member("seconds", one.estimate.seconds);
  json.member("communication", one.estimate.communication);
  json.member("least_memory", one.estimate.least_memory).end_object();
  json.end_object();
}

}  // namespace

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
    write_planned(json, result.ranking[i], values,
                  std::find(front.begin(), front.end(), i) != front.end());
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace meshard
