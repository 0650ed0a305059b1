#include "meshard/target/compile_workers.h"

#include <atomic>

#include "meshard/base/cat.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compile_testutil.h"

namespace meshard {
namespace {

TEST_F(CompileFor, OneProcessCompilesSeveralModules) {
  options_.workers = std::make_shared<CompileWorkers>();
  options_.use_cache = false;
  fate("0 a warning");
  Compiled first = compile(request("cpu:4"));
  Compiled second = compile(request("cpu:8", kSharded));
  Compiled again = compile(request("cpu:4"));
  EXPECT_EQ(options_.workers->started(), 1u);
  EXPECT_EQ(first.log, "fake compiler: 0 a warning\n");
  EXPECT_EQ(second.log, first.log) << "each compile has what was printed while it ran";
  EXPECT_EQ(again.optimized_program, first.optimized_program);
  EXPECT_NE(second.optimized_program, first.optimized_program);
}

TEST_F(CompileFor, ProcessesAreReplacedAfterSomeCompiles) {
  options_.workers = std::make_shared<CompileWorkers>(2);
  options_.use_cache = false;
  for (int i = 0; i < 5; ++i) compile(request("cpu:4"));
  EXPECT_EQ(options_.workers->started(), 3u);
}

TEST_F(CompileFor, CompilesAtTheSameTimeHaveAProcessEach) {
  options_.workers = std::make_shared<CompileWorkers>();
  options_.use_cache = false;
  // Each compile begins before the other ends.
  std::atomic<int> begun = 0;
  options_.progress = [&](const std::string& step) {
    if (step != "compiling") return;
    ++begun;
    for (int i = 0; i < 3000 && begun < 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  };
  {
    std::jthread other([&] { compile(request("cpu:4")); });
    compile(request("cpu:4"));
  }
  EXPECT_EQ(options_.workers->started(), 2u);
}

TEST_F(CompileFor, AnErrorLeavesTheProcessRunning) {
  options_.workers = std::make_shared<CompileWorkers>();
  fate("3 -:7:3: expected an operand");
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kInvalidArgument,
                             {"expected an operand"}));
  EXPECT_EQ(options_.workers->started(), 1u);
}

TEST_F(CompileFor, AProcessThatHangsIsGivenUp) {
  options_.workers = std::make_shared<CompileWorkers>();
  options_.time_limit = std::chrono::seconds(1);
  fate("hang");
  EXPECT_TRUE(
      throws_error(compiling(request("cpu:4")), ErrorCode::kDeadlineExceeded, {"after 1 s"}));
  EXPECT_TRUE(fs::is_empty(temporary_));
  options_.time_limit = std::chrono::seconds(60);
  ::unsetenv("MESHARD_FAKE_ON_COMPILE");
  compile(request("cpu:4"));
  EXPECT_EQ(options_.workers->started(), 2u);
}

// A program whose processes answer once, and crash at the second request.
TEST_F(CompileFor, ACrashAfterOtherCompilesIsTriedInANewProcess) {
  Compiled made;
  made.optimized_program = "made";
  std::ofstream(root_.path() + "/answer", std::ios::binary) << serialize_answer(made);
  std::string program = root_.path() + "/crashes";
  std::ofstream(program) << "#!/bin/sh\nread n; cp '" << root_.path()
                         << "/answer' \"$1/answer-$n\"; echo done; read n; kill -SEGV $$\n";
  fs::permissions(program, fs::perms::owner_all);
  ::setenv("MESHARD_COMPILE", program.c_str(), 1);
  options_.workers = std::make_shared<CompileWorkers>();
  options_.use_cache = false;
  EXPECT_EQ(compile(request("cpu:4")).optimized_program, "made");
  EXPECT_EQ(compile(request("cpu:4")).optimized_program, "made");
  EXPECT_EQ(options_.workers->started(), 2u);
  ::unsetenv("MESHARD_COMPILE");
}

// A line for each instruction, in order.
std::string instructions(const Compiled& compiled) {
  std::string text;
  HloModule module = HloModule::from_bytes(compiled.optimized_program).value();
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& one : computation.instructions) {
      append(text, cat(computation.name, ": ", one.name, " ", one.opcode, " [",
                       join(one.shape.dimensions, ","), "] of"));
      for (std::int64_t operand : one.operands) append(text, cat(" ", operand));
      append(text, "\n");
    }
  return text;
}

// What a process compiled before does not change what it compiles.
TEST_F(CompileForReal, InAProcessThatHasCompiledOtherModules) {
  options_.use_cache = false;
  int tried = 0;
  for (const char* target : {"cpu:4", "v5e:2x2"}) {
    options_.workers = nullptr;
    std::optional<Compiled> alone = product(target);
    if (!alone) continue;
    ++tried;
    options_.workers = std::make_shared<CompileWorkers>();
    compile(request(target));
    std::optional<Compiled> after = product(target);
    ASSERT_TRUE(after);
    EXPECT_EQ(options_.workers->started(), 1u);
    expect_product(*after);
    EXPECT_EQ(instructions(*after), instructions(*alone)) << target;
    EXPECT_EQ(after->memory->temporaries, alone->memory->temporaries);
    // Without its time, which is before the bracket.
    auto message = [](const std::string& log) { return log.substr(log.find(']') + 1); };
    EXPECT_EQ(message(after->log), message(alone->log));
  }
  if (tried == 0) GTEST_SKIP() << "no plugin";
}

}  // namespace
}  // namespace meshard
