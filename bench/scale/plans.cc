// Searches over up to 64 candidates that are compiled, and over many that are not.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/scale/curve.h"
#include "meshard/meshard.h"
#include "meshard/pjrt/client.h"
#include "meshard/plan/plan.h"

namespace meshard::bench {
namespace {

constexpr int kLayersOfPlan = 2;

// An MLP whose weights' shardings are free.
PlanResult plan_mlp(std::size_t most_compiled) {
  Target target = Target::parse("cpu:16").value();
  const TensorType up{DType::f32, {256, 1024}}, down{DType::f32, {1024, 256}};
  std::vector<FreeValue> values = {{"up", up, P(unconstrained, unconstrained)},
                                   {"down", down, P(unconstrained, unconstrained)}};
  auto mlp = [](Tensor x, const Tensor& first, const Tensor& second) {
    for (int i = 0; i < kLayersOfPlan; ++i) x = x + matmul(tanh(matmul(x, first)), second);
    return x;
  };
  PlanOptions options;
  options.most_compiled = most_compiled;
  return plan(
      target, {"data", "model"}, values,
      [&](const Mesh& mesh, const std::vector<PartitionSpec>& specs) {
        return trace_program(mlp, abstract_tensor({512, 256}, DType::f32, mesh, P("data", none)),
                             abstract_tensor(up.shape, up.dtype, mesh, specs[0]),
                             abstract_tensor(down.shape, down.dtype, mesh, specs[1]));
      },
      options);
}

// A search whose candidates cost nothing to compile: the time is that of the search itself.
double free_search(std::size_t candidates, const std::string& journal) {
  PlanProblem problem;
  problem.identity = "free search";
  problem.devices = 64;
  problem.axes = {"a", "b", "c"};
  const TensorType type{DType::f32, {4096, 4096}};
  for (const char* name : {"u", "v", "w"})
    problem.values.push_back({name, type, P(unconstrained, unconstrained)});
  problem.compile = [](const PlanCandidate& candidate) -> Result<ProgramReport> {
    ProgramReport::Parts parts{.name = "f"};
    parts.memory = MemoryUse{.arguments = std::ssize(candidate.to_string())};
    return ProgramReport(std::move(parts));
  };
  PlanOptions options;
  options.most_compiled = candidates;
  options.most_candidates = 20000;
  options.journal = journal;
  return milliseconds_of([&] { search(problem, options); });
}

}  // namespace

void plan_curves(Report& report) {
  std::string folder = (std::filesystem::temp_directory_path() / "meshard-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return;
  const char* before = std::getenv("MESHARD_CACHE");
  const std::string kept = before != nullptr ? before : "";
  Curve compiled{.name = "scale.plan.compiled",
                 .work = "search shardings of an MLP on 16 CPU devices",
                 .of = "compiled candidates"},
      again{.name = "scale.plan.again",
            .work = "the same again, from the cache on disk",
            .of = "compiled candidates"},
      journal{.name = "scale.plan.journal",
              .work = "a search that compiles for nothing, with its journal",
              .of = "candidates"},
      resumed{.name = "scale.plan.resumed",
              .work = "the same, resumed from the journal",
              .of = "candidates"};
  setenv("MESHARD_PLUGIN", runtime_client().plugin().path().c_str(), 1);
  setenv("MESHARD_COMPILED_CACHE_MB", "1024", 1);
  for (std::size_t count : {4, 16, 64}) {
    setenv("MESHARD_CACHE", (folder + "/" + std::to_string(count)).c_str(), 1);
    std::size_t done = 0;
    auto run = [&] {
      return milliseconds_of([&] {
        done = 0;
        for (const PlannedCandidate& each : plan_mlp(count).ranking)
          done += each.verdict.outcome == PlanOutcome::kFits;
      });
    };
    compiled.points.push_back({double(count), run()});
    again.points.push_back({double(count), least_of(3, run)});
    if (done != count) compiled.note = "only " + std::to_string(done) + " candidates compiled";
  }
  for (std::size_t count : {64, 512, 4096}) {
    const std::string path = folder + "/journal";
    journal.points.push_back({double(count), least_of(3, [&] {
                                std::filesystem::remove(path);
                                return free_search(count, path);
                              })});
    resumed.points.push_back(
        {double(count), least_of(3, [&] { return free_search(count, path); })});
  }
  before != nullptr ? setenv("MESHARD_CACHE", kept.c_str(), 1) : unsetenv("MESHARD_CACHE");
  unsetenv("MESHARD_COMPILED_CACHE_MB");
  std::filesystem::remove_all(folder);
  for (const Curve& curve : {compiled, again, journal, resumed}) add_curve(report, curve);
}

}  // namespace meshard::bench
