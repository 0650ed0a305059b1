#include "meshard/processes/narrow_reduction.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/thread_communicator.h"

namespace meshard {
namespace {

BFloat16 operand(int rank, std::size_t i) {
  return BFloat16(static_cast<float>((i * 37 + static_cast<std::size_t>(rank) * 11) % 101) / 8 - 6);
}

/// The sum in f32, rounded once.
BFloat16 expected_sum(const std::vector<int>& group, std::size_t i) {
  float sum = 0;
  for (int rank : group) sum += static_cast<float>(operand(rank, i));
  return BFloat16(sum);
}

// Sizes around the border between one message and two, in one piece and in several (the piece is 4
// Mi elements), divisible by the group or not.
TEST(NarrowReduction, AllReduce) {
  for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{2048}, std::size_t{2049},
                            std::size_t{30000}, (std::size_t{1} << 22) + 5}) {
    auto communicators = make_thread_communicators(4);
    std::vector<int> group = {3, 0, 1};
    std::vector<std::jthread> threads;
    for (int rank : group)
      threads.emplace_back([&, rank] {
        std::vector<BFloat16> data(count);
        for (std::size_t i = 0; i < count; ++i) data[i] = operand(rank, i);
        all_reduce_by_exchange(*communicators[static_cast<std::size_t>(rank)], group,
                               Reduction::kSum, DType::bf16, data.data(), data.data(), count)
            .value();
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < count; ++i)
          wrong += data[i].bits() != expected_sum(group, i).bits();
        EXPECT_EQ(wrong, 0u) << count;
      });
  }
}

TEST(NarrowReduction, ReduceScatter) {
  constexpr std::size_t kCount = 1000;
  auto communicators = make_thread_communicators(3);
  std::vector<int> group = {2, 0, 1};
  std::vector<std::jthread> threads;
  for (std::size_t position = 0; position < 3; ++position)
    threads.emplace_back([&, position] {
      int rank = group[position];
      std::vector<BFloat16> in(3 * kCount), out(kCount);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = operand(rank, i);
      reduce_scatter_by_exchange(*communicators[static_cast<std::size_t>(rank)], group,
                                 Reduction::kSum, DType::bf16, in.data(), out.data(), kCount)
          .value();
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_EQ(out[i].bits(), expected_sum(group, position * kCount + i).bits());
    });
}

}  // namespace
}  // namespace meshard
