#include "meshard/ops/composite/square.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Square, MultipliesByItself) {
  EXPECT_EQ(interpret(square(from_host<std::int32_t>({-3, 4}, {2}))),
            HostArray::from_vector<std::int32_t>({9, 16}));
}

}  // namespace
}  // namespace meshard
