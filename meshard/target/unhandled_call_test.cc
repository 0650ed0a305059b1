#include "meshard/target/unhandled_call.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(UnhandledCall, IsNamedInTheMessage) {
  Error missing(ErrorCode::kInternal, "No FFI handler registered for my_call on a platform Host");
  EXPECT_EQ(unhandled_call(missing, kNoHandlerText), "my_call");
  EXPECT_EQ(unhandled_call(missing, kUntypedCallText), "");
  Error untyped(ErrorCode::kUnimplemented, "an untyped custom call to old_call for Host, which");
  EXPECT_EQ(unhandled_call(untyped, kUntypedCallText), "old_call");
  Error cut(ErrorCode::kUnimplemented, "an untyped custom call to old_call");
  EXPECT_EQ(unhandled_call(cut, kUntypedCallText), "");
}

}  // namespace
}  // namespace meshard
