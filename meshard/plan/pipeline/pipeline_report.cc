// Tested in meshard/plan/pipeline/explain_pipeline_test.cc.
#include "meshard/plan/pipeline/pipeline_report.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/json_fields.h"
#include "meshard/explain/byte_text.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

std::string stage_text(const PipelineReport& report, const PipelineStageReport& one) {
  std::string text =
      cat(one.name, " on worker ", one.worker, ", ", one.mesh.size(),
          one.mesh.size() == 1 ? " device" : " devices", ": ", report.duration_text(one.busy),
          " in a step (forward ", report.duration_text(one.times.forward), ", backward ",
          report.duration_text(one.times.input_gradient + one.times.weight_gradient));
  if (one.times.update > 0) append(text, cat(", update ", report.duration_text(one.times.update)));
  const PipelineStageMemory& memory = one.memory;
  append(text, cat(")\n  ", one.fits() ? "" : "does not fit: ", byte_text(memory.total)));
  if (memory.capacity) append(text, cat(" of ", byte_text(*memory.capacity)));
  append(text, cat(" on each device: parameters ", byte_text(memory.parameters), ", gradients ",
                   byte_text(memory.gradients), ", optimizer ", byte_text(memory.optimizer_state),
                   ", activations ", byte_text(memory.activations), " (", memory.kept_microbatches,
                   memory.kept_microbatches == 1 ? " microbatch" : " microbatches", " of ",
                   byte_text(memory.activations_of_microbatch), "), temporaries ",
                   byte_text(memory.temporaries), "\n"));
  if (!one.out_of_memory.empty())
    append(text, cat("  the compiler says: ", one.out_of_memory, "\n"));
  return text;
}

std::string transfer_text(const PipelineReport& report, const PipelineTransfer& one) {
  std::string text = cat(one.from, " -> ", one.to, ": ", byte_text(one.bytes), ", ",
                         byte_text(one.device_bytes), " from each device");
  if (one.time > 0) {
    append(text,
           cat(", ", report.duration_text(one.time), ", ",
               one.exposed > 0 ? cat("makes a step ", report.duration_text(one.exposed), " longer")
                               : std::string("hidden"),
               "; links in use ", growth_percent(one.link_use), " of the time"));
    if (one.link_use > 1) append(text, ", more than they can carry");
  }
  return text + "\n";
}

// A schedule is written by name. A stage's mesh, the reports of its programs and the timeline are
// not written.
struct PipelineForms : JsonForms {
  using JsonForms::write;
  void write(JsonWriter& json, const PipelineSchedule& schedule) const {
    json.value(schedule.name());
  }
  void write(JsonWriter&, const PipelineTimeline&) const {}
  void write(JsonWriter&, const Mesh&) const {}
  void write(JsonWriter&, const std::vector<PipelineProgram>&) const {}
};

}  // namespace

std::string PipelineReport::duration_text(double time) const {
  return times_known() ? time_text(time) : cat(time, " operations");
}

int PipelineReportParts::slowest() const {
  return static_cast<int>(
      std::max_element(stages.begin(), stages.end(),
                       [](const auto& a, const auto& b) { return a.busy < b.busy; }) -
      stages.begin());
}

bool PipelineReportParts::fits() const {
  return std::all_of(stages.begin(), stages.end(),
                     [](const PipelineStageReport& one) { return one.fits(); });
}

std::string PipelineReport::to_string() const {
  const PipelineSchedule& schedule = parts_.schedule;
  std::string out = cat("pipeline on ", parts_.target, ": ", schedule.name(), ", ",
                        schedule.stages(), " stages, ", schedule.workers(), " workers, ",
                        schedule.microbatches(), " microbatches\n");
  append(out, cat("step      ", duration_text(time()), "\n"));
  append(out, cat("bubble    ", growth_percent(bubble()), " of the workers' time (",
                  growth_percent(formula_bubble()), " if all stages were equal)\n"));
  const PipelineStageReport& most = parts_.stages[static_cast<std::size_t>(slowest())];
  append(out, cat("slowest   ", most.name, ", which works ", duration_text(most.busy), "\n"));
  append(out, fits() ? "memory    fits\n" : "memory    does not fit\n");
  append(out, "\nstages\n");
  for (const PipelineStageReport& one : parts_.stages) append(out, stage_text(*this, one));
  if (!parts_.transfers.empty()) append(out, "\ntransfers of each microbatch\n");
  for (const PipelineTransfer& one : parts_.transfers) append(out, transfer_text(*this, one));
  for (const std::string& note : parts_.notes) append(out, cat("\nnote: ", note, "\n"));
  return out;
}

std::string to_json(const PipelineReport& report, std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object().member("schema", "meshard.pipeline").member("version", 1);
  write_json_members(json, report.parts(), PipelineForms());
  json.end_object();
  return std::move(json).text();
}

}  // namespace meshard
