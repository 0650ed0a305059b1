#include "meshard/sharding/picture.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Mesh mesh22() { return Mesh({{"x", 2}, {"y", 2}}, {4, 5, 6, 7}); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(ShardingPictureSvg, OneStripeADeviceAndOneFrameATile) {
  std::string svg = picture_svg(Sharding(mesh22(), P("x", none)));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "fill=\"hsl("), 4u);  // one stripe a device
  EXPECT_EQ(count(svg, "stroke="), 2u);      // one frame a tile
  EXPECT_EQ(count(svg, ">4,5</text>"), 1u);
  EXPECT_EQ(count(svg, ">6,7</text>"), 1u);
}

TEST(ShardingPictureSvg, DevicesHaveColoursOfTheirOwn) {
  std::string svg = picture_svg(Sharding(mesh22(), P({"x", "y"})));
  for (const char* colour : {"hsl(0,", "hsl(137,", "hsl(274,", "hsl(51,"})
    EXPECT_EQ(count(svg, colour), 1u) << colour;
}

TEST(ShardingPictureSvg, TooMany) {
  Sharding s(Mesh({{"x", 5000}}), P("x"));
  EXPECT_TRUE(throws_error([&] { picture_svg(s); }, ErrorCode::kInvalidArgument, {"5000"}));
}

}  // namespace
}  // namespace meshard
