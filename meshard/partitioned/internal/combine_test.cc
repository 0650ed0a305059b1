#include <gmock/gmock.h>

#include <map>

#include "meshard/hlo/hlo_builder_testutil.h"
#include "meshard/partitioned/internal/read_collective.h"

namespace meshard::internal {
namespace {

using Order = std::vector<std::vector<std::size_t>>;

// All-reduces of one group, except where `groups` says otherwise, by id.
Order order_of(const std::vector<InstructionBytes>& instructions,
               const std::map<std::int64_t, std::vector<std::int32_t>>& groups = {}) {
  ModuleBytes module;
  module.add(5, instructions, 50);
  EditedModule edited = EditedModule::from_bytes(module.bytes()).value();
  const EditedComputation& computation = edited.computations.back();
  std::map<std::int64_t, FoundCollective> found;
  for (const EditedInstruction& each : computation.instructions) {
    if (each.opcode != "all-reduce") continue;
    FoundCollective one{.kind = CollectiveCallKind::kAllReduce};
    auto at = groups.find(each.id);
    one.ranks = at == groups.end() ? std::vector<std::int32_t>{0, 1} : at->second;
    found[each.id] = one;
  }
  return combined_order(computation, [&](const EditedInstruction& each) {
    auto at = found.find(each.id);
    return at == found.end() ? nullptr : &at->second;
  });
}

InstructionBytes reduce(std::int64_t id, std::int64_t operand,
                        const std::string& shape = f32_bytes()) {
  return InstructionBytes(id, "all-reduce", shape, {operand});
}
InstructionBytes negate(std::int64_t id, std::int64_t operand) {
  return InstructionBytes(id, "negate", f32_bytes(), {operand});
}

// The users of the first wait for the second.
TEST(CombinedOrder, IndependentAllReducesAreOne) {
  EXPECT_EQ(order_of({parameter_bytes(50, 0, f32_bytes()), reduce(51, 50), negate(52, 51),
                      negate(53, 50), reduce(54, 53), negate(55, 54)}),
            (Order{{0}, {3}, {1, 4}, {2}, {5}}));
}

TEST(CombinedOrder, DependentOnesAreNot) {
  EXPECT_EQ(order_of({parameter_bytes(50, 0, f32_bytes()), reduce(51, 50), negate(52, 51),
                      reduce(53, 52)}),
            (Order{{0}, {1}, {2}, {3}}));
}

TEST(CombinedOrder, OtherGroupsTypesAndLargeOnesStayAlone) {
  std::string integers = array_bytes(kS32Element, {4}), large = f32_bytes({kMostCombinedBytes});
  EXPECT_EQ(order_of({parameter_bytes(50, 0, f32_bytes()), reduce(51, 50), reduce(52, 50)},
                     {{52, {0, 2}}}),
            (Order{{0}, {1}, {2}}));
  EXPECT_EQ(order_of({parameter_bytes(50, 0, f32_bytes()), reduce(51, 50),
                      parameter_bytes(52, 1, integers), reduce(53, 52, integers)}),
            (Order{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(order_of({parameter_bytes(50, 0, large), reduce(51, 50, large), reduce(52, 50, large)}),
            (Order{{0}, {1}, {2}}));
}

// 600 KB each: six fit into one call.
TEST(CombinedOrder, ACallIsNotTooLarge) {
  std::vector<InstructionBytes> all = {parameter_bytes(50, 0, f32_bytes())};
  for (std::int64_t k = 0; k < 8; ++k) all.push_back(reduce(51 + k, 50, f32_bytes({150000})));
  Order order = order_of(all);
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order[1].size(), 6u);
  EXPECT_EQ(order[2].size(), 2u);
}

TEST(CombinedOrder, ControlPredecessorsAreDependencies) {
  InstructionBytes second = reduce(52, 50);
  second.number(37, 51);
  EXPECT_EQ(order_of({parameter_bytes(50, 0, f32_bytes()), reduce(51, 50), second}),
            (Order{{0}, {1}, {2}}));
}

}  // namespace
}  // namespace meshard::internal
