// The report returned by explain_pipeline().
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/explain/report.h"
#include "meshard/mesh/mesh.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pipeline/schedule/timeline.h"

namespace meshard {

/// Value type: one compiled program of a stage.
struct PipelineProgram {
  /// kForward, kBackward, kInputGradient, kWeightGradient or kUpdate
  PipelineWork work = PipelineWork::kForward;
  /// One execution: the estimate of explain(), or if the hardware's figures are unknown the
  /// operations of one device (PipelineReportParts::times_known).
  double time = 0;
  /// What the compiler made of it. If another stage has the same program on a submesh of the same
  /// form, both share the report of the one that was compiled, with its mesh. Not null.
  std::shared_ptr<const ProgramReport> report;

  MESHARD_FIELDS(work, time, report)
};

/// Value type: the memory of one device of a stage, in bytes.
struct PipelineStageMemory {
  std::int64_t parameters = 0;
  /// The sums of the parameters' gradients over the microbatches.
  std::int64_t gradients = 0;
  std::int64_t optimizer_state = 0;
  /// The memory that one microbatch keeps from its forward to its backward pass, without
  /// parameters.
  std::int64_t activations_of_microbatch = 0;
  /// The most microbatches that are kept at the same time.
  int kept_microbatches = 0;
  /// The most that is kept for microbatches at the same time. For a schedule that splits the
  /// gradients, it includes the values that input gradients keep for weight gradients.
  std::int64_t activations = 0;
  /// The largest need of one of the stage's programs in addition to all this: temporaries, code,
  /// results, and what comes from other stages.
  std::int64_t temporaries = 0;
  /// The most that is needed at the same time by all stages that use one of the devices. For a
  /// stage that shares its devices with no other stage, this is its parameters, gradients and
  /// optimizer state, and the larger of activations with temporaries, and of the update, which has
  /// the new parameters and optimizer state in addition to the old ones.
  std::int64_t total = 0;
  /// The device's memory; none if unknown.
  std::optional<std::int64_t> capacity = std::nullopt;

  MESHARD_FIELDS(parameters, gradients, optimizer_state, activations_of_microbatch,
                 kept_microbatches, activations, temporaries, total, capacity)
  /// capacity - total; negative if the stage does not fit. None without a capacity.
  std::optional<std::int64_t> spare() const {
    return capacity ? std::optional(*capacity - total) : std::nullopt;
  }
  friend bool operator==(const PipelineStageMemory&, const PipelineStageMemory&) = default;
};

/// Value type: one stage.
struct PipelineStageReport {
  std::string name;
  int worker = 0;
  Mesh mesh;
  std::vector<PipelineProgram> programs = {};
  /// The times of its actions on the report's timeline.
  StageTimes times = {};
  /// The time of all its actions in one step.
  double busy = 0;
  PipelineStageMemory memory = {};
  /// The compiler's message if it refused one of the programs for lack of memory; empty: none.
  std::string out_of_memory = {};

  MESHARD_WRITTEN_FIELDS(name, worker, devices(), fits(), busy, times, memory, out_of_memory, mesh,
                         programs)
  static constexpr FieldNotes kFieldNotes{.local = "mesh programs"};
  std::int64_t devices() const { return mesh.size(); }
  /// False if the devices lack memory for the stage. True if their memory is unknown.
  bool fits() const { return out_of_memory.empty() && memory.spare().value_or(0) >= 0; }
};

/// Value type: what goes from a stage to a neighbor for each microbatch.
struct PipelineTransfer {
  int from = 0, to = 0;
  /// The bytes of the tensors.
  std::int64_t bytes = 0;
  /// The bytes that the busiest device sends.
  std::int64_t device_bytes = 0;
  /// The duration of one transfer that uses the links alone: a lower bound. 0 if the hardware's
  /// figures are unknown.
  double time = 0;
  /// Transfer time that other microbatches' work does not overlap: how much shorter a step would be
  /// if these transfers took no time.
  double exposed = 0;
  /// The fraction of a step in which the links carry these transfers. Above 1, they cannot.
  double link_use = 0;

  MESHARD_FIELDS(from, to, bytes, device_bytes, time, exposed, link_use)
  bool is_forward() const { return from < to; }
  friend bool operator==(const PipelineTransfer&, const PipelineTransfer&) = default;
};

/// Value type: the contents of a PipelineReport.
struct PipelineReportParts {
  /// `v5e:4x4`
  std::string target;
  PipelineSchedule schedule = gpipe(1, 1);
  /// True if times are seconds. False if the hardware's figures are unknown, as for `cpu`: then a
  /// time is the number of operations of one device, transfers take none, and only ratios of times
  /// mean something.
  bool times_known = true;
  std::vector<PipelineStageReport> stages = {};
  /// In the order of the stages: forward, then backward.
  std::vector<PipelineTransfer> transfers = {};
  /// Who works when: picture(), picture_svg() and trace_json() draw it.
  PipelineTimeline timeline = {};
  /// The number of programs that were compiled; equal programs count once.
  int compiled = 0;
  std::vector<std::string> notes = {};

  MESHARD_WRITTEN_FIELDS(target, schedule, workers(), microbatches(), times_known, time(), bubble(),
                         formula_bubble(), slowest(), fits(), compiled, stages, transfers, notes,
                         timeline)
  static constexpr FieldNotes kFieldNotes{.local = "timeline"};
  int workers() const { return schedule.workers(); }
  int microbatches() const { return schedule.microbatches(); }
  /// The time of one step.
  double time() const { return timeline.length; }
  /// The fraction of the workers' time in which they wait.
  double bubble() const { return timeline.bubble(); }
  /// bubble() for equal stages, equal times of the forward pass and of both gradients, and no time
  /// for updates and transfers: the assumptions of the published formulas.
  double formula_bubble() const { return timeline_of(schedule).bubble(); }
  /// The stage that works longest in a step.
  int slowest() const;
  /// False if a stage does not fit.
  bool fits() const;
};

/// Value type: what the compiler and the schedule make of a pipeline.
class PipelineReport {
 public:
  using Parts = PipelineReportParts;
  explicit PipelineReport(Parts parts) : parts_(std::move(parts)) {}

  const Parts& parts() const { return parts_; }
  const std::vector<PipelineStageReport>& stages() const { return parts_.stages; }
  const std::vector<PipelineTransfer>& transfers() const { return parts_.transfers; }
  const PipelineTimeline& timeline() const { return parts_.timeline; }
  bool times_known() const { return parts_.times_known; }
  double time() const { return parts_.time(); }
  double bubble() const { return parts_.bubble(); }
  double formula_bubble() const { return parts_.formula_bubble(); }
  int slowest() const { return parts_.slowest(); }
  bool fits() const { return parts_.fits(); }

  /// A time of the report: `1.5 ms`, or `4096 operations` if times are not known.
  std::string duration_text(double time) const;
  /// The report on one screen: step and bubble, a line for each stage with its times and memory,
  /// one for each transfer, what does not fit, and notes.
  std::string to_string() const;

 private:
  Parts parts_;
};

/// The report as JSON, with `schema` `meshard.pipeline` and a `version`. Times are in seconds if
/// `times_known` is true. The reports of the programs are not included: to_json(ProgramReport)
/// writes them.
/// @param indent spaces per level; 0: all on one line.
std::string to_json(const PipelineReport& report, std::size_t indent = 0);

}  // namespace meshard
