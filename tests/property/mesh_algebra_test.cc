// Compares random chains of operations on meshes with tables of devices.
//
// MESHARD_CHAINS=n runs n chains; MESHARD_NIGHTLY=1 runs 100,000.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/property/mesh_program.h"
#include "tests/support/random.h"

namespace meshard::model {
namespace {

int chains_to_run() {
  if (const char* chains = std::getenv("MESHARD_CHAINS")) return std::atoi(chains);
  const char* nightly = std::getenv("MESHARD_NIGHTLY");
  return nightly != nullptr && std::string(nightly) == "1" ? 100000 : 2000;
}

// The first chain that fails with a wrong model, and its failure, after shrinking.
struct Found {
  Program program;
  Failure failure;
};

std::optional<Found> find_failure(TestRandom& random, int chains, Wrong wrong) {
  for (int i = 0; i < chains; ++i) {
    Program program = draw_program(random, 20);
    std::optional<Failure> failure = run(program, wrong);
    if (!failure) continue;
    program = shrink(std::move(program), *failure, wrong);
    return Found{program, *run(program, wrong)};
  }
  return std::nullopt;
}

TEST(MeshAlgebra, AgreesWithTablesOverRandomChains) {
  TestRandom random;
  std::optional<Found> found = find_failure(random, chains_to_run(), Wrong::kNothing);
  ASSERT_FALSE(found) << "The smallest chain that fails, at m" << found->failure.step << ":\n"
                      << to_code(found->program) << found->failure.check << ": "
                      << found->failure.detail;
}

// Tests the test itself: it detects a wrong model, and shrinks to the smallest possible chain.
TEST(MeshAlgebraShrinker, FindsAnOperationThatIsWrong) {
  TestRandom random;
  std::optional<Found> found = find_failure(random, 500, Wrong::kUnflattenTurnsParts);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->program.roots.size(), 1u) << to_code(found->program);
  ASSERT_EQ(found->program.steps.size(), 1u) << to_code(found->program);
  EXPECT_EQ(found->failure.check, "axes");
  EXPECT_LE(found->program.roots[0].devices.size(), 2u) << to_code(found->program);
  EXPECT_EQ(found->program.steps[0].parts.size(), 2u) << to_code(found->program);
  EXPECT_NE(to_code(found->program).find(".unflatten(\""), std::string::npos);
}

TEST(MeshAlgebraShrinker, FindsOperationsThatAreWrongTogether) {
  TestRandom random;
  std::optional<Found> found = find_failure(random, 500, Wrong::kSubmeshOfFirstRow);
  ASSERT_TRUE(found);
  // A slice with two rows, and a submesh of its second row.
  ASSERT_EQ(found->program.steps.size(), 2u) << to_code(found->program);
  EXPECT_EQ(found->program.steps[0].operation, Operation::kSlice) << to_code(found->program);
  ASSERT_EQ(found->program.roots.size(), 1u) << to_code(found->program);
  EXPECT_LE(found->program.roots[0].devices.size(), 4u) << to_code(found->program);
}

TEST(MeshAlgebraShrinker, PrintsACode) {
  Program program;
  program.roots = {{{{"a", 2}, {"b", 2}}, {0, 1, 2, 3}}, {{{"c", 2}}, {7, 5}}};
  Step slice, join, submesh;
  slice.names = {"b"};
  join.operation = Operation::kConcatenate;
  join.target = 2;
  join.more = {1};
  submesh.operation = Operation::kSubmesh;
  submesh.target = 2;
  submesh.number = 3;
  program.steps = {slice, join, submesh};
  EXPECT_EQ(to_code(program),
            "Mesh m0({{\"a\", 2}, {\"b\", 2}});\n"
            "Mesh m1({{\"c\", 2}}, {7, 5});\n"
            "Mesh m2 = m0.slice({\"b\"});\n"
            "Mesh m3 = m2;  // concatenate({m2, m1}) is refused or none\n"
            "Mesh m4 = *m2.submesh({}, 3);\n");
}

}  // namespace
}  // namespace meshard::model
