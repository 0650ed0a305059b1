#include "meshard/runtime/internal/pad_on_host.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

HostArray two_by_two() { return HostArray::from_vector<float>({1, 2, 3, 4}, {2, 2}); }

TEST(PadOnHost, ZerosAreAddedAtTheEnd) {
  HostArray padded = padded_on_host(two_by_two(), {DType::f32, {3, 4}});
  EXPECT_EQ(padded.to_vector<float>(), (std::vector<float>{1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0}));
}

TEST(PadOnHost, AnArrayThatFitsIsNotCopied) {
  HostArray array = two_by_two();
  EXPECT_EQ(padded_on_host(array, array.type()).bytes(), array.bytes());
}

TEST(PadOnHost, AnEmptyShardIsAllPadding) {
  HostArray empty = HostArray::zeros({DType::f32, {0, 2}});
  EXPECT_EQ(padded_on_host(empty, {DType::f32, {1, 2}}).to_vector<float>(),
            (std::vector<float>{0, 0}));
}

TEST(PadOnHost, APartIsCopiedToTheStart) {
  HostArray block = HostArray::full({DType::f32, {2, 3}}, 9);
  copy_into_padded(two_by_two(), {{0, 2}, {1, 2}}, block).run();
  EXPECT_EQ(block.to_vector<float>(), (std::vector<float>{2, 9, 9, 4, 9, 9}));
}

}  // namespace
}  // namespace meshard
