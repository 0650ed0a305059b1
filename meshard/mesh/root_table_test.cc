#include "meshard/mesh/root_table.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace meshard {
namespace {

TEST(RootTable, ANameHasOneAxis) {
  RootTable table;
  EXPECT_FALSE(table.find("x"));
  EXPECT_FALSE(table.add("x", Digits::whole(4)));
  EXPECT_FALSE(table.add("x", Digits::whole(4)));
  EXPECT_EQ(table.add("x", Digits::whole(8)), Digits::whole(4));
  EXPECT_FALSE(table.add("alias", Digits::whole(4)));
  EXPECT_EQ(table.find("x")->digits, Digits::whole(4));
  EXPECT_EQ(table.flat_axes().size(), 2u);
}

TEST(RootTable, ManyNamesAreFoundEachWithItsOwnAxis) {
  RootTable table;
  auto name = [](int i) { return "axis_" + std::to_string(i * 7919 % 5000); };
  for (int i = 0; i < 5000; ++i) EXPECT_FALSE(table.add(name(i), Digits::whole(i + 1)));
  std::vector<RootTable::FlatAxis> all = table.flat_axes();
  ASSERT_EQ(all.size(), 5000u);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)].name, name(i));  // in the order of registration
    EXPECT_EQ(table.find(name(i))->digits, Digits::whole(i + 1));
    EXPECT_EQ(table.add(name(i), Digits::whole(i + 2)), Digits::whole(i + 1));
  }
  EXPECT_FALSE(table.find("axis_5000"));
}

TEST(RootTable, KeepsNoMeshAlive) {
  RootTable table;
  table.add("x", Digits::whole(4));
  auto mesh = std::make_shared<const int>(1);
  table.remember("x", mesh);
  EXPECT_EQ(table.find("x")->mesh.lock(), mesh);
  mesh.reset();
  EXPECT_EQ(table.find("x")->mesh.lock(), nullptr);
}

TEST(RootTable, OneFamilyForAllThreads) {
  RootTable table;
  RankMap map = RankMap::identity(8);
  std::vector<std::shared_ptr<const GroupFamily>> seen(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < seen.size(); ++t)
    threads.emplace_back([&, t] {
      for (std::int64_t n = 1; n <= 8; n *= 2) seen[t] = table.groups(Digits::whole(n), map);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& family : seen) EXPECT_EQ(family, seen[0]);
}

}  // namespace
}  // namespace meshard
