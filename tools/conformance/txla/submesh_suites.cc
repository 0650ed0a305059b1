// submesh_patterns.json and submesh_errors.json: scenarios on a mesh over some of the devices.
#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/sharding/tile_assignment.h"
#include "tools/conformance/suite.h"
#include "tools/conformance/txla/scenario/numbers.h"
#include "tools/conformance/txla/scenario/run.h"
#include "tools/conformance/txla/scenario/same_shards.h"
#include "tools/conformance/txla/scenario/state.h"

namespace meshard::conformance {
namespace submesh_cases {

/// The text with each device id replaced by its index in `devices`, which is ascending.
std::string normalized(const std::string& text, const std::vector<int>& devices) {
  TileAssignment tiles = TileAssignment::parse(text).value();
  for (std::int64_t& device : tiles.devices)
    device = std::lower_bound(devices.begin(), devices.end(), device) - devices.begin();
  return tiles.to_string();
}

/// The last tensor that was computed, or if none was, the last one that was changed.
std::string final_tensor(const Json& steps) {
  std::string computed, changed;
  for (const Json& step : steps) {
    if (step.at("op") == "compute") computed = step.at("out");
    if (step.at("op") == "inplace") changed = step.at("t");
  }
  return computed.empty() ? changed : computed;
}

/// The tensors that were marked, and their shardings directly afterward.
Json marked(const Json& steps, const Json& results, const std::vector<int>& devices) {
  Json all = Json::object();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].at("op") != "mark" || results[i].at("ok") == false) continue;
    const Json& name = steps[i].at("t");
    const Json& state = results[i].at("state").at(name.get<std::string>());
    all[name.get<std::string>()] = {{"normalized", normalized(state.at("spec"), devices)},
                                    {"denormalized", state.at("spec")},
                                    {"where_after_mark", state.at("where")}};
  }
  return all;
}

Json reads_by_step(const Json& results) {
  Json reads = Json::object();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].contains("values")) reads[std::to_string(i)] = results[i].at("values");
  return reads;
}

/// The first step that fails; null if none does.
Json first_error(const Json& results) {
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].at("ok") == false) {
      Json error = results[i].at("error");
      error["at_step"] = i;
      return {{"expect_error", std::move(error)}};
    }
  return {};
}

/// Reports the devices on which the last value actually is.
Json answer_to(const Json& input, const GoldenFile&) {
  const Json& steps = input.at("steps");
  Scope scope;
  Json results = run_steps(scope, steps);
  if (results.is_null()) return {};
  if (Json error = first_error(results); !error.is_null()) return error;
  std::string last = final_tensor(steps);
  Json shards = shards_of(scope.tensors.at(last));
  std::vector<int> devices;
  for (const Json& shard : shards) devices.push_back(shard.at("device"));
  Json state = state_of(scope.tensors.at(last));
  return {{"expect",
           {{"device_assignment", devices},
            {"num_partitions", devices.size()},
            {"marked", marked(steps, results, devices)},
            {"reads_by_step", reads_by_step(results)},
            {"final_tensor", last},
            {"final_shards_if_gspmd_propagates", std::move(shards)},
            {"final_spec_normalized", normalized(state.at("data_sharding"), devices)}}}};
}

std::string difference_of_reads(const Json& ours, const Json& recorded) {
  for (const auto& [step, values] : recorded.items()) {
    if (!ours.contains(step)) return cat("nothing was read at step ", step);
    std::string difference = first_difference_of(doubles_of(ours.at(step)), doubles_of(values));
    if (!difference.empty()) return cat("read at step ", step, difference);
  }
  return {};
}

/// The shape of the whole array that these shards are parts of.
Json whole_shape(const Json& shards) {
  Json shape = shards.at(0).at("shape");
  for (const Json& shard : shards)
    if (shard.at("indices") != "all")
      for (std::size_t d = 0; d < shape.size(); ++d)
        shape[d] = std::max(shape[d], shard.at("indices")[d][1]);
  return shape;
}

/// The shards must be parts of the recorded value.
std::string difference_of_parts(const Json& ours, const Json& recorded) {
  Json shape = whole_shape(ours);
  std::string difference = first_difference_of(assembled(ours, shape), assembled(recorded, shape));
  return difference.empty() ? difference : "shards" + difference;
}

/// The compiler chooses the sharding of the last value.
Verdict judge_last_value(const Json& ours, const Json& recorded) {
  const Json& shards = ours.at("final_shards_if_gspmd_propagates");
  const Json& recorded_shards = recorded.at("final_shards_if_gspmd_propagates");
  if (std::string difference = difference_of_parts(shards, recorded_shards); !difference.empty())
    return Verdict::failed(difference);
  if (ours.at("final_spec_normalized") != recorded.at("final_spec_normalized")) return {};
  ShardsComparison compared = compare_shards(shards, recorded_shards);
  if (compared.in_mesh_order) return Verdict::by(Rule::kMeshOrderReplicas);
  return compared.difference.empty() ? Verdict() : Verdict::failed(compared.difference);
}

Verdict judge_pattern(const Json& test, const Json& answer) {
  if (!answer.contains("expect")) return Verdict::failed("ours " + answer.dump());
  const Json& ours = answer.at("expect");
  const Json& recorded = test.at("expect");
  for (const char* field : {"device_assignment", "num_partitions", "marked", "final_tensor"})
    if (ours.at(field) != recorded.at(field))
      return Verdict::failed(
          cat(field, ": ours ", ours.at(field).dump(), ", recorded ", recorded.at(field).dump()));
  std::string difference =
      difference_of_reads(ours.at("reads_by_step"), recorded.at("reads_by_step"));
  return difference.empty() ? judge_last_value(ours, recorded) : Verdict::failed(difference);
}

Verdict judge_error(const Json& test, const Json& answer) {
  const Json& recorded = test.at("expect_error");
  if (!answer.contains("expect_error")) return Verdict::failed("ours is not an error");
  const Json& ours = answer.at("expect_error");
  for (const char* field : {"at_step", "category"})
    if (ours.at(field) != recorded.at(field))
      return Verdict::failed(cat("ours ", ours.dump(), ", recorded ", recorded.dump()));
  return {};
}

int devices_of(const Json& input) { return input.at("num_devices"); }

}  // namespace submesh_cases

Suite submesh_patterns_suite() {
  using namespace submesh_cases;
  return {"submesh_patterns.json", answer_to, judge_pattern, devices_of};
}
Suite submesh_errors_suite() {
  using namespace submesh_cases;
  return {"submesh_errors.json", answer_to, judge_error, devices_of};
}

}  // namespace meshard::conformance
