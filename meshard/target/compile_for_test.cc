#include "meshard/target/compile_for.h"

#include <gtest/gtest.h>

#include <atomic>

#include "meshard/target/compile_testutil.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

// As in a daemon: the compiler's exit status is lost, but its answer is not.
TEST_F(CompileFor, AnswersWhereSigchldIsIgnored) {
  auto* previous = ::signal(SIGCHLD, SIG_IGN);
  EXPECT_NO_THROW(EXPECT_FALSE(compile(request("cpu:1")).from_cache));
  options_.use_cache = false;
  fate("abort");
  EXPECT_TRUE(throws_error(compiling(request("cpu:1")), ErrorCode::kInternal, {"SIGCHLD"}));
  ::signal(SIGCHLD, previous);
}

TEST_F(CompileFor, CompilesInAnotherProcess) {
  std::vector<std::string> steps;
  options_.progress = [&](const std::string& step) { steps.push_back(step); };
  Compiled compiled = compile(request("cpu:4"));
  EXPECT_FALSE(compiled.from_cache);
  auto module = HloModule::from_bytes(compiled.optimized_program);
  EXPECT_TRUE(module.ok());
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0], "loading libmeshard_fake_plugin.so");
  EXPECT_EQ(steps[1], "compiling");
}

TEST_F(CompileFor, KeepsWhatTheCompilerPrints) {
  fate("0 a warning");
  EXPECT_EQ(compile(request("cpu:4")).log, "fake compiler: 0 a warning\n");
}

TEST_F(CompileFor, TheSecondTimeItIsInTheCache) {
  Compiled first = compile(request("cpu:4"));
  fate("abort");  // nothing may be compiled
  Compiled second = compile(request("cpu:4"));
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.serialize(), first.serialize());
  options_.use_cache = false;
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kInternal, {"signal 6"}));
}

TEST_F(CompileFor, WhatDiffersIsCompiledAnew) {
  CompileRequest base = request("cpu:4");
  compile(base);
  CompileRequest other_target = request("cpu:8");
  CompileRequest other_ids = base;
  other_ids.options.device_assignment = {2};
  CompileRequest other_partitioner = base;
  other_partitioner.options.use_shardy = false;
  CompileRequest other_options = base;
  other_options.options.overrides["xla_cpu_enable_fast_math"] = true;
  CompileRequest other_module = base;
  other_module.module += "\n";
  for (const auto& other :
       {other_target, other_ids, other_partitioner, other_options, other_module})
    EXPECT_FALSE(compile(other).from_cache);
  EXPECT_EQ(cached().size(), 6u);
}

TEST_F(CompileFor, ACacheThatOthersCanWriteIsRefused) {
  fs::create_directory(options_.cache);
  ::chmod(options_.cache.c_str(), 0777);
  EXPECT_TRUE(throws_error(compiling(request("cpu:1")), ErrorCode::kPermissionDenied,
                           {options_.cache, "0777"}));
  ::chmod(options_.cache.c_str(), 0755);
  EXPECT_FALSE(compile(request("cpu:1")).from_cache);
}

TEST_F(CompileFor, TheCacheRemovesWhatWasUsedLongestAgo) {
  auto is_cached = [&](const char* target) { return compile(request(target)).from_cache; };
  auto age = [&](int hours) {
    for (const fs::path& path : cached())
      fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(hours));
  };
  compile(request("cpu:1"));
  std::uint64_t each = fs::file_size(cached().at(0));
  age(2);
  compile(request("cpu:2"));
  age(2);
  EXPECT_TRUE(compile(request("cpu:1")).from_cache) << "now the last that was used";
  CompiledCache cache(options_.cache, 2 * each + each / 2);
  cache.keep("third", compile(request("cpu:1"))).value();
  EXPECT_EQ(cached().size(), 2u);
  EXPECT_TRUE(cache.find("third").has_value());
  EXPECT_TRUE(is_cached("cpu:1"));
  EXPECT_FALSE(is_cached("cpu:2"));
  CompiledCache(options_.cache, 0).keep("fourth", compile(request("cpu:1"))).value();
  EXPECT_EQ(cached().size(), 0u);
}

TEST_F(CompileFor, TheBoundOfTheCacheIsASetting) {
  ::setenv("MESHARD_COMPILED_CACHE_MB", "3", 1);
  EXPECT_EQ(CompiledCache::most_bytes_set().value(), std::uint64_t{3} << 20);
  for (const char* text : {"-1", "3x", "99999999999999999999"}) {
    ::setenv("MESHARD_COMPILED_CACHE_MB", text, 1);
    Result<std::uint64_t> most_bytes = CompiledCache::most_bytes_set();
    EXPECT_TRUE(throws_error([&] { most_bytes.value(); }, ErrorCode::kInvalidArgument,
                             {"MESHARD_COMPILED_CACHE_MB", text}));
    EXPECT_FALSE(compile_for(request("cpu:1"), options_).ok()) << "and does not throw";
  }
  ::unsetenv("MESHARD_COMPILED_CACHE_MB");
}

TEST_F(CompileFor, PartsOfAKilledProcessAreRemoved) {
  fs::create_directory(options_.cache);
  std::ofstream(fs::path(options_.cache) / "0123.compiled.part-1-0") << "half";
  compile(request("cpu:1"));
  EXPECT_EQ(cached().size(), 1u);
}

TEST_F(CompileFor, ADamagedEntryIsReplaced) {
  compile(request("cpu:4"));
  ASSERT_EQ(cached().size(), 1u);
  std::string path = cached()[0];
  std::string whole = read_whole_file(path).value();
  for (std::size_t size : {std::size_t{0}, std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
    std::ofstream(path, std::ios::trunc) << whole.substr(0, size);
    EXPECT_FALSE(compile(request("cpu:4")).from_cache) << size;
    EXPECT_TRUE(compile(request("cpu:4")).from_cache) << size;
  }
  std::string flipped = whole;
  flipped[whole.size() - 3] ^= 1;
  std::ofstream(path, std::ios::trunc) << flipped;
  EXPECT_FALSE(compile(request("cpu:4")).from_cache);
}

TEST_F(CompileFor, AnUnwritableCacheCostsNoResult) {
  std::ofstream(root_.path() + "/file") << "no folder";
  options_.cache = root_.path() + "/file/below";
  EXPECT_FALSE(compile(request("cpu:4")).from_cache);
}

TEST_F(CompileFor, ACrashIsAnErrorWithTheLastWords) {
  fate("abort");
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kInternal,
                           {"crashed (signal 6)", "while compiling", "fake compiler: abort"}));
  EXPECT_TRUE(cached().empty());
}

TEST_F(CompileFor, AHangEndsAtTheTimeLimit) {
  fate("hang");
  options_.time_limit = std::chrono::seconds(1);
  std::vector<std::string> steps;
  options_.progress = [&](const std::string& step) { steps.push_back(step); };
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kDeadlineExceeded,
                           {"after 1 s", "while compiling", "fake compiler: hang"}));
  EXPECT_EQ(steps.back(), "compiling");
}

TEST_F(CompileFor, TellsTheTimeOnceASecond) {
  fate("hang");
  options_.time_limit = std::chrono::seconds(3);
  std::vector<std::string> steps;
  options_.progress = [&](const std::string& step) { steps.push_back(step); };
  EXPECT_FALSE(compile_for(request("cpu:4"), options_).ok());
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "compiling, 1 s"), 1);
  EXPECT_EQ(std::count(steps.begin(), steps.end(), "compiling, 2 s"), 1);
}

TEST_F(CompileFor, AnErrorKeepsItsWordsAndCode) {
  fate("3 -:7:3: expected an operand");
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kInvalidArgument,
                           {"for cpu:4", "-:7:3: expected an operand"}));
  fate("13 RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.39G of 15.75G hbm.");
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kResourceExhausted,
                           {"Used 17.39G of 15.75G"}));
  EXPECT_TRUE(cached().empty());
}

TEST_F(CompileFor, AnExceptionFromProgressLeavesNothing) {
  fate("hang");
  options_.progress = [](const std::string&) { throw std::runtime_error("stop"); };
  EXPECT_THROW((void)compile_for(request("cpu:4"), options_), std::runtime_error);
}

TEST_F(CompileFor, ACancelledCompileLeavesNothing) {
  fate("hang");
  std::atomic<int> calls = 0;
  options_.is_cancelled = [&] { return ++calls == 3; };
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kCancelled, {"cancelled"}));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(cached().empty());
}

TEST_F(CompileFor, RefusesUnsoundRequestsBeforeStarting) {
  ::setenv("MESHARD_FAKE_ON_CREATE", "abort", 1);
  auto refused = [&](CompileRequest request, const std::vector<std::string>& parts) {
    return throws_error(compiling(std::move(request)), ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refused(request("cpu:4", ""), {"empty"}));
  CompileRequest too_many = request("cpu:4");
  too_many.options.num_partitions = 5;
  EXPECT_TRUE(refused(too_many, {"5 partitions", "cpu:4 has 4"}));
  too_many.options.num_partitions = 0;
  EXPECT_TRUE(refused(too_many, {"0 partitions"}));
  CompileRequest ids = request("cpu:4");
  ids.options.device_assignment = {4};
  EXPECT_TRUE(refused(ids, {"no device 4"}));
  ids.options.device_assignment = {0, 1};
  EXPECT_TRUE(refused(ids, {"2 device ids for 1 partitions"}));
  ids.options.num_partitions = 2;
  ids.options.device_assignment = {1, 1};
  EXPECT_TRUE(refused(ids, {"device 1 is listed twice"}));
}

TEST_F(CompileFor, RefusesCallsOfThisProcessForOtherTargetsThanCpus) {
  ::setenv("MESHARD_FAKE_ON_CREATE", "abort", 1);
  const std::string calls = std::string(kSmall) + "// @meshard.host_call";
  EXPECT_TRUE(throws_error(compiling(request("v5e:2x2", calls)), ErrorCode::kUnimplemented,
                           {"debug_print", "v5e:2x2"}));
  EXPECT_TRUE(throws_error(compiling(request("h100:8", calls)), ErrorCode::kUnimplemented,
                           {"debug_print", "h100:8"}));
}

TEST_F(CompileFor, SaysWhatIsNotThere) {
  options_.plugin = "/no/such/plugin.so";
  EXPECT_TRUE(
      throws_error(compiling(request("cpu:4")), ErrorCode::kNotFound, {"/no/such/plugin.so"}));
  options_.plugin = root_.path() + "/text.so";
  std::ofstream(options_.plugin) << "text";
  EXPECT_TRUE(
      throws_error(compiling(request("cpu:4")), ErrorCode::kFailedPrecondition, {"text.so"}));
  ::setenv("MESHARD_COMPILE", "/no/such/program", 1);
  options_.plugin = MESHARD_FAKE_PLUGIN;
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kNotFound,
                           {"MESHARD_COMPILE=/no/such/program"}));
  // A program that exits successfully without an answer.
  ::setenv("MESHARD_COMPILE", "/bin/true", 1);
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kInternal,
                           {"exit code 0", "printed nothing"}));
  ::unsetenv("MESHARD_COMPILE");
}

TEST_F(CompileFor, ATruncatedAnswerIsDataLoss) {
  std::string program = root_.path() + "/answers";
  std::ofstream(program)
      << "#!/bin/sh\nread n; printf '\\012\\177abc' > \"$1/answer-$n\"; echo done; cat\n";
  fs::permissions(program, fs::perms::owner_all);
  ::setenv("MESHARD_COMPILE", program.c_str(), 1);
  EXPECT_TRUE(throws_error(compiling(request("cpu:4")), ErrorCode::kDataLoss, {"damaged"}));
  ::unsetenv("MESHARD_COMPILE");
  EXPECT_TRUE(cached().empty());
}

// If a process that compiles is killed, its compiler ends too and removes the folder.
TEST_F(CompileFor, NothingIsLeftOfAStarterThatIsKilled) {
  fate("hang");
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    (void)compile_for(request("cpu:4"), options_);
    ::_exit(0);
  }
  auto wait_until = [](auto condition) {
    for (int i = 0; i < 300 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return condition();
  };
  EXPECT_TRUE(wait_until([&] { return !fs::is_empty(temporary_); })) << "nothing was started";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(wait_until([&] { return fs::is_empty(temporary_); }));
}

// ---- real compilers ----------------------------------------------------------------------------

TEST_F(CompileForReal, Cpu) {
  auto compiled = product("cpu:4");
  if (!compiled) GTEST_SKIP() << "no CPU plugin";
  expect_product(*compiled);
}

TEST_F(CompileForReal, Gpu) {
  auto compiled = product("h100:8");
  if (!compiled) GTEST_SKIP() << "no CUDA plugin; ./dev setup --targets fetches it";
  expect_product(*compiled);
  ASSERT_TRUE(product("b200:2x2"));
}

TEST_F(CompileForReal, Tpu) {
  auto compiled = product("v5e:2x2");
  if (!compiled) GTEST_SKIP() << "no TPU plugin; ./dev setup --targets fetches it";
  expect_product(*compiled);
  EXPECT_EQ(compiled->parameter_shardings.size(), 2u);
  EXPECT_EQ(compiled->output_shardings.size(), 1u);
}

TEST_F(CompileForReal, SeveralSlices) {
  CompileRequest sharded = request("v5e:2x2*2", kSharded);
  sharded.options.num_partitions = 4;
  sharded.options.device_assignment = {100000, 100001, 200000, 200001};
  auto compiled = compile_for(sharded, options_);
  if (!compiled.ok() && compiled.error().code() == ErrorCode::kNotFound)
    GTEST_SKIP() << "no TPU plugin; ./dev setup --targets fetches it";
  ASSERT_TRUE(compiled.ok()) << compiled.error().what();
  sharded.options.device_assignment = {0, 1, 2, 3};
  EXPECT_TRUE(throws_error(compiling(sharded), ErrorCode::kInvalidArgument, {"no device 0"}));
}

// Rows over one axis become columns over the other. No all-to-all does that: XLA warns.
// libtpu refuses it in an internal check, with the words "limited ICI routing".
TEST_F(CompileForReal, APartOfALargeV5eSlice) {
  CompileRequest part = request("v5e:4x8", kSharded);
  part.options.num_partitions = 4;
  auto compiled = compile_for(part, options_);
  ASSERT_FALSE(compiled.ok());
  if (compiled.error().code() == ErrorCode::kNotFound) GTEST_SKIP() << "no TPU plugin";
  EXPECT_TRUE(throws_error([&] { return compiled.value(); }, ErrorCode::kInvalidArgument,
                           {"the program uses 4 of 32 devices", "only 1 device or all"}));
}

TEST_F(CompileForReal, WarningsOfThePartitionerAreInTheLog) {
  constexpr const char* kExchange = R"(module @exchange {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(%x: tensor<768x768xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>})
      -> (tensor<768x768xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
    %0 = stablehlo.sine %x : tensor<768x768xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {}]> : tensor<768x768xf32>
    %2 = sdy.sharding_constraint %1 <@mesh, [{}, {"a"}]> : tensor<768x768xf32>
    %3 = stablehlo.cosine %2 : tensor<768x768xf32>
    return %3 : tensor<768x768xf32>
  }
}
)";
  int tried = 0;
  for (const char* target : {"cpu:8", "h100:8", "v5e:2x4"}) {
    CompileRequest exchange = request(target, kExchange);
    exchange.options.num_partitions = 8;
    auto compiled = compile_for(exchange, options_);
    if (!compiled.ok() && compiled.error().code() == ErrorCode::kNotFound) continue;
    ASSERT_TRUE(compiled.ok()) << target << ": " << compiled.error().what();
    EXPECT_NE(compiled->log.find("Involuntary full rematerialization"), std::string::npos)
        << target << ": " << compiled->log;
    ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "no plugin";
}

// 48 GiB on a device that has 15.75 GiB.
TEST_F(CompileForReal, WhatDoesNotFitIsRefusedWithTheNumbers) {
  constexpr const char* kLarge = R"(func.func public @main(%x: tensor<65536x65536xf32>,
    %y: tensor<65536x65536xf32>) -> tensor<65536x65536xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<65536x65536xf32>, tensor<65536x65536xf32>) -> tensor<65536x65536xf32>
  return %0 : tensor<65536x65536xf32>
})";
  auto compiled = compile_for(request("v5e:1x1", kLarge), options_);
  ASSERT_FALSE(compiled.ok());
  if (compiled.error().code() == ErrorCode::kNotFound) GTEST_SKIP() << "no TPU plugin";
  EXPECT_EQ(compiled.error().code(), ErrorCode::kResourceExhausted) << compiled.error().what();
  EXPECT_EQ(memory_shortage(compiled.error().message()),
            (MemoryShortage{std::int64_t{48} << 30, (std::int64_t{63} << 30) / 4, true}))
      << compiled.error().what();
}

TEST_F(CompileForReal, HostileModules) {
  struct Case {
    const char* module;
    std::vector<ErrorCode> codes;
  };
  const Case cases[] = {
      {"garbage", {ErrorCode::kInvalidArgument, ErrorCode::kUnknown}},
      {"module {", {ErrorCode::kInvalidArgument, ErrorCode::kUnknown}},
      {"\x4d\x4c\xef\x52 cut off", {ErrorCode::kInvalidArgument, ErrorCode::kUnknown}},
      // The number of elements overflows 64 bits: some compilers end their process.
      {"func.func public @main(%x: tensor<9223372036854775807x4xf32>) -> "
       "tensor<9223372036854775807x4xf32> { return %x : tensor<9223372036854775807x4xf32> }",
       {ErrorCode::kInvalidArgument, ErrorCode::kUnknown, ErrorCode::kInternal,
        ErrorCode::kResourceExhausted}}};
  int tried = 0;
  for (const char* target : {"cpu:4", "h100:4", "v5e:2x2"})
    for (const Case& hostile : cases) {
      auto compiled = compile_for(request(target, hostile.module), options_);
      ASSERT_FALSE(compiled.ok()) << target << " accepted " << hostile.module;
      if (compiled.error().code() == ErrorCode::kNotFound) continue;
      ++tried;
      EXPECT_NE(std::count(hostile.codes.begin(), hostile.codes.end(), compiled.error().code()), 0)
          << target << " " << hostile.module << ": " << compiled.error().what();
    }
  EXPECT_TRUE(cached().empty());
  if (tried == 0) GTEST_SKIP() << "no plugin";
}

Compiled full() {
  Compiled compiled;
  compiled.optimized_program = std::string("module\0bytes", 12);
  compiled.memory = pjrt::CompiledMemoryStats{.generated_code = 1,
                                              .arguments = 2,
                                              .outputs = std::int64_t{1} << 40,
                                              .aliases = 4,
                                              .temporaries = 5,
                                              .peak = -6,
                                              .host_arguments = 7,
                                              .host_outputs = 8,
                                              .host_temporaries = 9};
  compiled.cost_analysis = {{"flops", 1.5f},
                            {"count", std::int64_t{-3}},
                            {"list", std::vector<std::int64_t>{1, -2, 300}},
                            {"none", std::vector<std::int64_t>{}},
                            {"text", std::string("a\"b")},
                            {"flag", true},
                            {"off", false}};
  compiled.parameter_shardings = {"p0", "", "p2"};
  compiled.output_shardings = {"", "o1"};
  compiled.propagated_program = "propagated";
  compiled.buffer_assignment = "buffers";
  compiled.log = "W full rematerialization\n";
  compiled.platform_version = "TFRT TPU v5 lite";
  compiled.compile_seconds = 12.25;
  return compiled;
}

void expect_equal(const Compiled& a, const Compiled& b) {
  EXPECT_EQ(a.optimized_program, b.optimized_program);
  ASSERT_EQ(a.memory.has_value(), b.memory.has_value());
  if (a.memory) {
    EXPECT_EQ(a.memory->generated_code, b.memory->generated_code);
    EXPECT_EQ(a.memory->arguments, b.memory->arguments);
    EXPECT_EQ(a.memory->outputs, b.memory->outputs);
    EXPECT_EQ(a.memory->aliases, b.memory->aliases);
    EXPECT_EQ(a.memory->temporaries, b.memory->temporaries);
    EXPECT_EQ(a.memory->peak, b.memory->peak);
    EXPECT_EQ(a.memory->host_arguments, b.memory->host_arguments);
    EXPECT_EQ(a.memory->host_outputs, b.memory->host_outputs);
    EXPECT_EQ(a.memory->host_temporaries, b.memory->host_temporaries);
  }
  EXPECT_EQ(a.cost_analysis, b.cost_analysis);
  EXPECT_EQ(a.parameter_shardings, b.parameter_shardings);
  EXPECT_EQ(a.output_shardings, b.output_shardings);
  EXPECT_EQ(a.propagated_program, b.propagated_program);
  EXPECT_EQ(a.buffer_assignment, b.buffer_assignment);
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.platform_version, b.platform_version);
  EXPECT_EQ(a.compile_seconds, b.compile_seconds);
}

TEST(Compiled, RoundTripOfEverything) {
  auto back = Compiled::deserialize(full().serialize());
  ASSERT_TRUE(back.ok()) << back.error().what();
  expect_equal(*back, full());
  EXPECT_FALSE(back->from_cache);
}

TEST(Compiled, RoundTripOfNothing) {
  auto back = Compiled::deserialize(Compiled().serialize());
  ASSERT_TRUE(back.ok()) << back.error().what();
  expect_equal(*back, Compiled());
}

TEST(Compiled, EveryCutIsDataLoss) {
  std::string bytes = full().serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto cut = Compiled::deserialize(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut.ok()) << size << " of " << bytes.size() << " bytes were accepted";
    EXPECT_EQ(cut.error().code(), ErrorCode::kDataLoss);
  }
}

TEST(Compiled, DamagedBytesNeverCrash) {
  TestRandom random;
  std::string whole = full().serialize();
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) {
      auto at = static_cast<std::size_t>(random.between(0, std::ssize(bytes) - 1));
      bytes[at] = static_cast<char>(random.between(0, 255));
    }
    refused += !Compiled::deserialize(bytes).ok();
  }
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(Compiled::deserialize("no such thing").ok());
  EXPECT_FALSE(Compiled::deserialize(whole + "\x78\x01").ok()) << "an unknown field";
}

}  // namespace

}  // namespace meshard
