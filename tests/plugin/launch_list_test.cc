#include <gtest/gtest.h>

#include <vector>

#include "meshard/pjrt/internal/launch_record.h"

namespace meshard::pjrt::internal {
namespace {

LaunchRecord* record_of(std::uint64_t number) {
  auto* record = new LaunchRecord;
  record->number = number;
  return record;
}

std::vector<std::uint64_t> numbers_of(const LaunchList& list) {
  std::vector<std::uint64_t> numbers;
  for (const LaunchRecord& record : list) numbers.push_back(record.number);
  std::vector<std::uint64_t> backward;
  for (LaunchRecord* record = list.newest(); record != nullptr; record = record->older)
    backward.insert(backward.begin(), record->number);
  EXPECT_EQ(backward, numbers);
  EXPECT_EQ(list.size(), numbers.size());
  EXPECT_EQ(list.empty(), numbers.empty());
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

TEST(LaunchList, AnyRecordCanBeDropped) {
  LaunchList list;
  EXPECT_EQ(numbers_of(list), Numbers());
  std::vector<LaunchRecord*> records;
  for (std::uint64_t i = 0; i < 5; ++i) list.add(records.emplace_back(record_of(i)));
  EXPECT_EQ(numbers_of(list), (Numbers{0, 1, 2, 3, 4}));
  list.drop(records[2]);
  EXPECT_EQ(numbers_of(list), (Numbers{0, 1, 3, 4}));
  list.drop(records[0]);
  EXPECT_EQ(numbers_of(list), (Numbers{1, 3, 4}));
  list.drop(records[4]);
  EXPECT_EQ(numbers_of(list), (Numbers{1, 3}));
  list.drop(records[1]);
  list.drop(records[3]);
  EXPECT_EQ(numbers_of(list), Numbers());
  list.add(record_of(7));
  EXPECT_EQ(numbers_of(list), (Numbers{7}));
}

TEST(LaunchList, DropsTheRecordsThatAreNotWanted) {
  LaunchList list;
  for (std::uint64_t i = 0; i < 6; ++i) list.add(record_of(i));
  list.drop_if([](const LaunchRecord& record) { return record.number % 2 == 0; });
  EXPECT_EQ(numbers_of(list), (Numbers{1, 3, 5}));
  list.drop_if([](const LaunchRecord&) { return true; });
  EXPECT_EQ(numbers_of(list), Numbers());
}

// The record lives on while someone else has a reference.
TEST(LaunchList, DropsItsOwnReferenceOnly) {
  LaunchRecord* record = record_of(1);
  record->references = 2;
  {
    LaunchList list;
    list.add(record);
    EXPECT_TRUE(record->is_listed);
    list.drop(record);
    EXPECT_FALSE(record->is_listed);
    EXPECT_EQ(record->references, 1);
    record->references = 2;
    list.add(record);
  }
  EXPECT_FALSE(record->is_listed);
  EXPECT_EQ(record->references, 1);
  drop_launch(record);
}

}  // namespace
}  // namespace meshard::pjrt::internal
