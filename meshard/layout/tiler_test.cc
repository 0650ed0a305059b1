#include "meshard/layout/tiler.h"

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Tiler, Kinds) {
  EXPECT_EQ(Tiler().kind(), Tiler::Kind::kNone);
  EXPECT_EQ(Tiler().layout().to_string(), "1:0");
  Tiler integer = 4, layout = Layout({2, 2}, {4, 1}), tuple = {2, Tiler(), layout};
  EXPECT_EQ(integer.kind(), Tiler::Kind::kInteger);
  EXPECT_EQ(integer.layout().to_string(), "4:1");
  EXPECT_EQ(layout.kind(), Tiler::Kind::kLayout);
  EXPECT_TRUE(layout.tilers().empty());
  ASSERT_EQ(tuple.kind(), Tiler::Kind::kTuple);
  ASSERT_EQ(tuple.tilers().size(), 3u);
  EXPECT_EQ(tuple.tilers()[0], Tiler(2));
  EXPECT_EQ(tuple.tilers()[2], layout);
  EXPECT_FALSE(Tiler(4) == Tiler(Layout(IntTuple(4))));
  EXPECT_EQ(Tiler(tuple.tilers()), tuple);
  EXPECT_TRUE(throws_error([] { Tiler(0); }, ErrorCode::kInvalidArgument, {"below 1"}));
}

TEST(Tiler, ParsesWhatItPrints) {
  for (const char* text :
       {"_", "4", "4:1", "(2,4):(4,1)", "<>", "<2>", "<2, _, 3:2>", "<<2, (2,2):(1,8)>, _>"}) {
    Result<Tiler> parsed = Tiler::parse(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  for (const char* text : {"", "<2", "(2,4)", "4:", "<2,>", "0", "_:1"})
    EXPECT_FALSE(Tiler::parse(text).ok()) << text;
  EXPECT_TRUE(throws_error([] { (void)Tiler::parse(std::string(100'000, '<')).value(); },
                           ErrorCode::kInvalidArgument, {"more than 100 levels deep"}));
}

}  // namespace
}  // namespace meshard
