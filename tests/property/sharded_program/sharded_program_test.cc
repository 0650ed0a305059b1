// Random programs give the same with shardings as without a mesh, and as on the host.
//
// MESHARD_PROGRAMS=n runs n programs; MESHARD_NIGHTLY=1 runs 20,000. MESHARD_PROGRAM_KIND=one_set,
// meshes, transforms, explicit or stages runs those of one kind; without it the kinds take turns.
// Program k of a run is drawn from the run's seed + k, so that MESHARD_TEST_SEED=<its seed>
// MESHARD_PROGRAMS=1 MESHARD_PROGRAM_KIND=<its kind> runs it alone. MESHARD_PROGRAM_FAILURES=n goes
// on until n have failed; MESHARD_PROGRAM_COUNT=1 counts the failures by their check, and shrinks
// none. MESHARD_PROGRAM_PLATFORMS=2 runs them on two platforms (configure_platforms).
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "meshard/base/cat.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/property/sharded_program/operation.h"
#include "tests/property/sharded_program/program.h"
#include "tests/support/devices.h"
#include "tests/support/random.h"

namespace meshard::property {
namespace {

// The parts are run by several processes (see CMakeLists.txt).
constexpr int kParts = 8;

int programs_to_run() {
  if (const char* programs = std::getenv("MESHARD_PROGRAMS")) return std::atoi(programs);
  const char* nightly = std::getenv("MESHARD_NIGHTLY");
  return nightly != nullptr && std::string(nightly) == "1" ? 20000 : 500;
}

struct NamedKind {
  const char* name;
  Kind kind;
};
constexpr NamedKind kKinds[] = {{"one_set", Kind::kOneSet},
                                {"meshes", Kind::kMeshes},
                                {"transforms", Kind::kTransforms},
                                {"explicit", Kind::kExplicit},
                                {"stages", Kind::kStages}};

const NamedKind& kind_of_program(int k) {
  if (const char* wanted = std::getenv("MESHARD_PROGRAM_KIND"))
    for (const NamedKind& each : kKinds)
      if (std::string_view(wanted) == each.name) return each;
  // Each part has its turn of every kind.
  return kKinds[(k + k / kParts) % static_cast<int>(std::size(kKinds))];
}

int failures_to_show() {
  const char* failures = std::getenv("MESHARD_PROGRAM_FAILURES");
  return failures ? std::atoi(failures) : 3;
}

Program drawn(std::uint64_t seed, Kind kind = Kind::kOneSet) {
  std::mt19937_64 random(seed);
  return draw_program(random, kind);
}

// A plugin that aborts leaves no time to compose a message.
std::string running;  // the program under way
void say_what_ran(int signal) {
  (void)!write(STDERR_FILENO, running.data(), running.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string described(const Program& program, const Failure& failure) {
  return cat("The smallest program that fails:\n", to_code(program), "// ", failure.check, "\n",
             failure.detail);
}

// MESHARD_PROGRAM_COUNT=1: how many fail in which check, and their seeds, is all that is said.
bool only_counts() { return std::getenv("MESHARD_PROGRAM_COUNT") != nullptr; }

class Counts {
 public:
  void add(const std::string& check, std::uint64_t seed) {
    std::vector<std::uint64_t>& seeds = seeds_[check];
    seeds.push_back(seed);
  }
  std::string to_string() const {
    std::string text;
    for (const auto& [check, seeds] : seeds_) {
      append(text, cat(seeds.size(), " times ", check, ":"));
      for (std::size_t i = 0; i < seeds.size() && i < 5; ++i) append(text, cat(" ", seeds[i]));
      text += "\n";
    }
    return text;
  }

 private:
  std::map<std::string, std::vector<std::uint64_t>> seeds_;
};

// MESHARD_PROGRAM_PLATFORMS=2: meshes without a common device are on two platforms, and a program
// that runs again on other devices runs on the other platform: another CPU plugin if there is one.
void configure_platforms() {
  static const bool configured = [] {
    pjrt::PluginSearch search = pjrt::find_plugins();
    std::string first = search.first("cpu").value_or(""), other = first;
    for (const pjrt::FoundPlugin& each : search.found)
      if (each.platform == "cpu" && each.path != first) other = each.path;
    return configure_runtime({.platforms = {{.device_type = "second", .plugin = other}}}).ok();
  }();
  ASSERT_TRUE(configured);
}

class ShardedPrograms : public OnDevices, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    if (on_two_platforms()) configure_platforms();
    OnDevices::SetUp();
  }
};

TEST_P(ShardedPrograms, EqualThoseWithoutAMesh) {
  for (int signal : {SIGABRT, SIGSEGV}) std::signal(signal, say_what_ran);
  int failures = 0;
  Counts counts;
  for (int k = GetParam(); k < programs_to_run() && failures < failures_to_show(); k += kParts) {
    std::uint64_t seed = test_seed() + static_cast<std::uint64_t>(k);
    const NamedKind& kind = kind_of_program(k);
    std::string replay =
        cat(on_two_platforms() ? "MESHARD_PROGRAM_PLATFORMS=2 " : "", "MESHARD_TEST_SEED=", seed,
            " MESHARD_PROGRAMS=1 MESHARD_PROGRAM_KIND=", kind.name, "\n");
    running = replay;
    Program program = drawn(seed, kind.kind);
    running = replay + to_code(program);
    std::optional<Failure> failure = run(program);
    if (!failure) continue;
    if (only_counts()) {
      counts.add(failure->check, seed);
      continue;
    }
    ++failures;
    auto judge = [](const Program& candidate) { return run(candidate); };
    Program small = shrink(program, *failure, judge);
    ADD_FAILURE() << replay << described(small, run(small).value_or(*failure));
  }
  for (int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
  EXPECT_EQ(counts.to_string(), "");
}
INSTANTIATE_TEST_SUITE_P(Part, ShardedPrograms, testing::Range(0, kParts));

// How deep manual functions are nested.
int manual_depth_of(const Step& step) {
  int inside = 0;
  for (const Body& body : step.bodies)
    for (const Step& inner : body.steps) inside = std::max(inside, manual_depth_of(inner));
  return inside + (step.operation == find_operation("manual") ? 1 : 0);
}

TEST(Drawn, ManualFunctionsStandInManualFunctions) {
  int nested = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed)
    for (const Step& step : drawn(seed, Kind::kTransforms).steps)
      nested += manual_depth_of(step) > 1 ? 1 : 0;
  EXPECT_GT(nested, 4);
}

TEST(Drawn, ManualFunctionsCallEveryCollective) {
  std::map<const Operation*, int> drawn_steps;
  for (std::uint64_t seed = 1; seed <= 400; ++seed)
    for (const Step& step : drawn(seed, seed % 2 == 0 ? Kind::kTransforms : Kind::kOneSet).steps)
      for_each_step(step, [&](const Step& each) { ++drawn_steps[each.operation]; });
  for (const Operation& collective : collective_operations())
    EXPECT_GT(drawn_steps[&collective], 1) << collective.name;
}

// ---- The tests of the test: a wrong runtime is noticed, and shown by the smallest program there
// is.

// Programs that the wrong runtime may spoil are run until one fails, and that is shrunk.
std::optional<Program> smallest_spoiled(Wrong wrong,
                                        const std::function<bool(const Program&)>& may_be_spoiled) {
  auto judge = [&](const Program& candidate) { return run(candidate, wrong); };
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    Program program = drawn(test_seed() + seed);
    if (!may_be_spoiled(program)) continue;
    if (std::optional<Failure> failure = judge(program)) return shrink(program, *failure, judge);
  }
  return std::nullopt;
}

const Input* input_of(const Program& program, const Step& step) {
  Ref ref = step.operands.at(0);
  return ref.is_input ? &program.inputs[static_cast<std::size_t>(ref.index)] : nullptr;
}

using ShardedProgramShrinker = OnDevices;

TEST_F(ShardedProgramShrinker, FindsWhatIsWrongInUnevenShards) {
  const Operation* sum = find_operation("sum");
  auto sums_input = [&](const Program& program) {
    for (const Step& step : program.steps)
      if (step.operation == sum && input_of(program, step) && input_of(program, step)->mark)
        return !program.gradient;
    return false;
  };
  std::optional<Program> small = smallest_spoiled(Wrong::kSumOfUnevenCountsOneMore, sums_input);
  ASSERT_TRUE(small);
  std::string code = to_code(*small);
  ASSERT_EQ(small->steps.size(), 1u) << code;
  EXPECT_EQ(small->steps[0].operation, sum) << code;
  ASSERT_EQ(small->inputs.size(), 1u) << code;
  EXPECT_TRUE(small->inputs[0].mark) << code;
  EXPECT_LE(small->inputs[0].type.size(), 3) << code;
  ASSERT_EQ(small->meshes.size(), 1u) << code;
  EXPECT_EQ(small->meshes[0].axes.size(), 1u) << code;
  EXPECT_EQ(small->meshes[0].devices.at(0), 0) << code;
  EXPECT_EQ(small->jit_steps, 0) << code;
}

TEST_F(ShardedProgramShrinker, FindsWhatIsWrongOnOtherDevices) {
  const Operation* tanh = find_operation("tanh");
  std::optional<Program> small;
  for (std::uint64_t seed = 0; seed < 5000 && !small; ++seed) {
    Program program = drawn(test_seed() + seed, Kind::kMeshes);
    auto is_tanh = [&](const Step& step) { return step.operation == tanh; };
    // Bodies are not taken apart.
    auto has_body = [](const Step& step) { return step.operation->has_bodies(); };
    if (program.retarget.empty() || program.jit_steps > 0 ||
        std::none_of(program.steps.begin(), program.steps.end(), is_tanh) ||
        std::any_of(program.steps.begin(), program.steps.end(), has_body))
      continue;
    auto judge = [](const Program& candidate) {
      return run(candidate, Wrong::kOtherDevicesAreOff);
    };
    if (std::optional<Failure> failure = judge(program)) small = shrink(program, *failure, judge);
  }
  ASSERT_TRUE(small);
  std::string code = to_code(*small);
  EXPECT_FALSE(small->retarget.empty()) << code;
  ASSERT_EQ(small->steps.size(), 1u) << code;
  EXPECT_EQ(small->steps[0].operation, tanh) << code;
}

TEST_F(ShardedProgramShrinker, FindsThingsThatAreWrongTogether) {
  const Operation* mark = find_operation("mark_sharding");
  auto marks_in_jit = [&](const Program& program) {
    for (int i = 0; i < program.jit_steps; ++i) {
      const Step& step = program.steps[static_cast<std::size_t>(i)];
      if (step.operation == mark && step.placement.spec.size() == 2) return !program.gradient;
    }
    return false;
  };
  std::optional<Program> small = smallest_spoiled(Wrong::kTransposedMarkInJit, marks_in_jit);
  ASSERT_TRUE(small);
  std::string code = to_code(*small);
  ASSERT_EQ(small->steps.size(), 1u) << code;
  EXPECT_EQ(small->steps[0].operation, mark) << code;
  EXPECT_EQ(small->jit_steps, 1) << code;
  ASSERT_EQ(small->inputs.size(), 1u) << code;
  EXPECT_FALSE(small->inputs[0].mark) << code;
}

}  // namespace
}  // namespace meshard::property

// What the printer made, compiled: see CMakeLists.txt. They return 0 if the two runs agree.
int printed_values();
int printed_gradient();
int printed_collectives();

namespace meshard::property {
namespace {

using PrintedPrograms = OnDevices;

TEST_F(PrintedPrograms, RunAndAgree) {
  EXPECT_EQ(printed_values(), 0);
  EXPECT_EQ(printed_gradient(), 0);
  EXPECT_EQ(printed_collectives(), 0);
}

}  // namespace
}  // namespace meshard::property
