// Random programs give the same with shardings as without a mesh.
//
// MESHARD_PROGRAMS=n runs n programs; MESHARD_NIGHTLY=1 runs 20,000. Program k of a run is drawn
// from the run's seed + k, so that MESHARD_TEST_SEED=<its seed> MESHARD_PROGRAMS=1 runs it alone.
#include "tests/property/sharded_program.h"

#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>

#include "meshard/base/cat.h"
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

Program drawn(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return draw_program(random);
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

class ShardedPrograms : public OnDevices, public testing::WithParamInterface<int> {};

TEST_P(ShardedPrograms, EqualThoseWithoutAMesh) {
  for (int signal : {SIGABRT, SIGSEGV}) std::signal(signal, say_what_ran);
  int failures = 0;
  for (int k = GetParam(); k < programs_to_run() && failures < 3; k += kParts) {
    std::uint64_t seed = test_seed() + static_cast<std::uint64_t>(k);
    Program program = drawn(seed);
    running = cat("MESHARD_TEST_SEED=", seed, " MESHARD_PROGRAMS=1\n", to_code(program));
    std::optional<Failure> failure = run(program);
    if (!failure) continue;
    ++failures;
    auto judge = [](const Program& candidate) { return run(candidate); };
    Program small = shrink(program, *failure, judge);
    ADD_FAILURE() << "MESHARD_TEST_SEED=" << seed << " MESHARD_PROGRAMS=1\n"
                  << described(small, run(small).value_or(*failure));
  }
  for (int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);
}
INSTANTIATE_TEST_SUITE_P(Part, ShardedPrograms, testing::Range(0, kParts));

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

namespace meshard::property {
namespace {

using PrintedPrograms = OnDevices;

TEST_F(PrintedPrograms, RunAndAgree) {
  EXPECT_EQ(printed_values(), 0);
  EXPECT_EQ(printed_gradient(), 0);
}

}  // namespace
}  // namespace meshard::property
