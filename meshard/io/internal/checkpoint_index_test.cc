#include "meshard/io/internal/checkpoint_index.h"

#include <gmock/gmock.h>

#include "meshard/base/cat.h"

namespace meshard::io::internal {
namespace {

using testing::HasSubstr;

CheckpointIndex some_index() {
  CheckpointIndex index;
  index.is_ours = true;
  index.metadata = {{"format", "meshard"}};
  index.total_size = 100;
  index.files = {{"a", 100}, {"b", 200}};
  index.whole = {{"step", "b"}};
  index.split["w"] = {
      {DType::f32, {4, 6}},
      {{"[0:2, 0:6]", {Box{{0, 2}, {0, 6}}, "a"}}, {"[2:4, 0:6]", {Box{{2, 4}, {0, 6}}, "b"}}}};
  return index;
}

std::string refusal(const CheckpointIndex& index) {
  return CheckpointIndex::parse(index.to_json(), "x").error().message();
}

std::string with_parts(const std::string& parts) {
  return cat(
      R"({"weight_map":{},"meshard":{"version":1,"files":{"a":1},"split":{"w":{"dtype":"F32",)"
      R"("shape":[4,6],"parts":{)",
      parts, "}}}}}");
}

TEST(CheckpointIndex, TextAndBack) {
  EXPECT_EQ(CheckpointIndex::parse(some_index().to_json(), "x").value(), some_index());
  EXPECT_EQ(CheckpointIndex::parse(
                with_parts(R"("[0:1, 0:6]":"a","[1:4, 0:2]":"a","[1:4, 2:6]":"a")"), "x")
                .value()
                .split.at("w")
                .parts.at("[1:4, 2:6]"),
            (CheckpointIndex::Split::Part{Box{{1, 4}, {2, 6}}, "a"}));
  CheckpointIndex foreign =
      CheckpointIndex::parse(R"({"metadata":{"total_size":8},"weight_map":{"w":"f"}})", "x")
          .value();
  EXPECT_FALSE(foreign.is_ours);
  EXPECT_EQ(foreign.whole.at("w"), "f");
  EXPECT_EQ(foreign.total_size, 8u);
}

TEST(CheckpointIndex, PartsMustCoverATensorExactlyOnce) {
  CheckpointIndex gap = some_index(), overlap = some_index();
  gap.split["w"].parts.erase("[2:4, 0:6]");
  EXPECT_EQ(refusal(gap), "[x] the parts of \"w\", f32[4,6], have only 12 of its 24 elements");
  overlap.split["w"].parts["[1:3, 5:6]"] = {Box{{1, 3}, {5, 6}}, "a"};
  EXPECT_THAT(refusal(overlap), HasSubstr("of \"w\", f32[4,6], overlap"));
  EXPECT_THAT(refusal(overlap), HasSubstr("[1:3, 5:6]"));
  // As many elements as the tensor has, but some twice.
  CheckpointIndex both = some_index();
  both.split["w"].parts = {{"[0:4, 0:3]", {Box{{0, 4}, {0, 3}}, "a"}},
                           {"[0:4, 2:5]", {Box{{0, 4}, {2, 5}}, "a"}}};
  EXPECT_THAT(refusal(both), HasSubstr("overlap"));
  // A grid of parts, without one and with one shifted.
  CheckpointIndex grid = some_index();
  grid.split["w"].parts.clear();
  for (std::int64_t row = 0; row < 4; ++row)
    for (std::int64_t column = 0; column < 6; ++column) {
      Box box{{row, row + 1}, {column, column + 1}};
      grid.split["w"].parts[to_string(box)] = {box, "a"};
    }
  EXPECT_EQ(CheckpointIndex::parse(grid.to_json(), "x").value(), grid);
  grid.split["w"].parts.erase("[2:3, 3:4]");
  EXPECT_THAT(refusal(grid), HasSubstr("have only 23 of its 24 elements"));
  grid.split["w"].parts["[2:3, 4:6]"] = {Box{{2, 3}, {4, 6}}, "a"};
  EXPECT_THAT(refusal(grid), HasSubstr("overlap"));
}

TEST(CheckpointIndex, WhatIsNoIndexIsRefused) {
  std::string whole = R"("[0:4, 0:6]":"a")";
  EXPECT_TRUE(CheckpointIndex::parse(with_parts(whole), "x").ok());
  for (const char* part : {"[0:4,0:6]", "[0:4, 0:6", "[0:4]", "[0:4, 0:6, 0:1]", "[0:4, 0:7]",
                           "[-1:4, 0:6]", "[0:4, 3:3]", "[00:4, 0:6]", "[0:4, 0:6, ]", ""})
    EXPECT_FALSE(CheckpointIndex::parse(with_parts(cat('"', part, "\":\"a\"")), "x").ok()) << part;
  for (const char* file : {"../a", "/a", "", "b"})
    EXPECT_FALSE(CheckpointIndex::parse(with_parts(cat(R"("[0:4, 0:6]":")", file, '"')), "x").ok())
        << file;
  for (const char* text :
       {"[]", "{}", R"({"weight_map":3})", R"({"weight_map":{},"meshard":{}})",
        R"({"weight_map":{},"meshard":{"version":1,"files":{"../a":1},"split":{}}})",
        R"({"weight_map":{},"meshard":{"version":1,"files":{"a":-1},"split":{}}})",
        R"({"weight_map":{"w":"b"},"meshard":{"version":1,"files":{"a":1},"split":{}}})"})
    EXPECT_EQ(CheckpointIndex::parse(text, "x").error().code(), ErrorCode::kInvalidArgument)
        << text;
  std::string newer = some_index().to_json();
  newer.replace(newer.find("\"version\":"), 11, "\"version\":9, \"x\":");
  EXPECT_EQ(CheckpointIndex::parse(newer, "x").error().code(), ErrorCode::kUnimplemented) << newer;
}

TEST(CheckpointIndex, WritersAreMerged) {
  CheckpointIndex first = some_index(), second = some_index();
  first.whole.clear();
  first.files.erase("b");
  first.split["w"].parts.erase("[2:4, 0:6]");
  second.files.erase("a");
  second.split["w"].parts.erase("[0:2, 0:6]");
  CheckpointIndex all = first;
  first.total_size = 60;
  second.total_size = 40;
  all = first;
  all.merge(second).value();
  EXPECT_EQ(all, some_index());
  EXPECT_THAT(all.merge(second).error().message(), HasSubstr("two processes have written"));
  all = first;
  second.whole.clear();
  second.split["w"].type.dtype = DType::i32;
  EXPECT_THAT(all.merge(second).error().message(),
              HasSubstr("\"w\" is f32[4,6] in one process and i32[4,6] in another"));
}

}  // namespace
}  // namespace meshard::io::internal
