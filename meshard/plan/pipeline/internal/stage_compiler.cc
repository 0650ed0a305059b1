// Tested in meshard/plan/pipeline/explain_pipeline_test.cc.
#include "meshard/plan/pipeline/internal/stage_compiler.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/explain/program_facts.h"
#include "meshard/lowering/lower.h"
#include "meshard/target/hardware.h"

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
    append(text, cat(";", one.slice_index.value_or(0) - first->slice_index.value_or(0), "/",
                     one.process_index - first->process_index));
    for (std::size_t i = 0; i < one.coords.size() && i < first->coords.size(); ++i)
      append(text, cat(",", one.coords[i] - first->coords[i]));
    if (one.coords.empty()) append(text, cat(",", one.id - first->id));
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

}  // namespace meshard::internal
