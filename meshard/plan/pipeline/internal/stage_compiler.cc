// Tested in meshard/plan/pipeline/explain_pipeline_test.cc.
#include "meshard/plan/pipeline/internal/stage_compiler.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/program_facts.h"
#include "meshard/lowering/lower.h"

namespace meshard::internal {
namespace {

// `count` of them, at equal distances.
std::vector<std::int64_t> chosen(const Mesh& mesh, std::int64_t count) {
  DeviceIds ids = mesh.device_ids();
  std::vector<std::int64_t> all(ids.begin(), ids.end()), some;
  auto size = static_cast<std::int64_t>(all.size());
  for (std::int64_t i = 0; i < count; ++i)
    some.push_back(all[static_cast<std::size_t>(i * size / count)]);
  return some;
}

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
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return std::pair(a.time, a.kept + a.waiting) < std::pair(b.time, b.kept + b.waiting);
  });
  return changes;
}

}  // namespace

StageCompiler::StageCompiler(Target target, const ExplainPipelineOptions& options)
    : target_(std::move(target)) {
  options_.overrides = options.overrides;
  options_.links = options.links;
  options_.compile = options.compile;
}

std::string StageCompiler::form_of(const Mesh& mesh) const {
  std::string text = axes_text(mesh.axes());
  std::unordered_map<std::int64_t, const DeviceAttributes*> devices;
  for (const DeviceAttributes& one : target_.topology().devices()) devices[one.id] = &one;
  const DeviceAttributes* first = nullptr;
  for (std::int64_t id : mesh.device_ids()) {
    auto found = devices.find(id);
    if (found == devices.end()) return cat(text, mesh);  // explain() reports it
    const DeviceAttributes& one = *found->second;
    if (!first) first = &one;
    append(text, ";", one.slice_index.value_or(0) - first->slice_index.value_or(0), "/",
           one.process_index - first->process_index);
    for (std::size_t i = 0; i < one.coords.size() && i < first->coords.size(); ++i)
      append(text, ",", one.coords[i] - first->coords[i]);
    if (one.coords.empty()) append(text, ",", one.id - first->id);
  }
  return text;
}

CompiledStageProgram StageCompiler::compile_traced(TracedProgram traced, const Mesh& mesh) {
  std::vector<TensorType> types;
  for (const Value& result : traced.program.graph.results()) types.push_back(result.type());
  std::string name = std::exchange(traced.program.name, "main");
  std::string key = cat(form_of(mesh), "\n", lower(traced.program).text);
  traced.program.name = std::move(name);
  std::shared_ptr<const ProgramReport>& report = reports_[key];
  if (!report) {
    report =
        std::make_shared<const ProgramReport>(explain_traced(target_, std::move(traced), options_));
    ++compiled_;
  }
  CompiledStageProgram made{report, {}};
  for (std::size_t i = 0; i < types.size(); ++i) {
    std::optional<Sharding> sharding;
    if (i < report->results().size() && report->results()[i].sharding)
      sharding = Sharding(mesh, report->results()[i].sharding->spec());
    else
      sharding = Sharding::replicated(mesh, static_cast<std::size_t>(types[i].shape.rank()));
    made.results.push_back(abstract_tensor(types[i], std::move(sharding)));
  }
  return made;
}

StageLink::StageLink(const Target& target, const Mesh& from, const Mesh& to,
                     const LinkOptions& options) {
  std::int64_t count = std::min(from.size(), to.size());
  receivers_ = std::max<std::int64_t>(to.size() / from.size(), 1);
  std::optional<HardwareFigures> figures = hardware_figures(target.topology());
  if (!figures) return;
  std::optional<ProcessMap> processes = processes_of(target, options).value();
  std::vector<std::int64_t> senders = chosen(from, count), receivers = chosen(to, count);
  // Devices that are in both submeshes keep their part.
  std::set<std::int64_t> sends(senders.begin(), senders.end()),
      receives(receivers.begin(), receivers.end());
  std::vector<std::int64_t> ids, ends;
  for (std::size_t i = 0; i < senders.size(); ++i)
    if (!receives.contains(senders[i]) && !sends.contains(receivers[i])) {
      ids.push_back(senders[i]);
      ends.push_back(receivers[i]);
    }
  if (ids.empty()) return;
  auto pairs = static_cast<std::int64_t>(ids.size());
  ids.insert(ids.end(), ends.begin(), ends.end());
  links_.emplace(*figures, Mesh({{"side", 2}, {"pair", pairs}}, std::move(ids)), target.topology(),
                 std::move(processes), options);
}

std::int64_t StageLink::device_bytes(std::int64_t received) const { return received * receivers_; }

double StageLink::seconds(std::int64_t device_bytes) const {
  if (!links_) return 0;
  Collective send;
  send.kind = CollectiveKind::kCollectivePermute;
  send.axes = AxisList{AxisRef("side")};
  send.shifts = {{.axes = AxisList{AxisRef("side")}, .by = 1, .wraps = false}};
  send.bytes_in = send.bytes_out = device_bytes;
  return links_->seconds(send);
}

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
      if (std::ranges::find(group, one.stage) == group.end()) continue;
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
