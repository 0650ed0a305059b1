#include "meshard/runtime/disk_cache.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "meshard/base/whole_file.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/internal/load_program.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/internal/program_cache.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

class OnDisk : public OnPlugin {
 protected:
  void SetUp() override {
    OnPlugin::SetUp();
    std::string name = (fs::temp_directory_path() / "meshard-programs-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  void TearDown() override {
    fs::remove_all(folder_);
    OnPlugin::TearDown();
  }
  DiskCache disk() const { return DiskCache(folder_.string(), std::uint64_t{1} << 30); }
  /// A cache without programs in memory, as in a new process.
  ProgramCache process() const { return ProgramCache(process_runtime().platforms, 100, disk()); }
  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  static std::string newest_miss() {
    auto misses = disk_misses();
    return misses.empty() ? "" : misses.back();
  }
  fs::path folder_;
};

// A program with a collective that takes long to compile: x @ w, several times, with sums over the
// shards.
Program slow_program(const Mesh& mesh, float factor = 2, bool donated = false) {
  internal::TraceScope scope;
  SourceLocation where{"user.cc", "f", 1};
  Tensor x = make_parameter({DType::f32, {16, 16}}, Sharding(mesh, P("x", none)), where);
  Tensor y = x;
  for (int i = 0; i < 12; ++i) y = tanh(matmul(y, y) * factor) + sum(y);
  return {.name = "slow",
          .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
          .donated = donated ? std::vector<std::uint32_t>{0} : std::vector<std::uint32_t>{}};
}

HostArray run(const LoadedProgram& program, const Mesh& mesh) {
  HostArray numbers = HostArray::full<float>({16, 16}, 0.25f);
  Tensor x = mark_sharding(from_host(numbers), mesh, P("x", none));
  sync(x);
  const auto& array = static_cast<const DeviceArray&>(*x.value().storage());
  std::vector<const DeviceArray*> arguments = {&array};
  std::vector<Tensor> results(1);
  program.launch(arguments, results, SourceLocation::current()).value();
  return results[0].to_host();
}

TEST_F(OnDisk, AProgramIsLoadedByTheNextProcess) {
  Mesh mesh({{"x", 4}});
  ProgramCache first = process(), second = process();
  auto compiled = first.get(slow_program(mesh), SourceLocation::current());
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().disk_misses, 1u);
  EXPECT_EQ(newest_miss(), "\"slow\": not compiled before");
  EXPECT_EQ(num_files(), 1u);
  auto loaded = second.get(slow_program(mesh), SourceLocation::current());
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().disk_hits, 1u);
  EXPECT_EQ(loaded->executable().signature(), compiled->executable().signature());
  EXPECT_EQ(loaded->shardings().results, compiled->shardings().results);
  EXPECT_EQ(loaded->shardings().arguments, compiled->shardings().arguments);
  EXPECT_EQ(run(*loaded, mesh).to_vector<float>(), run(*compiled, mesh).to_vector<float>());
}

TEST_F(OnDisk, AProgramMayStayInMemory) {
  Mesh mesh({{"x", 4}});
  ProgramCache first = process();
  Program program = slow_program(mesh);
  program.keep_on_disk = false;
  first.get(program, SourceLocation::current());
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().disk_misses, 0u);
  EXPECT_EQ(num_files(), 0u);
}

TEST_F(OnDisk, AProgramIsLoadedForOtherDevices) {
  Mesh mesh({{"x", 2}}), other({{"x", 2}}, {6, 3});
  ProgramCache first = process(), second = process();
  auto compiled = first.get(slow_program(mesh), SourceLocation::current());
  auto loaded = second.get(slow_program(other), SourceLocation::current());
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().disk_hits, 1u);
  EXPECT_EQ(loaded->executable().devices()[0]->id(), 6);
  EXPECT_EQ(loaded->executable().devices()[1]->id(), 3);
  EXPECT_EQ(run(*loaded, other).to_vector<float>(), run(*compiled, mesh).to_vector<float>());
}

// What the CPU plugin serializes of an executable that was itself loaded from bytes does not run.
TEST_F(OnDisk, AProgramFromDiskIsLoadedForFurtherDevices) {
  Mesh mesh({{"x", 4}}), other({{"x", 4}}, {7, 2, 5, 0}), third({{"x", 4}}, {4, 5, 6, 7});
  HostArray expected;
  {
    ProgramCache first = process();
    expected = run(*first.get(slow_program(mesh), SourceLocation::current()), mesh);
  }
  ProgramCache next = process();
  restart();
  for (const Mesh& each : {mesh, other, third}) {
    auto loaded = next.get(slow_program(each), SourceLocation::current());
    EXPECT_EQ(run(*loaded, each), expected) << each;
  }
  EXPECT_EQ(done().disk_hits, 3u);
  EXPECT_EQ(done().compiles, 0u);
}

TEST_F(OnDisk, OtherProgramsAreOtherEntries) {
  Mesh mesh({{"x", 2}});
  ProgramCache cache = process();
  (void)cache.get(slow_program(mesh), SourceLocation::current());
  (void)cache.get(slow_program(mesh, 3), SourceLocation::current());
  (void)cache.get(slow_program(Mesh({{"x", 4}})), SourceLocation::current());
  (void)cache.get(slow_program(mesh, 2, /*donated=*/true), SourceLocation::current());
  EXPECT_EQ(done().compiles, 4u);
  EXPECT_EQ(num_files(), 4u);
}

TEST_F(OnDisk, ADonatedArgumentIsStillDonated) {
  Mesh mesh({{"x", 2}});
  ProgramCache first = process(), second = process();
  (void)first.get(slow_program(mesh, 2, /*donated=*/true), SourceLocation::current());
  auto loaded = second.get(slow_program(mesh, 2, /*donated=*/true), SourceLocation::current());
  EXPECT_EQ(done().disk_hits, 1u);
  EXPECT_EQ(loaded->executable().signature().donated, std::vector<int>{0});
  (void)run(*loaded, mesh);
}

TEST_F(OnDisk, AMissSaysWhatChanged) {
  Mesh mesh({{"x", 2}});
  LoweredModule lowered = lower(slow_program(mesh));
  pjrt::CompileOptions options;
  DiskCache::Key key = DiskCache::key_of(runtime_client(), lowered, options);
  EXPECT_THAT(key.environment, ::testing::AllOf(::testing::HasSubstr("plugin "),
                                                ::testing::HasSubstr("\nplatform cpu "),
                                                ::testing::HasSubstr("\ncores ")));
  disk().keep(key, {.executable = "bytes", .signature = {}}).value();
  EXPECT_EQ(disk().find(key)->executable, "bytes");
  DiskCache::Key other = key;
  other.environment = "another\n" + key.environment.substr(key.environment.find('\n') + 1);
  EXPECT_FALSE(disk().find(other));
  EXPECT_EQ(newest_miss(),
            cat("\"slow\": compiled before with \"",
                key.environment.substr(0, key.environment.find('\n')), "\", now \"another\""));
  options.overrides["xla_cpu_enable_fast_min_max"] = true;
  EXPECT_NE(DiskCache::key_of(runtime_client(), lowered, options).program, key.program);
  options.overrides.clear();
  options.num_partitions = 2;
  options.device_assignment = {0, 1};
  std::string two = DiskCache::key_of(runtime_client(), lowered, options).program;
  EXPECT_NE(two, key.program);
  options.device_assignment = {5, 3};
  EXPECT_EQ(DiskCache::key_of(runtime_client(), lowered, options).program, two);
}

TEST_F(OnDisk, DamagedEntriesAreCompiledAgain) {
  Mesh mesh({{"x", 2}});
  (void)process().get(slow_program(mesh), SourceLocation::current());
  fs::path path = fs::directory_iterator(folder_)->path();
  std::string whole = read_whole_file(path.string()).value();
  whole[whole.size() / 2] ^= 1;
  std::ofstream(path, std::ios::binary) << whole;
  (void)process().get(slow_program(mesh), SourceLocation::current());
  EXPECT_EQ(done().compiles, 2u);
  EXPECT_EQ(done().disk_hits, 0u);
  (void)process().get(slow_program(mesh), SourceLocation::current());
  EXPECT_EQ(done().disk_hits, 1u) << "it was written again";
  // Whole, but not an executable: it is refused.
  std::string name = path.stem().string();
  std::string bytes = disk().files().find(name).value();
  std::string cut = bytes.substr(0, bytes.size() / 2);
  disk().files().keep(name, cut).value();
  (void)process().get(slow_program(mesh), SourceLocation::current());
  EXPECT_EQ(done().compiles, 3u);
}

TEST_F(OnDisk, ProgramsThatCallThisProcessAreNotKept) {
  Mesh mesh({{"x", 2}});
  LoweredModule lowered = lower(slow_program(mesh));
  lowered.calls_host = true;
  (void)compile_and_load(process_runtime().platforms, runtime_client(), disk(), lowered, {0, 1},
                         SourceLocation::current())
      .value();
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(num_files(), 0u);
  EXPECT_EQ(done().disk_misses, 0u);
}

TEST_F(OnDisk, TheSizeIsASetting) {
  const char* variable = "MESHARD_PROGRAM_CACHE_MB";
  std::string before = std::getenv(variable) ? std::getenv(variable) : "";
  ::setenv(variable, "0", 1);
  EXPECT_FALSE(DiskCache::of_process().value().is_on());
  ::setenv(variable, "3", 1);
  EXPECT_EQ(DiskCache::of_process().value().files().most_bytes(), std::uint64_t{3} << 20);
  ::setenv(variable, "3x", 1);
  EXPECT_TRUE(throws_error([] { (void)DiskCache::of_process().value(); },
                           ErrorCode::kInvalidArgument, {variable, "3x"}));
  if (before.empty())
    ::unsetenv(variable);
  else
    ::setenv(variable, before.c_str(), 1);
}

}  // namespace
}  // namespace meshard
