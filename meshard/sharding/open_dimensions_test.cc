#include "meshard/sharding/open_dimensions.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(OpenDimensions, AreThoseThatTheCompilerMayChoose) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  EXPECT_FALSE(has_open_dimensions(Sharding(mesh, P(), 0)));
  EXPECT_FALSE(has_open_dimensions(Sharding(mesh, P("x", none))));
  EXPECT_TRUE(has_open_dimensions(Sharding(mesh, P(unconstrained))));
  EXPECT_TRUE(has_open_dimensions(Sharding(mesh, P("x", unconstrained))));
}

}  // namespace
}  // namespace meshard
