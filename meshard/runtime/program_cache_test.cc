#include "meshard/runtime/program_cache.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Cache = OnPlugin;

// x * factor over this mesh; `line` is where the user wrote it.
Program product(const Mesh& mesh, int factor, std::uint32_t line = 1, std::string name = "main") {
  TraceScope scope;
  SourceLocation where{"user.cc", "f", line};
  Tensor x = make_parameter({DType::f32, {8}}, Sharding(mesh, P("x")), where);
  Tensor y = multiply(In(x, where), In(factor, where));
  return {.name = std::move(name),
          .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
          .donated = {}};
}
std::shared_ptr<const LoadedProgram> get(ProgramCache& cache, const Program& program) {
  return cache.get(runtime_client(), program, SourceLocation::current());
}

TEST_F(Cache, EqualProgramsAreOne) {
  ProgramCache cache;
  Mesh mesh({{"x", 2}});
  auto first = get(cache, product(mesh, 3, 10));
  EXPECT_EQ(get(cache, product(Mesh({{"x", 2}}), 3, 99)), first) << "source lines do not count";
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().cache_hits, 1u);
  EXPECT_NE(get(cache, product(mesh, 4)), first);
  EXPECT_EQ(done().compiles, 2u);
}

TEST_F(Cache, OtherDevicesAreALoadAndNoCompile) {
  ProgramCache cache;
  auto first = get(cache, product(Mesh({{"x", 2}}), 3));
  auto moved = get(cache, product(Mesh({{"x", 2}}, {6, 3}), 3));
  EXPECT_EQ(done().compiles, 1u);
  EXPECT_EQ(done().retargets, 1u);
  EXPECT_EQ(moved->executable().devices()[0]->id(), 6);
  EXPECT_EQ(moved->executable().devices()[1]->id(), 3);
  EXPECT_EQ(moved->shardings().arguments[0]->mesh().device_id(0), 6);
  EXPECT_EQ(first->executable().devices()[0]->id(), 0);
}

TEST_F(Cache, DonationIsPartOfTheProgram) {
  ProgramCache cache;
  Program plain = product(Mesh({{"x", 2}}), 3), donating = plain;
  donating.donated = {0};
  EXPECT_NE(get(cache, plain), get(cache, donating));
  EXPECT_EQ(done().compiles, 2u);
}

TEST_F(Cache, ADeviceThatDoesNotExistIsAnErrorAtTheUsersLine) {
  ProgramCache cache;
  EXPECT_TRUE(throws_error(
      [&] {
        (void)get(cache, product(Mesh({{"x", 2}}, {0, 50}), 3));
      },
      ErrorCode::kNotFound, {"program_cache_test.cc:", "device 50 does not exist"}));
  EXPECT_EQ(done().compiles, 0u);
}

}  // namespace
}  // namespace meshard
