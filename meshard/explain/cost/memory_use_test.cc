#include "meshard/explain/cost/memory_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using pjrt::WireWriter;

WireWriter written_instruction(std::int64_t id, const std::string& opcode, std::int64_t elements,
                               const std::string& op_name = "") {
  WireWriter shape, one, metadata;
  shape.add_varint(2, 11);  // f32
  shape.add_packed(3, std::vector<std::int64_t>{elements});
  metadata.add_bytes(2, op_name);
  one.add_bytes(1, opcode + "." + std::to_string(id));
  one.add_bytes(2, opcode);
  one.add_message(3, shape);
  one.add_message(7, metadata);
  one.add_varint(35, static_cast<std::uint64_t>(id));
  return one;
}

// Buffer i is defined by instruction i.
void add_written_buffer(WireWriter& to, std::uint64_t id, std::uint64_t size) {
  WireWriter buffer, place;
  buffer.add_varint(1, id);
  buffer.add_varint(2, size);
  place.add_varint(4, id);
  buffer.add_message(3, place);
  to.add_message(1, buffer);
}

WireWriter written_allocation(std::uint64_t index,
                              const std::vector<std::array<std::uint64_t, 3>>& assigned,
                              const std::vector<std::pair<int, std::uint64_t>>& flags) {
  WireWriter allocation;
  allocation.add_varint(1, index);
  std::uint64_t size = 0;
  for (const auto& each : assigned) {
    WireWriter one;
    one.add_varint(1, each[0]);
    one.add_varint(2, each[1]);
    one.add_varint(3, each[2]);
    allocation.add_message(9, one);
    size = std::max(size, each[1] + each[2]);
  }
  allocation.add_varint(2, size);
  for (const auto& flag : flags) allocation.add_varint(flag.first, flag.second);
  return allocation;
}

// One argument, one output, and temporaries 3 to 6: 4 reuses the memory of 3, and 5 shares the
// memory of 4.
std::string written_proto(bool with_trace) {
  WireWriter computation, module, assignment, proto;
  computation.add_bytes(1, "main");
  computation.add_varint(5, 40);
  computation.add_message(2, written_instruction(1, "parameter", 1000, "params.w"));
  computation.add_message(2, written_instruction(2, "negate", 500));
  computation.add_message(2, written_instruction(3, "tanh", 200, "jit(f)/tanh"));
  computation.add_message(2, written_instruction(4, "exponential", 300));
  computation.add_message(2, written_instruction(5, "sine", 300));
  computation.add_message(2, written_instruction(6, "cosine", 100));
  module.add_message(3, computation);
  module.add_varint(6, 40);
  for (std::uint64_t i = 1; i <= 6; ++i) add_written_buffer(assignment, i, 0);
  assignment.add_message(3, written_allocation(0, {{1, 0, 4000}}, {{5, 1}, {6, 0}}));
  assignment.add_message(3, written_allocation(1, {{2, 0, 2000}}, {{7, 1}}));
  assignment.add_message(
      3,
      written_allocation(2, {{3, 0, 800}, {4, 0, 1200}, {5, 0, 1200}, {6, 1200, 400}}, {{11, 1}}));
  assignment.add_message(3, written_allocation(3, {{3, 0, 9000}}, {{8, 1}}));  // in on-chip memory
  if (with_trace) {
    WireWriter trace;
    auto event = [&](std::uint64_t kind, std::uint64_t buffer, std::uint64_t shared = 0) {
      WireWriter one;
      one.add_varint(1, kind);
      one.add_varint(2, buffer);
      one.add_varint(5, shared);
      trace.add_message(1, one);
    };
    event(0, 3);
    event(1, 3);
    event(0, 4);
    event(2, 5, 4);
    event(1, 4);
    event(0, 6);  // the peak: 6, and 4's memory, which 5 still uses
    event(1, 6);
    event(1, 5);
    trace.add_varint(3, 2);
    assignment.add_message(4, trace);
  }
  proto.add_message(1, module);
  proto.add_message(3, assignment);
  return proto.take();
}

TEST(LargestBuffers, ArgumentsOutputsAndWhatIsAliveAtThePeak) {
  std::vector<BufferUse> largest = largest_buffers(written_proto(true), nullptr).value();
  std::vector<std::string> lines;
  for (const BufferUse& each : largest) lines.push_back(each.to_string());
  EXPECT_THAT(lines, testing::ElementsAre("3.9 KiB argument params.w f32[1000]",
                                          "2 KiB output negate.2 f32[500]",
                                          "1.2 KiB temporary exponential.4 f32[300]",
                                          "400 B temporary cosine.6 f32[100]"));
}

TEST(LargestBuffers, WithoutATraceTheLargestOfEachPlace) {
  std::vector<BufferUse> largest = largest_buffers(written_proto(false), nullptr, {"w"}, 3).value();
  ASSERT_EQ(largest.size(), 3u);
  EXPECT_EQ(largest[0].name, "w");
  EXPECT_EQ(largest[2].name, "exponential.4");
}

TEST(LargestBuffers, NoneAssignedAndDamagedBytesAreErrors) {
  WireWriter proto;
  proto.add_bytes(1, "");
  EXPECT_EQ(largest_buffers(proto.bytes(), nullptr).error().code(), ErrorCode::kNotFound);
  std::string bytes = written_proto(true);
  for (std::size_t n = 1; n < bytes.size(); n += 3)
    EXPECT_FALSE(largest_buffers(std::string_view(bytes).substr(0, n), nullptr).ok()) << n;
}

TEST(LargestBuffers, EstimatedFromTheOrderOfTheInstructions) {
  HloModule module = make_module({{
      make_parameter(1, 0, f32_shape({10})),
      make_instruction(2, "negate", f32_shape({1000}), {1}),
      make_instruction(3, "tanh", f32_shape({900}), {2}),  // the peak, together with 2
      make_instruction(4, "sine", f32_shape({100}), {3}),
      make_instruction(5, "cosine", f32_shape({50}), {4}),
  }});
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  std::vector<BufferUse> largest = estimated_buffers(executions, nullptr);
  std::vector<std::string> names;
  for (const BufferUse& each : largest) names.push_back(each.name);
  EXPECT_THAT(names, testing::ElementsAre("negate.2", "tanh.3", "parameter.1"));
  EXPECT_EQ(largest[0].bytes, 4000);
  EXPECT_EQ(largest[2].role, BufferRole::kArgument);
}

}  // namespace
}  // namespace meshard
