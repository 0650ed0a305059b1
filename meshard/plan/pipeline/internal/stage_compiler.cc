// Tested in meshard/plan/pipeline/explain_pipeline_test.cc.
#include "meshard/plan/pipeline/internal/stage_compiler.h"

#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/lowering/lower.h"

namespace meshard::internal {

StageCompiler::StageCompiler(Target target, const ExplainPipelineOptions& options)
    : target_(std::move(target)) {
  options_.overrides = options.overrides;
  options_.links = options.links;
  options_.compile = options.compile;
}

std::string StageCompiler::form_of(const Mesh& mesh) const {
  std::string text;
  for (const MeshAxis& axis : mesh.axes()) append(text, cat(axis.name, "=", axis.size, ","));
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

}  // namespace meshard::internal
