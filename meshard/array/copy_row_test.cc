#include <gtest/gtest.h>

#include <vector>

#include "meshard/array/slice.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

TEST(StreamRow, CopiesTheRowAndNothingElse) {
  TestRandom random;
  for (int round = 0; round < 3000; ++round) {
    std::size_t bytes = random.between(0, 400), from = random.between(0, 70),
                to = random.between(0, 70);
    std::vector<std::byte> source(from + bytes + 70), actual(to + bytes + 70);
    for (std::byte& byte : source) byte = std::byte(random.between(0, 255));
    for (std::byte& byte : actual) byte = std::byte(random.between(0, 255));
    std::vector<std::byte> expected = actual;
    for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = source[from + i];
    stream_row(actual.data() + to, source.data() + from, bytes);
    finish_streaming();
    ASSERT_EQ(actual, expected) << bytes << " bytes from " << from << " to " << to;
  }
}

}  // namespace
}  // namespace meshard
