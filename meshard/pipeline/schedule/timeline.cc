#include "meshard/pipeline/schedule/timeline.h"

#include <algorithm>
#include <cmath>

#include "meshard/base/cat.h"

namespace meshard {

double StageTimes::of(PipelineWork work) const {
  switch (work) {
    case PipelineWork::kForward: return forward;
    case PipelineWork::kBackward: return input_gradient + weight_gradient;
    case PipelineWork::kInputGradient: return input_gradient;
    case PipelineWork::kWeightGradient: return weight_gradient;
    case PipelineWork::kUpdate: return update;
    case PipelineWork::kSendForward: return send_forward;
    case PipelineWork::kSendBackward: return send_backward;
  }
  return 0;
}

double PipelineTimeline::busy(int worker) const {
  double sum = 0;
  for (const Entry& one : workers[static_cast<std::size_t>(worker)])
    if (!is_send(one.action.work)) sum += one.end - one.start;
  return sum;
}

double PipelineTimeline::bubble() const {
  double sum = 0;
  for (std::size_t worker = 0; worker < workers.size(); ++worker)
    sum += busy(static_cast<int>(worker));
  double all = static_cast<double>(workers.size()) * length;
  return all > 0 ? 1 - sum / all : 0;
}

int PipelineTimeline::slowest() const {
  int found = 0;
  for (int worker = 1; worker < static_cast<int>(workers.size()); ++worker)
    if (busy(worker) > busy(found)) found = worker;
  return found;
}

PipelineTimeline timeline_of(const PipelineSchedule& schedule, const std::vector<StageTimes>& times,
                             SourceLocation where) {
  if (times.size() != 1 && times.size() != static_cast<std::size_t>(schedule.stages()))
    throw_invalid(where, "[pipeline] got the times of ", times.size(), " stages for a schedule of ",
                  schedule.stages());
  for (std::size_t stage = 0; stage < times.size(); ++stage)
    for (const auto& [work, name] : EnumNames<PipelineWork>::kNames)
      if (double time = times[stage].of(work); !(time >= 0) || std::isinf(time))
        throw_invalid(where, "[pipeline] stage ", stage, ": ", name, " takes ", time,
                      "; expected a time of at least 0");
  internal::PipelineWalk walk =
      internal::walk_pipeline(schedule.orders(), [&](const PipelineAction& one) {
        return times[times.size() == 1 ? 0 : static_cast<std::size_t>(one.stage)].of(one.work);
      });
  PipelineTimeline timeline{.workers = std::move(walk.done)};
  for (const auto& entries : timeline.workers)
    for (const PipelineTimeline::Entry& one : entries)
      timeline.length = std::max(timeline.length, one.end);
  return timeline;
}

PipelineTimeline timeline_of(const PipelineSchedule& schedule, const StageTimes& times,
                             SourceLocation where) {
  return timeline_of(schedule, std::vector<StageTimes>{times}, where);
}

}  // namespace meshard
