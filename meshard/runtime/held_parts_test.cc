// Values over several processes: tests/processes/check_checkpoints.py.
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"

namespace meshard {
namespace {

using HeldParts = OnPlugin;

Tensor vector_of_five() { return from_host(std::vector<float>{1, 2, 3, 4, 5}, {5}); }

TEST_F(HeldParts, AValueWithoutASharding) {
  std::vector<HeldPart> whole{{Box{{0, 5}}, {0}}};
  EXPECT_EQ(held_parts(vector_of_five()), whole);
  EXPECT_EQ(held_parts(add(vector_of_five(), 1)), whole) << "a recorded value is computed";
  EXPECT_EQ(held_parts(from_host(std::vector<float>{}, {0, 3})),
            (std::vector<HeldPart>{{Box{{0, 0}, {0, 3}}, {0}}}));
}

TEST_F(HeldParts, EveryPartOnce) {
  Mesh grid({{"a", 4}, {"b", 2}});
  // Two elements for each position along "a": the last has none. Copies along "b" count once.
  EXPECT_EQ(held_parts(mark_sharding(vector_of_five(), grid, P("a"))),
            (std::vector<HeldPart>{{Box{{0, 2}}, {0}}, {Box{{2, 4}}, {0}}, {Box{{4, 5}}, {0}}}));
  Tensor matrix = from_host(std::vector<float>(8), {2, 4});
  EXPECT_EQ(held_parts(mark_sharding(matrix, Mesh({{"a", 4}}), P(none, "a"))),
            (std::vector<HeldPart>{{Box{{0, 2}, {0, 1}}, {0}},
                                   {Box{{0, 2}, {1, 2}}, {0}},
                                   {Box{{0, 2}, {2, 3}}, {0}},
                                   {Box{{0, 2}, {3, 4}}, {0}}}));
}

}  // namespace
}  // namespace meshard
