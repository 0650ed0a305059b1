#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/report/expect.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

using testing::HasSubstr;

TEST(ExpectedCollectives, TextWithEveryPart) {
  ExpectedCollectives read =
      ExpectedCollectives::parse(
          "1 all-reduce over model; 2 all-gathers over data, \"x\":(2)2, at most 1.5 MiB;"
          "at most 3 all-to-alls; no collective-permute; any reduce-scatters over data;"
          "2 send; others allowed")
          .value();
  ASSERT_EQ(read.list().size(), 6u);
  EXPECT_TRUE(read.others_allowed());
  EXPECT_EQ(read.list()[0],
            (ExpectedCollective{.kind = CollectiveKind::kAllReduce, .axes = AxisList{"model"}}));
  EXPECT_EQ(read.list()[1], (ExpectedCollective{.kind = CollectiveKind::kAllGather,
                                                .axes = AxisList{"data", AxisRef("x", 2, 2)},
                                                .count = 2,
                                                .most_bytes = 3 * 512 * 1024}));
  EXPECT_EQ(read.list()[2],
            (ExpectedCollective{.kind = CollectiveKind::kAllToAll, .count = 3, .at_most = true}));
  EXPECT_EQ(read.list()[3],
            (ExpectedCollective{.kind = CollectiveKind::kCollectivePermute, .count = 0}));
  EXPECT_EQ(read.list()[4].count, std::nullopt);
  EXPECT_EQ(read.list()[5].kind, CollectiveKind::kSend);
}

TEST(ExpectedCollectives, NoneAtAll) {
  EXPECT_EQ(ExpectedCollectives::parse("no collectives").value(), ExpectedCollectives());
  EXPECT_EQ(ExpectedCollectives().to_string(), "no collectives");
  EXPECT_EQ(ExpectedCollectives("others allowed"), ExpectedCollectives({}, true));
}

std::string refusal(std::string_view text) {
  Result<ExpectedCollectives> read = ExpectedCollectives::parse(text);
  return read.ok() ? "read as " + read->to_string() : read.error().message();
}

TEST(ExpectedCollectives, WhatIsWrongAndWhere) {
  EXPECT_THAT(refusal("1 all-reduse"), HasSubstr("expected a collective (all-reduce, "));
  EXPECT_THAT(refusal("1 all-reduse"), HasSubstr("at character 2 of `1 all-reduse`"));
  EXPECT_THAT(refusal("all-reduce"), HasSubstr("expected a number, `no`, `any`"));
  EXPECT_THAT(refusal("1 all-reduce over"), HasSubstr("expected"));
  EXPECT_THAT(refusal("1 all-reduce over ;"), HasSubstr("expected the name of a mesh axis"));
  EXPECT_THAT(refusal("-1 all-reduce"), HasSubstr("nonnegative"));
  EXPECT_THAT(refusal("1 all-reduce 2 all-gather"), HasSubstr("expected `;`"));
  EXPECT_THAT(refusal("1 all-reduce over a, b; 2 all-reduces over b, a"),
              HasSubstr("already specified as `1 all-reduce over \"a\", \"b\"`"));
  EXPECT_THAT(refusal("1 all-reduce, at most 9999999 TiB"), HasSubstr("too large"));
  EXPECT_THAT(refusal("no collectives; 1 all-reduce"), HasSubstr("cannot be combined"));
  EXPECT_THAT(refusal("fits"), HasSubstr("only collective expectations"));
  EXPECT_THAT(refusal(""), HasSubstr("only collective expectations"));
}

TEST(ExpectedCollectives, ValuesAreChecked) {
  EXPECT_TRUE(throws_error([] { ExpectedCollectives({{.count = -1}}); },
                           ErrorCode::kInvalidArgument, {"negative"}));
  EXPECT_TRUE(throws_error(
      [] {
        ExpectedCollectives({{}, {.count = 2}});
      },
      ErrorCode::kInvalidArgument, {"same collectives"}));
  EXPECT_TRUE(throws_error([] { ExpectedCollectives("one"); }, ErrorCode::kInvalidArgument,
                           {"expected a number"}));
}

TEST(Expectations, AFile) {
  Expectations read = Expectations::parse(
                          "# products\n1 all-reduce over \"model\"  # the second one\n\n"
                          "no full replication above 64 KiB except \"p['po#s']\", \"lnf*\"\n"
                          "fits with 12.5% spare\n")
                          .value();
  EXPECT_EQ(read.collectives, ExpectedCollectives("1 all-reduce over model"));
  EXPECT_EQ(read.no_full_replication,
            (FullReplicationOptions{.least_bytes = 65536, .except = {"p['po#s']", "lnf*"}}));
  EXPECT_EQ(read.fits_margin, 0.125);
  EXPECT_TRUE(Expectations::parse("# nothing\n").value().empty());
}

TEST(Expectations, ErrorsNameTheLine) {
  Result<Expectations> read = Expectations::parse("fits\n\n1 all-reduce ower x\n");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message(), HasSubstr("line 3"));
  EXPECT_FALSE(Expectations::parse("fits\nfits with 3% spare").ok());
  EXPECT_FALSE(Expectations::parse("no full replication except \"x").ok());
}

ExpectedCollective random_collective(std::mt19937_64& random, int number) {
  constexpr CollectiveKind kinds[] = {CollectiveKind::kAllReduce, CollectiveKind::kRaggedAllToAll,
                                      CollectiveKind::kAllToAll, CollectiveKind::kReceive};
  ExpectedCollective one;
  one.kind = kinds[random() % 4];
  // A different axis each time, so that no two describe the same collectives.
  one.axes = AxisList{AxisRef("a" + std::to_string(number))};
  if (random() % 2) one.axes->push_back(AxisRef("b", 1 + static_cast<int>(random() % 3), 2));
  if (random() % 4 == 0) one.count.reset();
  if (one.count) one.count = static_cast<int>(random() % 3);
  one.at_most = one.count.value_or(0) > 0 && random() % 2;
  if (random() % 2) one.most_bytes = static_cast<std::int64_t>(random() >> (1 + random() % 62));
  return one;
}

TEST(Expectations, WhatIsPrintedReadsBack) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Expectations made;
    std::vector<ExpectedCollective> list;
    for (int i = static_cast<int>(random() % 4); i > 0; --i)
      list.push_back(random_collective(random, i));
    if (random() % 4) made.collectives.emplace(list, random() % 2 == 0);
    if (random() % 2)
      made.no_full_replication = {static_cast<std::int64_t>(random() >> (random() % 62 + 2)),
                                  {"a\"b\\", "p['x'], #", "two\nlines"}};
    if (random() % 2) made.fits_margin = static_cast<double>(random() % 1000) / 1000;
    Result<Expectations> read = Expectations::parse(made.to_string());
    ASSERT_TRUE(read.ok()) << made.to_string() << read.error().message();
    EXPECT_EQ(*read, made) << made.to_string();
    if (!made.collectives) continue;
    EXPECT_EQ(ExpectedCollectives::parse(made.collectives->to_string()).value(), *made.collectives);
  }
}

TEST(ExpectationNumbers, MarginsAndBytes) {
  EXPECT_EQ(parse_margin("10%").value(), 0.1);
  EXPECT_EQ(parse_margin("0%").value(), 0);
  for (const char* wrong : {"10", "100%", "-1%", "%", "1e1%"})
    EXPECT_FALSE(parse_margin(wrong).ok()) << wrong;
  EXPECT_EQ(parse_bytes("512").value(), 512);
  EXPECT_EQ(parse_bytes("1.5 KiB").value(), 1536);
  EXPECT_EQ(parse_bytes("9007199254740993 B").value(), 9007199254740993);
  EXPECT_EQ(parse_bytes("2TiB").value(), std::int64_t{1} << 41);
  for (const char* wrong : {"", "1 KB", "-1", "1.", "9223372036854775807 KiB"})
    EXPECT_FALSE(parse_bytes(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace meshard
