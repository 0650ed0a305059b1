// Tested in meshard/plan/pipeline/plan_pipeline_test.cc.
#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/json_writer.h"
#include "meshard/explain/byte_text.h"
#include "meshard/plan/pipeline/plan_pipeline.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

// The stage with the least memory to spare.
const PipelineStageReport& fullest(const PipelineReport& report) {
  return *std::max_element(
      report.stages().begin(), report.stages().end(),
      [](const auto& a, const auto& b) { return a.memory.total < b.memory.total; });
}

}  // namespace

const PlannedPipeline* PipelinePlan::given() const {
  for (const PlannedPipeline& one : ranking)
    if (one.as_given) return &one;
  return nullptr;
}

std::string PipelinePlan::reason(std::size_t index) const {
  const PlannedPipeline& one = ranking[index];
  if (!one.report) return cat("cannot run: ", one.problem);
  const PipelineReport& report = *one.report;
  const PipelineStageReport& slowest = report.stages()[static_cast<std::size_t>(report.slowest())];
  std::string text = report.duration_text(report.time());
  if (index > 0 && one.fits() && ranking[0].report->time() > 0)
    append(text, cat(" (",
                     relative_growth_text(ranking[0].report->time(), report.time()).empty()
                         ? std::string("as the first")
                         : relative_growth_text(ranking[0].report->time(), report.time()),
                     ")"));
  append(text, cat(", bubble ", growth_percent(report.bubble()), ", slowest ", slowest.name,
                   " with ", report.duration_text(slowest.busy)));
  double exposed = 0;
  for (const PipelineTransfer& each : report.transfers()) exposed = std::max(exposed, each.exposed);
  if (exposed > 0)
    append(text, cat(", transfers make it up to ", report.duration_text(exposed), " longer"));
  const PipelineStageReport& full = fullest(report);
  append(text, cat("; ", byte_text(full.memory.total)));
  if (full.memory.capacity) append(text, cat(" of ", byte_text(*full.memory.capacity)));
  append(text, cat(" in ", full.name));
  for (const PipelineStageReport& stage : report.stages())
    if (!stage.fits()) append(text, cat("; ", stage.name, " does not fit"));
  return text;
}

std::string PipelinePlan::to_string(std::size_t most) const {
  std::string out = cat(considered, " candidates, ", ranking.size(), " of them explained with ",
                        compiled, " compiled programs\n");
  if (!anything_fits()) append(out, "nothing fits\n");
  if (given_is_best()) append(out, "nothing better than the given pipeline was found\n");
  const auto line = [&](std::size_t i) {
    append(out, cat(i + 1, ". ", ranking[i].as_given ? "as given: " : "",
                    ranking[i].candidate.to_string(), "\n   ", reason(i), "\n"));
  };
  for (std::size_t i = 0; i < ranking.size(); ++i)
    if (i < most || ranking[i].as_given) line(i);
  return out;
}

std::string to_json(const PipelinePlan& plan, std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object().member("schema", "meshard.pipeline_plan").member("version", 1);
  json.member("considered", plan.considered).member("compiled", plan.compiled);
  json.member("anything_fits", plan.anything_fits());
  json.member("given_is_best", plan.given_is_best());
  json.key("candidates").begin_array();
  for (std::size_t i = 0; i < plan.ranking.size(); ++i) {
    const PlannedPipeline& one = plan.ranking[i];
    json.begin_object().member("schedule", enum_name(one.candidate.schedule));
    json.member("workers", one.candidate.workers).member("chunks", one.candidate.chunks);
    json.member("microbatches", one.candidate.microbatches).key("axes").begin_object();
    for (const MeshAxis& axis : one.candidate.axes) json.member(axis.name, axis.size);
    json.end_object().key("layers").begin_array();
    for (int count : one.candidate.layers) json.value(count);
    json.end_array().member("as_given", one.as_given).member("fits", one.fits());
    json.member("estimate", one.estimate).member("problem", one.problem);
    json.member("reason", plan.reason(i));
    if (one.report) {
      json.member("time", one.report->time()).member("bubble", one.report->bubble());
      json.member("times_known", one.report->times_known());
    }
    json.end_object();
  }
  json.end_array().end_object();
  return std::move(json).text();
}

}  // namespace meshard
