#include "meshard/base/fingerprint.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

// The published test vector of XXH3_128bits for the empty input, seed 0.
TEST(Fingerprint, OfNothing) {
  EXPECT_EQ(fingerprint("").to_string(), "99aa06d3014798d86001c324468d497f");
}

TEST(Fingerprint, OneBitChangesIt) { EXPECT_NE(fingerprint("mesh"), fingerprint("mest")); }

}  // namespace
}  // namespace meshard
