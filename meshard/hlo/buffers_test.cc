#include "meshard/hlo/buffers.h"

#include <gtest/gtest.h>

#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using pjrt::WireWriter;

WireWriter numbers(std::vector<std::pair<int, std::uint64_t>> fields) {
  WireWriter writer;
  for (const auto& field : fields) writer.add_varint(field.first, field.second);
  return writer;
}

std::string assignment_bytes() {
  WireWriter buffer = numbers({{1, 7}, {2, 4096}});
  WireWriter place = numbers({{4, 30}});
  place.add_packed(3, std::vector<std::int64_t>{1, 0});
  buffer.add_message(3, place);
  WireWriter allocation = numbers({{1, 2}, {2, 8192}, {5, 1}, {6, 3}, {7, 1}, {8, 1}});
  allocation.add_message(9, numbers({{1, 7}, {2, 512}, {3, 4096}}));
  WireWriter trace;
  trace.add_message(1, numbers({{2, 7}}));
  trace.add_message(1, numbers({{1, 2}, {2, 8}, {5, 7}}));
  trace.add_message(1, numbers({{1, 1}, {2, 7}}));
  trace.add_varint(3, 2);
  WireWriter assignment, proto;
  assignment.add_message(1, buffer);
  assignment.add_message(3, allocation);
  assignment.add_message(4, trace);
  proto.add_bytes(1, "");
  proto.add_message(3, assignment);
  return proto.take();
}

TEST(HloBuffers, BuffersAllocationsAndTraces) {
  HloBufferAssignment read = *HloBufferAssignment::from_bytes(assignment_bytes()).value();
  ASSERT_EQ(read.buffers.size(), 1u);
  EXPECT_EQ(read.buffers[0].id, 7);
  EXPECT_EQ(read.buffers[0].size, 4096);
  EXPECT_EQ(read.buffers[0].instruction, 30);
  EXPECT_EQ(read.buffers[0].shape_index, (std::vector<std::int64_t>{1, 0}));
  ASSERT_EQ(read.allocations.size(), 1u);
  EXPECT_EQ(read.allocations[0].parameter, 3);
  EXPECT_TRUE(read.allocations[0].live_out);
  EXPECT_EQ(read.allocations[0].color, 1);
  EXPECT_EQ(read.allocations[0].assigned[0].offset, 512);
  ASSERT_EQ(read.traces.size(), 1u);
  EXPECT_EQ(read.traces[0].allocation, 2);
  EXPECT_EQ(read.traces[0].events[1].kind, HloHeapTrace::Kind::kShare);
  EXPECT_EQ(read.traces[0].events[1].shared_with, 7);
}

TEST(HloBuffers, NoneInAModuleAlone) {
  WireWriter proto;
  proto.add_bytes(1, "");
  EXPECT_FALSE(HloBufferAssignment::from_bytes(proto.bytes()).value().has_value());
}

TEST(HloBuffers, CutBytesAreAnErrorOrLess) {
  std::string bytes = assignment_bytes();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    auto read = HloBufferAssignment::from_bytes(std::string_view(bytes).substr(0, n));
    EXPECT_TRUE(!read.ok() || !read->has_value()) << n;
  }
}

}  // namespace
}  // namespace meshard
