#include "meshard/graph/node_table.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <unordered_map>
#include <vector>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using testing::IsEmpty;
using testing::UnorderedElementsAre;

Tensor placeholder() { return make_parameter({DType::f32, {}}, std::nullopt, {}); }

TEST(NodeTable, AnEmptyOneHasNoNode) {
  Tensor a = placeholder();
  NodeTable<int> table;
  EXPECT_EQ(table.find(*a.value().node()), nullptr);
  EXPECT_FALSE(table.contains(*a.value().node()));
}

TEST(NodeTable, NewValuesAreZero) {
  Tensor a = placeholder();
  NodeTable<int> table;
  auto [value, is_new] = table.try_emplace(*a.value().node());
  EXPECT_TRUE(is_new);
  EXPECT_EQ(*value, 0);
  *value = 7;
  auto [again, is_new_again] = table.try_emplace(*a.value().node());
  EXPECT_FALSE(is_new_again);
  EXPECT_EQ(*again, 7);
}

TEST(NodeTable, ASetTellsWhatIsNew) {
  Tensor a = placeholder(), b = placeholder();
  NodeSet set;
  EXPECT_TRUE(set.insert(*a.value().node()));
  EXPECT_FALSE(set.insert(*a.value().node()));
  EXPECT_FALSE(set.contains(*b.value().node()));
}

// Neighbors, nodes far apart (as if other threads recorded between them), in any order of adding,
// while the table grows many times.
TEST(NodeTable, EqualsAMapByAddress) {
  std::mt19937 random(20261127);
  for (int round = 0; round < 20; ++round) {
    std::vector<Tensor> kept;
    for (int i = 0; i < 3000; ++i) {
      kept.push_back(placeholder());
      for (auto gap = random() % 4 == 0 ? random() % 200 : 0; gap > 0; --gap) placeholder();
    }
    std::shuffle(kept.begin(), kept.end(), random);
    NodeTable<int> table;
    std::unordered_map<const Node*, int> expected;
    for (int i = 0; i < 4000; ++i) {
      const Node& node = *kept[random() % kept.size()].value().node();
      auto [value, is_new] = table.try_emplace(node);
      EXPECT_EQ(is_new, !expected.contains(&node));
      *value += i;
      expected[&node] += i;
    }
    NodeTable<int> copy = table;
    for (const Tensor& each : kept) {
      const Node& node = *each.value().node();
      auto known = expected.find(&node);
      const int* found = copy.find(node);
      ASSERT_EQ(found != nullptr, known != expected.end());
      if (found) {
        EXPECT_EQ(*found, known->second);
      }
    }
  }
}

TEST(NodesBehind, EachOnceUntilToldToStop) {
  Tensor a = placeholder(), b = test::plus(a, a), c = test::plus(b, a), d = test::plus(c, b);
  std::vector<Value> from{d.value(), c.value()};
  auto always = [](const Value&) { return true; };
  EXPECT_THAT(nodes_behind(from, always), UnorderedElementsAre(a.value().node(), b.value().node(),
                                                               c.value().node(), d.value().node()));
  NodeSet seen;
  auto not_b = [&](const Value& value) { return value != b.value(); };
  EXPECT_THAT(nodes_behind(from, not_b, seen),
              UnorderedElementsAre(a.value().node(), c.value().node(), d.value().node()));
  EXPECT_TRUE(seen.contains(*a.value().node()));
  EXPECT_FALSE(seen.contains(*b.value().node()));
  EXPECT_THAT(nodes_behind(from, always, seen), IsEmpty());
}

}  // namespace
}  // namespace meshard
