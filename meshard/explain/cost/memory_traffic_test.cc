#include "meshard/explain/cost/memory_traffic.h"

#include <gtest/gtest.h>

#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

// The traffic of the entry's last instruction.
double traffic_of(const HloModule& module) {
  ModuleIndex index(module);
  return memory_traffic(index, index.entry(), module.entry().instructions.back());
}

HloShape on_chip(HloShape shape) {
  shape.layout.emplace();
  shape.layout->memory_space = 1;
  for (std::size_t i = shape.dimensions.size(); i-- > 0;)
    shape.layout->minor_to_major.push_back(static_cast<std::int64_t>(i));
  return shape;
}

TEST(MemoryTraffic, OperandsAndResult) {
  EXPECT_EQ(traffic_of(make_module(
                {{make_parameter(1, 0, f32_shape({4})), make_parameter(2, 1, f32_shape({8})),
                  make_instruction(3, "concatenate", f32_shape({12}), {1, 2})}})),
            4 * (4 + 8 + 12));
}

TEST(MemoryTraffic, NotWhatLiesOnTheChip) {
  EXPECT_EQ(
      traffic_of(make_module(
          {{make_parameter(1, 0, f32_shape({4})), make_parameter(2, 1, on_chip(f32_shape({8}))),
            make_instruction(3, "concatenate", on_chip(f32_shape({12})), {1, 2})}})),
      4 * 4);
}

TEST(MemoryTraffic, OfSlicesAndUpdatesThePart) {
  EXPECT_EQ(traffic_of(make_module(
                {{make_parameter(1, 0, f32_shape({100})), make_parameter(2, 1, s32_scalar()),
                  make_instruction(3, "dynamic-slice", f32_shape({5}), {1, 2})}})),
            2 * 5 * 4);
  EXPECT_EQ(traffic_of(make_module(
                {{make_parameter(1, 0, f32_shape({100})), make_parameter(2, 1, f32_shape({5})),
                  make_parameter(3, 2, s32_scalar()),
                  make_instruction(4, "dynamic-update-slice", f32_shape({100}), {1, 2, 3})}})),
            2 * 5 * 4);
}

TEST(MemoryTraffic, NamesAndLoopsMoveNothing) {
  for (std::string opcode : {"bitcast", "tuple", "get-tuple-element", "while", "copy-done"})
    EXPECT_EQ(traffic_of(make_module({{make_parameter(1, 0, f32_shape({4})),
                                       make_instruction(2, opcode, f32_shape({4}), {1})}})),
              0)
        << opcode;
}

TEST(MemoryTraffic, AFusionReadsOnlyTheSlicesItTakes) {
  HloModule module =
      make_module({{make_parameter(1, 0, f32_shape({12, 100})), make_parameter(2, 1, s32_scalar()),
                    make_parameter(3, 2, f32_shape({100})),
                    calling(make_instruction(4, "fusion", f32_shape({100}), {1, 2, 3}), {1})},
                   {make_parameter(11, 0, f32_shape({12, 100})),
                    make_parameter(12, 1, s32_scalar()), make_parameter(13, 2, f32_shape({100})),
                    make_instruction(14, "dynamic-slice", f32_shape({1, 100}), {11, 12}),
                    make_instruction(15, "bitcast", f32_shape({100}), {14}),
                    make_instruction(16, "add", f32_shape({100}), {15, 13})}});
  EXPECT_EQ(traffic_of(module), 4 * (100 + 1 + 100 + 100));
  // If it also uses the whole operand, the whole operand counts.
  module.computations[1].instructions[5] =
      make_instruction(16, "custom-call", f32_shape({100}), {15, 13, 11});
  EXPECT_EQ(traffic_of(module), 4 * (1200 + 1 + 100 + 100));
}

TEST(MemoryTraffic, AFusionUpdatesInPlace) {
  HloModule module = make_module(
      {{make_parameter(1, 0, f32_shape({12, 100})), make_parameter(2, 1, f32_shape({1, 100})),
        make_parameter(3, 2, s32_scalar()),
        calling(make_instruction(4, "fusion", f32_shape({12, 100}), {1, 2, 3}), {1})},
       {make_parameter(11, 0, f32_shape({12, 100})), make_parameter(12, 1, f32_shape({1, 100})),
        make_parameter(13, 2, s32_scalar()),
        make_instruction(14, "dynamic-update-slice", f32_shape({12, 100}), {11, 12, 13})}});
  EXPECT_EQ(traffic_of(module), 4 * (100 + 1 + 100));
}

TEST(MemoryTraffic, StartsReadAndWriteOnce) {
  EXPECT_EQ(
      traffic_of(make_module(
          {{make_parameter(1, 0, f32_shape({100})),
            make_instruction(
                2, "copy-start",
                tuple_shape({on_chip(f32_shape({100})), f32_shape({100}), s32_scalar()}), {1})}})),
      400);
  EXPECT_EQ(traffic_of(make_module(
                {{make_parameter(1, 0, f32_shape({4})),
                  make_instruction(2, "all-gather-start",
                                   tuple_shape({f32_shape({4}), f32_shape({16})}), {1})}})),
            16 + 64);
}

}  // namespace
}  // namespace meshard
