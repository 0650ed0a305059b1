#include "meshard/explain/process_map.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(LinkFigures, Parses) {
  EXPECT_EQ(LinkFigures::parse("10GB/s,20us").value(), (LinkFigures{10e9, 20e-6}));
  EXPECT_EQ(LinkFigures::parse("1.5 MB/s").value(), (LinkFigures{1.5e6, 0}));
  EXPECT_EQ(LinkFigures::parse("100Gbit/s, 0.5 ms").value(), (LinkFigures{12.5e9, 5e-4}));
}

TEST(LinkFigures, ParsesWhatItPrints) {
  for (LinkFigures figures : {LinkFigures{10e9, 20e-6}, LinkFigures{999, 0}, LinkFigures{2e12, 3}})
    EXPECT_EQ(LinkFigures::parse(figures.to_string()).value(), figures) << figures.to_string();
  EXPECT_EQ((LinkFigures{12.5e9, 20e-6}.to_string()), "12.5 GB/s, 20 us");
}

TEST(LinkFigures, RefusesOtherText) {
  for (const char* text : {"", "10", "10GB", "GB/s", "0GB/s", "-1GB/s", "10GB/s,", "10GB/s,20",
                           "10GB/s,-2us", "infGB/s", "10GB/s,2us,3us", "10gb/s"}) {
    Result<LinkFigures> figures = LinkFigures::parse(text);
    ASSERT_FALSE(figures.ok()) << text;
    EXPECT_EQ(figures.error().code(), ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace meshard
