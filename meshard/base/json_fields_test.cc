#include "meshard/base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

enum class Color { kRed, kBlue };

struct Corner {
  std::int64_t x = 0;
  int count = 0;
  MESHARD_FIELDS(x, count)
};
struct Weight {
  double kilograms = 0;
  MESHARD_FIELDS(kilograms)
};
struct Parcel {
  std::string name;
  Color color = Color::kRed;
  std::vector<Corner> corners;
  std::optional<double> depth;
  Weight weight;
  bool is_open = false;
  std::vector<bool> flags = {};
  int cached = 7;

  std::size_t sides() const { return corners.size() + 2; }
  MESHARD_WRITTEN_FIELDS(name, color, sides(), corners, depth, weight, is_open, flags, cached)
  static constexpr FieldNotes kFieldNotes{
      .later = "is_open flags", .local = "cached", .inlined = "weight"};
};

// A type of its own.
struct Sum {
  std::int64_t of = 0;
};
struct WithSum {
  Sum sum;
  MESHARD_FIELDS(sum)
};
struct SumForms : JsonForms {
  using JsonForms::check;
  using JsonForms::read;
  using JsonForms::write;
  void write(JsonWriter& json, const Sum& sum) const { json.value(sum.of + base); }
  void read(const JsonPlace& at, Sum& to) const { to.of = at.integer() - base; }
  void check(const JsonPlace& at, const WithSum& value) const {
    if (value.sum.of < 0) at.fail("the sum is negative");
  }
  std::int64_t base = 100;
};

}  // namespace

template <>
struct EnumNames<Color> {
  static constexpr EnumName<Color> kNames[] = {{Color::kRed, "red"}, {Color::kBlue, "blue"}};
};

namespace {

TEST(FieldNotes, ListNames) {
  static_assert(lists_name("a bc d", "a") && lists_name("a bc d", "bc") &&
                lists_name("a bc d", "d"));
  static_assert(!lists_name("a bc d", "b") && !lists_name("", "a") && !lists_name("abc", "ab"));
  static_assert(written_name("total()") == "total" && written_name("total") == "total");
  static_assert(field_notes<Corner>().later.empty());
}

struct Summed {
  int a = 1, b = 2;
  int sum() const { return a + b; }
  MESHARD_WRITTEN_FIELDS(a, sum(), b)
};
struct SummedForgotten {
  int a, b, c;
  int sum() const { return a + b + c; }
  MESHARD_WRITTEN_FIELDS(a, b, sum())
};

TEST(FieldNotes, FunctionsOfConstantsAreVisited) {
  Summed summed;
  std::string seen;
  visit_fields(summed, [&](std::string_view name, auto& field) {
    seen += std::string(name) + ";";
    field = 7;
  });
  EXPECT_EQ(seen, "a;b;");
  const Summed& constant = summed;
  seen.clear();
  visit_fields(constant, [&](std::string_view name, const auto& field) {
    seen += std::string(name) + "=" + std::to_string(field) + ";";
  });
  EXPECT_EQ(seen, "a=7;sum()=14;b=7;");
  static_assert(internal::names_all_members<Summed>());
  static_assert(!internal::names_all_members<SummedForgotten>());
}

constexpr const char* kBoxText =
    R"({"name":"a","color":"blue","sides":3,"corners":[{"x":-4,"count":2}],"depth":null,)"
    R"("kilograms":0.5,"is_open":true,"flags":[true,false]})";

Parcel box_of_test() {
  return {.name = "a",
          .color = Color::kBlue,
          .corners = {{-4, 2}},
          .depth = std::nullopt,
          .weight = {0.5},
          .is_open = true,
          .flags = {true, false},
          .cached = 9};
}

template <class T>
std::string json_text_of(const T& value) {
  JsonWriter json;
  write_json(json, value);
  return std::move(json).text();
}

Parcel read_box(std::string_view text) {
  JsonValue whole = read_json(text).value();
  Parcel box;
  read_json(JsonPlace(whole, "box"), box);
  return box;
}

TEST(JsonFields, AreMembersInTheirOrder) { EXPECT_EQ(json_text_of(box_of_test()), kBoxText); }

TEST(JsonFields, AreReadByName) {
  Parcel box = read_box(
      R"({"unknown":[1],"color":"blue","corners":[{"count":2,"x":-4}],"kilograms":0.5,"name":"a",)"
      R"("flags":[true,false],"is_open":true,"depth":null,"sides":"derived, and not read"})");
  EXPECT_EQ(json_text_of(box), kBoxText);
  EXPECT_EQ(box.cached, 7) << "a local field keeps its default";
  EXPECT_EQ(
      read_box(R"({"name":"","color":"red","corners":[],"depth":2.5,"kilograms":null})").depth,
      2.5);
}

TEST(JsonFields, MayBeMissingIfTheyWereAddedLater) {
  Parcel box = read_box(R"({"name":"a","color":"red","corners":[],"depth":1,"kilograms":1})");
  EXPECT_FALSE(box.is_open);
  EXPECT_TRUE(box.flags.empty());
  EXPECT_TRUE(throws_error([] { read_box(R"({"name":"a","color":"red","corners":[],"depth":1})"); },
                           ErrorCode::kDataLoss, {"[box] missing member `kilograms`"}));
}

TEST(JsonFields, ErrorsNameTheMember) {
  auto error = [](std::string_view before, std::string_view after) {
    std::string text = kBoxText;
    text.replace(text.find(before), before.size(), after);
    try {
      read_box(text);
    } catch (const Error& caught) {
      return caught.message();
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("\"blue\"", "\"green\""), "[box] color: unknown word `green`");
  EXPECT_EQ(error("\"blue\"", "1"), "[box] color: expected a string");
  EXPECT_EQ(error("-4", "0.5"), "[box] corners[0].x: expected a 64-bit integer");
  EXPECT_EQ(error("-4", "9223372036854775808"), "[box] corners[0].x: expected a 64-bit integer");
  EXPECT_EQ(error("\"count\":2", "\"count\":-2"),
            "[box] corners[0].count: expected a number from 0 to 2147483647, got -2");
  EXPECT_EQ(error("0.5", "1e999"), "[box] kilograms: expected a number");
  EXPECT_EQ(error("[true,", "[0,"), "[box] flags[0]: expected true or false");
  EXPECT_EQ(error("[{\"x\":-4,\"count\":2}]", "{}"), "[box] corners: expected an array");
  EXPECT_EQ(error(",\"count\":2", ""), "[box] corners[0]: missing member `count`");
}

TEST(JsonFields, AFormatHasFormsOfItsOwn) {
  JsonWriter json;
  write_json(json, std::vector<WithSum>{{{7}}}, SumForms());
  std::string text = std::move(json).text();
  EXPECT_EQ(text, R"([{"sum":107}])");
  JsonValue whole = read_json(text).value(), wrong = read_json(R"([{"sum":3}])").value();
  std::vector<WithSum> back;
  read_json(JsonPlace(whole, "sums"), back, SumForms());
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].sum.of, 7);
  EXPECT_TRUE(throws_error([&] { read_json(JsonPlace(wrong, "sums"), back, SumForms()); },
                           ErrorCode::kDataLoss, {"[sums] [0]: the sum is negative"}));
}

}  // namespace
}  // namespace meshard
