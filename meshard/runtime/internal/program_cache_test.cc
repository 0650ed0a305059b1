#include "meshard/runtime/internal/program_cache.h"

#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/compile_runner.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Cache = OnPlugin;

// x * factor over this mesh, recorded at `line` of the user's file.
Program product(const Mesh& mesh, int factor, std::uint32_t line = 1, std::string name = "main") {
  internal::TraceScope scope;
  SourceLocation where{"user.cc", "f", line};
  Tensor x = make_parameter({DType::f32, {8}}, Sharding(mesh, P("x")), where);
  Tensor y = multiply(In(x, where), In(factor, where));
  return {.name = std::move(name),
          .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
          .donated = {}};
}
std::shared_ptr<const LoadedProgram> get(ProgramCache& cache, const Program& program) {
  return cache.get(program, SourceLocation::current());
}

TEST_F(Cache, EqualProgramsAreOne) {
  ProgramCache cache(process_runtime().platforms);
  Mesh mesh({{"x", 2}});
  auto first = get(cache, product(mesh, 3, 10));
  EXPECT_EQ(get(cache, product(Mesh({{"x", 2}}), 3, 99)), first) << "source lines do not count";
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().cache_hits, 1u);
  EXPECT_NE(get(cache, product(mesh, 4)), first);
  EXPECT_EQ(done().compiles, 2u);
}

// A compile whose wait has ended goes on, and its program is in the cache.
TEST_F(Cache, AnotherThreadCompiles) {
  static std::string compiled;
  static std::thread thread;
  ProgramCache cache(process_runtime().platforms);
  Mesh mesh({{"x", 2}});
  internal::compile_runner = [](const std::string& name, std::function<void()> work) {
    compiled = name;
    thread = std::thread(std::move(work));
    throw std::runtime_error("interrupted");
  };
  EXPECT_THROW((void)get(cache, product(mesh, 3, 1, "slow")), std::runtime_error);
  thread.join();
  EXPECT_EQ(compiled, "slow");
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_NE(get(cache, product(mesh, 3, 1, "slow")), nullptr) << "known: nothing is run";
  EXPECT_EQ(done().cache_hits, 1u);
  internal::compile_runner = [](const std::string&, std::function<void()> work) { work(); };
  EXPECT_TRUE(throws_error(
      [&] {
        (void)get(cache, product(Mesh({{"x", 2}}, {0, 50}), 3));
      },
      ErrorCode::kNotFound, {"program_cache_test.cc:", "device 50 does not exist"}));
  EXPECT_NE(get(cache, product(mesh, 4)), nullptr);
  internal::compile_runner = nullptr;
  EXPECT_EQ(done().compiles, 2u);
}

TEST_F(Cache, OtherDevicesAreALoadAndNoCompile) {
  ProgramCache cache(process_runtime().platforms);
  auto first = get(cache, product(Mesh({{"x", 2}}), 3));
  auto moved = get(cache, product(Mesh({{"x", 2}}, {6, 3}), 3));
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().retargets, 1u);
  EXPECT_EQ(moved->executable().devices()[0]->id(), 6);
  EXPECT_EQ(moved->executable().devices()[1]->id(), 3);
  EXPECT_EQ(moved->shardings().arguments[0]->mesh().device_id(0), 6);
  EXPECT_EQ(first->executable().devices()[0]->id(), 0);
}

TEST_F(Cache, KeepsTheProgramsThatWereAskedForLast) {
  ProgramCache cache(process_runtime().platforms, 2);
  Mesh mesh({{"x", 2}});
  auto first = get(cache, product(mesh, 3));
  (void)get(cache, product(mesh, 4));
  EXPECT_EQ(get(cache, product(mesh, 3)), first);
  (void)get(cache, product(mesh, 5));
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(done().compiles, 3u);
  EXPECT_EQ(get(cache, product(mesh, 3)), first);
  EXPECT_EQ(done().compiles, 3u);
  (void)get(cache, product(mesh, 4));  // the least recently used
  EXPECT_EQ(done().compiles + done().retargets, 4u);
}

TEST_F(Cache, DonationIsPartOfTheProgram) {
  ProgramCache cache(process_runtime().platforms);
  Program plain = product(Mesh({{"x", 2}}), 3), donating = plain;
  donating.donated = {0};
  EXPECT_NE(get(cache, plain), get(cache, donating));
  EXPECT_EQ(done().compiles, 2u);
}

TEST_F(Cache, ADeviceThatDoesNotExistIsAnErrorAtTheUsersLine) {
  ProgramCache cache(process_runtime().platforms);
  EXPECT_TRUE(throws_error(
      [&] {
        (void)get(cache, product(Mesh({{"x", 2}}, {0, 50}), 3));
      },
      ErrorCode::kNotFound, {"program_cache_test.cc:", "device 50 does not exist"}));
  EXPECT_EQ(done().compiles, 0u);
}

// One program text over several meshes, then on other devices: each value keeps its own mesh.
TEST_F(Cache, RetargetedProgramsKeepEachValuesMesh) {
  using testing::ElementsAre;
  for (std::int64_t k : {0, 4, 2}) {
    Mesh f({{"x", 2}}, {k, k + 1}), g({{"x", 2}}, {k + 1, k});
    Tensor u = mark_sharding(from_host(std::vector<float>{0, 1}, {2}), f, P("x"));
    Tensor x = mark_sharding(from_host(std::vector<float>{0, 1, 2, 3}, {4}), g, P("x"));
    EXPECT_THAT((x + sum(u) * 0).to_vector<float>(), ElementsAre(0, 1, 2, 3)) << "from " << k;
  }
}

TEST_F(Cache, RetargetedProgramsKeepNamesOrderAndUnmarkedArguments) {
  using testing::ElementsAre;
  auto f = jit([](Tensor a, Tensor b, Tensor host) {
    return std::tuple(a + 1, b * 2 + host, reshape(b, {2, 2}));
  });
  Tensor host = from_host(std::vector<float>{10, 20, 30, 40}, {4});
  for (std::int64_t k : {0, 4}) {
    Mesh rows({{"r", 4}}, {k, k + 1, k + 2, k + 3});
    Mesh grid({{"p", 2}, {"q", 2}}, {k + 3, k + 1, k + 2, k});
    Tensor a = mark_sharding(from_host(std::vector<float>{0, 1, 2, 3}, {4}), rows, P("r"));
    Tensor b = mark_sharding(from_host(std::vector<float>{0, 1, 2, 3}, {4}), grid, P({"p", "q"}));
    auto [c, d, e] = f(a, b, host);
    EXPECT_THAT(c.to_vector<float>(), ElementsAre(1, 2, 3, 4)) << "from " << k;
    EXPECT_THAT(d.to_vector<float>(), ElementsAre(10, 22, 34, 46)) << "from " << k;
    EXPECT_THAT(e.to_vector<float>(), ElementsAre(0, 1, 2, 3)) << "from " << k;
  }
}

TEST_F(Cache, OneDeviceMeshesOfAnyName) {
  for (auto [name, id] : {std::pair("x", 0), std::pair("y", 3), std::pair("z", 5)}) {
    Tensor x = mark_sharding(from_host(std::vector<float>{1, 2}, {2}),
                             Mesh({{name, 1}}, std::vector<std::int64_t>{id}), P(none));
    EXPECT_THAT((x + 1).to_vector<float>(), testing::ElementsAre(2, 3));
    EXPECT_EQ((x + 1).placement(), "recorded");
  }
  EXPECT_THAT((from_host(std::vector<float>{1, 2}, {2}) + 1).to_vector<float>(),
              testing::ElementsAre(2, 3));
}

}  // namespace
}  // namespace meshard
