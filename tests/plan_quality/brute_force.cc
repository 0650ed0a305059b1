// Compiles every single change of a program's mesh and shardings, then searches as `meshard plan`
// does, and prints what each found as one line of JSON. usage: plan_brute_force FOLDER NAME
// TOPOLOGY [SECONDS] FOLDER/NAME.mlir is the program; SECONDS limits the first part (default:
// 3600).
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "meshard/base/cat.h"
#include "meshard/base/json_writer.h"
#include "tests/plan_quality/plan_quality.h"

namespace meshard {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

// Of this process and of the children that have ended.
double cpu_seconds() {
  double sum = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& each : {used.ru_utime, used.ru_stime})
      sum += static_cast<double>(each.tv_sec) + 1e-6 * static_cast<double>(each.tv_usec);
  }
  return sum;
}

void write(JsonWriter& json, const PlanCandidate& candidate) {
  json.begin_object().key("axes").begin_object();
  for (const MeshAxis& axis : candidate.axes) json.member(axis.name, axis.size);
  json.end_object().key("specs").begin_array();
  for (const PartitionSpec& spec : candidate.specs) json.value(spec.to_string());
  json.end_array().end_object();
}

int run(const std::string& folder, const std::string& name, const std::string& topology,
        double limit) {
  ModulePlan plan = plan_of_program(folder, name, topology, /*use_cache=*/true);
  PlanVerdict given = verdict_of_given(plan.problem);
  std::vector<PlanCandidate> all = single_changes(plan.problem);
  std::vector<PlanVerdict> verdicts(all.size());
  Clock::time_point begun = Clock::now();
  std::atomic<std::size_t> next = 0, done = 0;
  auto work = [&] {
    for (std::size_t i = next++; i < all.size() && seconds_since(begun) < limit; i = next++) {
      verdicts[i] = verdict_of_candidate(plan.problem, all[i]);
      std::fprintf(stderr, "\r%s: %zu of %zu", name.c_str(), ++done, all.size());
    }
  };
  {
    std::jthread other(work);
    work();
  }
  std::fprintf(stderr, "\n");
  std::size_t best = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (verdicts[i].memory > 0 &&
        (verdicts[best].memory == 0 || better(verdicts[i], verdicts[best])))
      best = i;

  // The search is timed, so that the compile cache, which has most of its candidates, is not used.
  std::optional<ModulePlan> fresh = plan_of_program(folder, name, topology, /*use_cache=*/false);
  PlanOptions options{.time_limit = std::chrono::seconds(60), .jobs = 2};
  std::optional<PlanVerdict> best_so_far;
  double best_after = 0;
  options.progress = [&](const PlanProgress& progress) {
    if (!progress.best_verdict || best_so_far == *progress.best_verdict) return;
    best_so_far = *progress.best_verdict;
    best_after = seconds_since(begun);
  };
  const double cpu_before = cpu_seconds();
  begun = Clock::now();
  PlanResult found = search(fresh->problem, options);
  double wall = seconds_since(begun);
  fresh.reset();  // ends the compilers, whose time counts then
  double cpu = cpu_seconds() - cpu_before;
  JsonWriter json;
  json.begin_object().member("program", name).member("topology", topology);
  json.member("given_seconds", given.seconds).member("tried", done.load());
  json.member("complete", done == all.size());
  json.member("best_seconds", verdicts[best].seconds);
  json.key("best");
  write(json, all[best]);
  json.member("plan_seconds", found.ranking[0].verdict.seconds);
  json.member("plan_compiled", found.compiled).member("plan_wall_seconds", wall);
  json.member("plan_cpu_seconds", cpu).member("plan_best_after_seconds", best_after);
  json.key("plan");
  write(json, found.ranking[0].candidate);
  json.end_object();
  std::printf("%s\n", std::move(json).text().c_str());
  return 0;
}

}  // namespace
}  // namespace meshard

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: plan_brute_force FOLDER NAME TOPOLOGY [SECONDS]\n");
    return 2;
  }
  try {
    return meshard::run(arguments[1], arguments[2], arguments[3],
                        count > 4 ? std::stod(arguments[4]) : 3600);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plan_brute_force: %s\n", error.what());
    return 2;
  }
}
