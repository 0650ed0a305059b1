#include "meshard/plan/pipeline/internal/pipeline_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace meshard::internal {
namespace {

// At `time`, the bytes that a stage keeps for microbatches grow.
struct Change {
  double time = 0;
  std::size_t stage = 0;
  std::int64_t kept = 0, waiting = 0;
};

std::vector<Change> changes_of(const PipelineTimeline& timeline,
                               const std::vector<StageNeeds>& needs,
                               const std::vector<PipelineStageReport>& stages) {
  std::vector<Change> changes;
  const auto receive = [&](double at, std::size_t s, std::int64_t bytes) {
    changes.push_back({.time = at, .stage = s, .waiting = bytes});
  };
  // When a listed send begins.
  std::map<std::tuple<PipelineWork, int, int>, double> sends;
  for (const auto& worker : timeline.workers)
    for (const PipelineTimeline::Entry& one : worker)
      if (is_send(one.action.work))
        sends[{one.action.work, one.action.stage, one.action.microbatch}] = one.start;
  const auto sent_at = [&](PipelineWork send, const PipelineTimeline::Entry& after) {
    auto found = sends.find({send, after.action.stage, after.action.microbatch});
    return found == sends.end() ? after.end : found->second;
  };
  for (const auto& worker : timeline.workers)
    for (const PipelineTimeline::Entry& one : worker) {
      auto s = static_cast<std::size_t>(one.action.stage);
      const StageNeeds& need = needs[s];
      const PipelineWork work = one.action.work;
      if (work == PipelineWork::kForward) {
        changes.push_back({one.start, s, need.after_forward, -need.received_forward});
        if (s + 1 < stages.size())
          receive(sent_at(PipelineWork::kSendForward, one) + stages[s].times.send_forward, s + 1,
                  needs[s + 1].received_forward);
      }
      if (gives_input_gradient(work)) {
        bool ends = ends_microbatch(work);
        changes.push_back({one.start, s, 0, -need.received_backward});
        changes.push_back(
            {one.end, s,
             ends ? -need.after_forward : need.after_input_gradient - need.after_forward});
        if (s > 0)
          receive(sent_at(PipelineWork::kSendBackward, one) + stages[s].times.send_backward, s - 1,
                  needs[s - 1].received_backward);
      }
      if (work == PipelineWork::kWeightGradient)
        changes.push_back({one.end, s, -need.after_input_gradient});
    }
  // Of changes at the same time, what ends comes first: its memory can be taken.
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return std::pair(a.time, a.kept + a.waiting) < std::pair(b.time, b.kept + b.waiting);
  });
  return changes;
}

}  // namespace

std::int64_t device_bytes(const std::vector<Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& each : tensors) {
    TensorType type = each.type();
    if (std::optional<Sharding> sharding = each.sharding()) {
      IntVector shard = sharding->shard_shape(type.shape);
      Dimensions sizes;
      for (std::int64_t size : shard) sizes.push_back(size);
      type.shape = Shape(std::move(sizes));
    }
    bytes += type.bytes();
  }
  return bytes;
}

void set_peaks(const PipelineTimeline& timeline, const std::vector<StageNeeds>& needs,
               std::vector<PipelineStageReport>& stages) {
  std::vector<Change> changes = changes_of(timeline, needs, stages);
  std::map<std::int64_t, std::vector<std::size_t>> stages_of_device;
  for (std::size_t s = 0; s < stages.size(); ++s)
    for (std::int64_t id : stages[s].mesh.device_ids()) stages_of_device[id].push_back(s);
  std::set<std::vector<std::size_t>> groups;
  for (const auto& [id, group] : stages_of_device) groups.insert(group);
  for (const std::vector<std::size_t>& group : groups) {
    std::int64_t always = 0, program = 0, results = 0, update = 0, now = 0, most = 0;
    for (std::size_t s : group) {
      always += needs[s].always;
      program = std::max(program, needs[s].program);
      results += needs[s].update_results;
      update = std::max(update, needs[s].update_program);
    }
    for (const Change& one : changes) {
      if (std::find(group.begin(), group.end(), one.stage) == group.end()) continue;
      now += one.kept + one.waiting;
      most = std::max(most, now);
    }
    std::int64_t total = always + std::max(most + program, results + update);
    for (std::size_t s : group) stages[s].memory.total = std::max(stages[s].memory.total, total);
  }
  std::vector<std::int64_t> kept(stages.size(), 0);
  for (const Change& one : changes) {
    kept[one.stage] += one.kept;
    std::int64_t& most = stages[one.stage].memory.activations;
    most = std::max(most, kept[one.stage]);
  }
}

}  // namespace meshard::internal
