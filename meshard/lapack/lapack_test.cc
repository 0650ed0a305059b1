#include "meshard/lapack/lapack.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace meshard {
namespace {

TEST(Lapack, IsOpenedOnceOrSaysWhatToInstall) {
  auto opened = Lapack::open();
  if (!opened.ok()) {
    EXPECT_EQ(opened.error().code(), ErrorCode::kNotFound);
    EXPECT_THAT(opened.error().what(), testing::HasSubstr("install libopenblas0 or liblapack3"));
    return;
  }
  EXPECT_EQ(Lapack::open().value(), opened.value());
  EXPECT_TRUE(opened.value()->path().starts_with("/")) << opened.value()->path();
  EXPECT_NE(opened.value()->routine("zheevd").value(), nullptr);
  EXPECT_THAT(opened.value()->routine("dnone").error().what(),
              testing::HasSubstr("has no routine dnone_"));
}

}  // namespace
}  // namespace meshard
