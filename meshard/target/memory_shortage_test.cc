#include <gtest/gtest.h>

#include "meshard/target/compile_for.h"

namespace meshard {
namespace {

TEST(MemoryShortage, ReadsTheTpusWords) {
  auto shortage = memory_shortage(
      "XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 17.50G of "
      "15.75G hbm. Exceeded hbm capacity by 1.75G.");
  ASSERT_TRUE(shortage);
  EXPECT_EQ(shortage->needed, (std::int64_t{35} << 30) / 2);
  EXPECT_EQ(shortage->available, (std::int64_t{63} << 30) / 4);
  EXPECT_EQ(
      memory_shortage("[PJRT_Compile] E1000: CompileTimeHbmOom: Ran out of memory on HBM, the "
                      "total memory required for HLO temporaries (48.00G) exceeds available "
                      "HBM (15.75G). HLO module: oom."),
      (MemoryShortage{std::int64_t{48} << 30, (std::int64_t{63} << 30) / 4,
                      /*temporaries_only=*/true}));
  EXPECT_EQ(memory_shortage("Used 512.0M of 1.0T hbm"),
            (MemoryShortage{std::int64_t{512} << 20, std::int64_t{1} << 40}));
  EXPECT_EQ(memory_shortage("Used 12 of 8K hbm"), (MemoryShortage{12, 8192}));
}

TEST(MemoryShortage, OtherWordsHaveNoNumbers) {
  for (const char* text :
       {"", "Used ", "Used G of 1G hbm", "Used 1G", "Used 1G of ", "Used 3.0K of 2.0K smem",
        "Used -1G of 2G hbm", "Used 1e300G of 2G hbm", "Used nan of 2G hbm"})
    EXPECT_FALSE(memory_shortage(text)) << text;
}

TEST(MemoryShortage, IsToldFromOtherErrors) {
  EXPECT_TRUE(says_out_of_memory("Ran out of memory in memory space hbm"));
  EXPECT_TRUE(says_out_of_memory("RESOURCE_EXHAUSTED: x"));
  EXPECT_FALSE(says_out_of_memory("-:3:1: error: expected an operand"));
}

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
