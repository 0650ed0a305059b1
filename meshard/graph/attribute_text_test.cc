#include "meshard/graph/attribute_text.h"

#include <gtest/gtest.h>

#include <limits>

#include "meshard/graph/attributes.h"

namespace meshard {
namespace {

enum class Mode { kFast, kExact };

}  // namespace

template <>
struct EnumNames<Mode> {
  static constexpr EnumName<Mode> kNames[] = {{Mode::kFast, "fast"}, {Mode::kExact, "exact"}};
};

namespace {

struct Every {
  bool flag = false;
  std::int64_t count = 0;
  double scale = 0;
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::int64_t> list;
  Dimensions dimensions;
  Mode mode = Mode::kFast;
  HostArray array;
  std::optional<Sharding> sharding;
  AxisList axes;
  MESHARD_FIELDS(flag, count, scale, name, dtype, shape, list, dimensions, mode, array, sharding,
                 axes)
};

Every example() {
  return {.flag = true,
          .count = -7,
          .scale = 0.1,
          .name = "a \"quoted\", [name]\\",
          .dtype = DType::bf16,
          .shape = {2, 3},
          .list = {1, -2},
          .dimensions = {},
          .mode = Mode::kExact,
          .array = HostArray::from_vector<float>({1.5f, std::numeric_limits<float>::quiet_NaN()}),
          .sharding = Sharding(Mesh({{"x", 2}, {"y", 4}}, {7, 6, 5, 4, 3, 2, 1, 0}),
                               P("x", {"y"}, unconstrained)),
          .axes = {"y", AxisRef("x", 1, 2)}};
}

std::string printed(const Attributes& attributes) {
  std::string out;
  attributes.print(out);
  return out;
}
std::string key(const Attributes& attributes) {
  std::string out;
  attributes.append_key(out);
  return out;
}

TEST(AttributeText, EveryKindReadsBack) {
  auto attributes = make_attributes(example());
  std::string text = printed(*attributes);
  auto read = parse_attributes<Every>(text);
  ASSERT_TRUE(read.ok()) << text << "\n" << read.error().to_string();
  EXPECT_EQ(printed(**read), text);
  EXPECT_EQ(key(**read), key(*attributes));
}

TEST(AttributeText, KeysDifferWhenAnyFieldDoes) {
  std::string base = key(*make_attributes(example()));
  auto changed = [&](auto change) {
    Every value = example();
    change(value);
    return key(*make_attributes(std::move(value)));
  };
  EXPECT_NE(base, changed([](Every& e) { e.flag = false; }));
  EXPECT_NE(base, changed([](Every& e) { e.count = 7; }));
  EXPECT_NE(base, changed([](Every& e) { e.scale = 0.2; }));
  EXPECT_NE(base, changed([](Every& e) { e.name = "b"; }));
  EXPECT_NE(base, changed([](Every& e) { e.dtype = DType::f16; }));
  EXPECT_NE(base, changed([](Every& e) { e.shape = {3, 2}; }));
  EXPECT_NE(base, changed([](Every& e) { e.list = {1}; }));
  EXPECT_NE(base, changed([](Every& e) { std::swap(e.list[0], e.list[1]); }));
  EXPECT_NE(base, changed([](Every& e) { e.mode = Mode::kFast; }));
  EXPECT_NE(base, changed([](Every& e) { e.array = HostArray::scalar(1.0f); }));
  EXPECT_NE(base, changed([](Every& e) { e.sharding.reset(); }));
  EXPECT_NE(base, changed([](Every& e) { e.axes.pop_back(); }));
}

TEST(AttributeText, SplitsOutsideBracketsAndQuotes) {
  auto pieces = attribute_text::split_outside_brackets("a, [b, c], \"d, [\", {e: <f, g>}", ',');
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[1], "[b, c]");
  EXPECT_EQ(pieces[2], "\"d, [\"");
  EXPECT_TRUE(attribute_text::split_outside_brackets("  ", ',').empty());
}

TEST(AttributeText, MalformedValuesAreNamed) {
  for (const char* text : {"flag=yes", "flag", "flag=true, flag=true"}) {
    auto read = parse_attributes<Every>(text);
    EXPECT_FALSE(read.ok()) << text;
  }
  HostArray array;
  EXPECT_FALSE(attribute_text::parse("f32[2]:00", array).ok());
  EXPECT_FALSE(attribute_text::parse("f32[1]:0000zz00", array).ok());
  EXPECT_FALSE(attribute_text::parse("f32[1]", array).ok());
}

}  // namespace
}  // namespace meshard
