#include "meshard/graph/residual_policy.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

using Keep = ResidualPolicy::Keep;

TEST(ResidualPolicy, PrintedAndRead) {
  const ResidualPolicy policies[] = {{Keep::kNeeded},
                                     {Keep::kEverything},
                                     {Keep::kNothing},
                                     {Keep::kDots},
                                     {Keep::kNamed, {"a", "b"}}};
  for (const ResidualPolicy& policy : policies)
    EXPECT_EQ(ResidualPolicy::parse(policy.to_string()).value(), policy) << policy.to_string();
  EXPECT_EQ(policies[4].to_string(), "names:a,b");
  EXPECT_FALSE(ResidualPolicy::parse("some").ok());
}

}  // namespace
}  // namespace meshard
