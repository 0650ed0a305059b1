#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using Instructions = std::vector<HloInstruction>;

// A loop over (counter, limit, f32[4]), as `for (i = start; i DIRECTION limit; i += step)`.
struct Loop {
  std::int64_t start = 0, step = 1, limit = 12;
  std::string direction = "LT";
  HloShape state = tuple_shape({s32_scalar(), s32_scalar(), f32_shape({4})});

  Instructions entry() const {
    return {make_constant(1, start), make_constant(2, limit), make_parameter(3, 0, f32_shape({4})),
            make_instruction(4, "tuple", state, {1, 2, 3}),
            calling(make_instruction(5, "while", state, {4}), {1, 2})};
  }
  Instructions body() const {
    return {make_parameter(11, 0, state),
            make_element(12, 11, 0),
            make_constant(13, step),
            make_instruction(14, "add", s32_scalar(), {12, 13}),
            make_element(15, 11, 1),
            make_element(16, 11, 2, f32_shape({4})),
            make_instruction(17, "tuple", state, {14, 15, 16})};
  }
  Instructions condition() const {
    return {make_parameter(21, 0, state), make_element(22, 21, 0), make_constant(23, limit),
            make_compare(24, direction, 22, 23)};
  }
  HloModule module() const { return make_module({entry(), body(), condition()}); }
};

std::optional<std::int64_t> count_of(const HloModule& module, std::int64_t computation = 0,
                                     std::int64_t loop = 5) {
  ModuleIndex index(module);
  Calls calls = Calls::of(index).value();
  const InstructionIndex& in = *index.find(computation);
  return trip_count(index, calls, in, *in.find(loop));
}

std::int64_t simulated(const Loop& loop) {
  std::int64_t count = 0;
  auto goes_on = [&](std::int64_t i) {
    if (loop.direction == "LT") return i < loop.limit;
    if (loop.direction == "LE") return i <= loop.limit;
    if (loop.direction == "GT") return i > loop.limit;
    if (loop.direction == "GE") return i >= loop.limit;
    if (loop.direction == "EQ") return i == loop.limit;
    return i != loop.limit;
  };
  for (std::int64_t i = loop.start; goes_on(i); i += loop.step)
    if (++count > 1000) return -1;
  return count;
}

TEST(TripCount, EqualsRunningTheLoop) {
  for (std::string direction : {"LT", "LE", "GT", "GE", "NE", "EQ"})
    for (std::int64_t start : {-3, 0, 4, 12})
      for (std::int64_t step : {-4, -1, 0, 1, 2, 5})
        for (std::int64_t limit : {-7, 0, 4, 12}) {
          Loop loop{.start = start, .step = step, .limit = limit, .direction = direction};
          std::int64_t expected = simulated(loop);
          // No count for a loop that does not end, or that exceeds the simulation's limit.
          EXPECT_EQ(count_of(loop.module()).value_or(-1), expected)
              << start << " " << direction << " " << limit << " by " << step;
        }
}

TEST(TripCount, TheLimitComesThroughTheState) {
  Loop loop;
  Instructions condition = {make_parameter(21, 0, loop.state), make_element(22, 21, 0),
                            make_element(23, 21, 1), make_compare(24, "GT", 23, 22)};
  EXPECT_EQ(count_of(make_module({loop.entry(), loop.body(), condition})), 12);
}

TEST(TripCount, AComparisonAndAStepInsideFusions) {
  Loop loop;
  HloShape flag = array_shape(pjrt::ElementType::kPred, {});
  Instructions condition = {make_parameter(21, 0, loop.state), make_element(22, 21, 0),
                            make_constant(23, 12),
                            calling(make_instruction(24, "fusion", flag, {22, 23}), {3})};
  Instructions compare = {make_parameter(31, 0, s32_scalar()), make_parameter(32, 1, s32_scalar()),
                          make_compare(33, "LT", 31, 32)};
  HloShape pair = tuple_shape({s32_scalar(), f32_shape({4})});
  Instructions body = {make_parameter(11, 0, loop.state),
                       make_element(12, 11, 0),
                       calling(make_instruction(13, "fusion", pair, {12}), {4}),
                       make_element(14, 13, 0),
                       make_instruction(18, "copy", s32_scalar(), {14}),
                       make_element(15, 11, 1),
                       make_element(16, 13, 1, f32_shape({4})),
                       make_instruction(17, "tuple", loop.state, {18, 15, 16})};
  Instructions add = {make_parameter(41, 0, s32_scalar()), make_constant(42, 3),
                      make_instruction(43, "add", s32_scalar(), {41, 42}),
                      make_instruction(44, "constant", f32_shape({4})),
                      make_instruction(45, "tuple", pair, {43, 44})};
  EXPECT_EQ(count_of(make_module({loop.entry(), body, condition, compare, add})), 4);
}

// The inner loop's limit is a constant of the entry that the outer loop passes on.
TEST(TripCount, ALimitFromOutsideAnEnclosingLoop) {
  Loop loop;
  Instructions outer_body = {make_parameter(51, 0, loop.state),
                             make_element(52, 51, 0),
                             make_constant(53, 1),
                             make_instruction(54, "add", s32_scalar(), {52, 53}),
                             make_element(55, 51, 1),
                             make_element(56, 51, 2, f32_shape({4})),
                             make_constant(57, 2),
                             make_instruction(58, "tuple", loop.state, {57, 55, 56}),
                             calling(make_instruction(5, "while", loop.state, {58}), {1, 3}),
                             make_element(59, 5, 1),
                             make_element(60, 5, 2, f32_shape({4})),
                             make_instruction(61, "tuple", loop.state, {54, 59, 60})};
  Instructions entry = loop.entry();
  entry.back() = calling(make_instruction(6, "while", loop.state, {4}), {4, 2});
  Instructions inner_condition = {make_parameter(21, 0, loop.state), make_element(22, 21, 0),
                                  make_element(23, 21, 1), make_compare(24, "LT", 22, 23)};
  HloModule module =
      make_module({entry, loop.body(), loop.condition(), inner_condition, outer_body});
  EXPECT_EQ(count_of(module, 4, 5), 10);  // 2 up to 12
  EXPECT_EQ(count_of(module, 0, 6), 12);
}

TEST(TripCount, TheCompilersWordIsTaken) {
  Loop loop;
  HloModule module = loop.module();
  module.computations[0].instructions.back().backend_config =
      R"({"known_init_step":{"init":"0","step":"1"},"known_trip_count":{"n":"77"}})";
  EXPECT_EQ(count_of(module), 77);
}

TEST(TripCount, WhatIsNotKnown) {
  Loop loop;
  Instructions from_argument = loop.entry();
  from_argument[0] = make_parameter(1, 1, s32_scalar());
  EXPECT_EQ(count_of(make_module({from_argument, loop.body(), loop.condition()})), std::nullopt);
  Instructions doubling = loop.body();
  doubling[3] = make_instruction(14, "multiply", s32_scalar(), {12, 13});
  EXPECT_EQ(count_of(make_module({loop.entry(), doubling, loop.condition()})), std::nullopt);
  Instructions changing_limit = loop.body();
  changing_limit[4] = make_instruction(15, "add", s32_scalar(), {12, 12});
  Instructions condition = {make_parameter(21, 0, loop.state), make_element(22, 21, 0),
                            make_element(23, 21, 1), make_compare(24, "LT", 22, 23)};
  EXPECT_EQ(count_of(make_module({loop.entry(), changing_limit, condition})), std::nullopt);
  EXPECT_EQ(count_of(make_module({loop.entry()})), std::nullopt);  // no body
}

TEST(TripCount, CirclesOfOperandsEnd) {
  Loop loop;
  Instructions circle = loop.body();
  circle[3] = make_instruction(14, "add", s32_scalar(), {14, 14});
  EXPECT_EQ(count_of(make_module({loop.entry(), circle, loop.condition()})), std::nullopt);
  circle[3] = make_instruction(14, "copy", s32_scalar(), {14});
  EXPECT_EQ(count_of(make_module({loop.entry(), circle, loop.condition()})), std::nullopt);
}

}  // namespace
}  // namespace meshard
