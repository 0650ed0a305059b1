#include "meshard/base/json_reader.h"

#include <gtest/gtest.h>

#include "meshard/base/json_writer.h"

namespace meshard {
namespace {

using Kind = JsonValue::Kind;

TEST(JsonReader, ReadsEveryKind) {
  JsonValue value =
      read_json(R"( {"a": [1, -2.5e+3, "x\n\u00e9\ud83d\ude00"], "b": {"c": null}, "d": true} )")
          .value();
  ASSERT_EQ(value.members.size(), 3u);
  const JsonValue& a = *value.find("a");
  ASSERT_EQ(a.elements.size(), 3u);
  EXPECT_EQ(a.elements[0].whole_number(), 1u);
  EXPECT_EQ(a.elements[1].text, "-2.5e+3");
  EXPECT_EQ(a.elements[1].whole_number(), std::nullopt);
  EXPECT_EQ(a.elements[2].text, "x\n\xC3\xA9\xF0\x9F\x98\x80");
  EXPECT_TRUE(value.find("b")->find("c")->is(Kind::kNull));
  EXPECT_TRUE(value.find("d")->truth);
  EXPECT_EQ(value.find("e"), nullptr);
}

TEST(JsonReader, WholeNumbersFitOrAreNone) {
  EXPECT_EQ(read_json("18446744073709551615")->whole_number(), 18446744073709551615u);
  for (const char* other : {"18446744073709551616", "-1", "1.0", "1e3", "\"1\""})
    EXPECT_EQ(read_json(other)->whole_number(), std::nullopt) << other;
}

TEST(JsonReader, ReadsWhatTheWriterWrites) {
  std::string odd = "a\"\\\x01/\t\xC3\xA9";
  JsonWriter json;
  json.begin_object().member(odd, odd).end_object();
  EXPECT_EQ(read_json(std::move(json).text()).value().find(odd)->text, odd);
}

TEST(JsonReader, RefusesWhatIsNoJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1,]",
                           "[1 2]",
                           "{\"a\" 1}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "01",
                           "-",
                           "1.",
                           "1e",
                           "+1",
                           ".5",
                           "nul",
                           "\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\x01\"",
                           "1 1",
                           "{\"a\":1,\"a\":2}",
                           "[1}",
                           "'a'",
                           "NaN",
                           "\"\xFF\"",
                           "\"\xC3\""})
    EXPECT_FALSE(read_json(text).ok()) << text;
  EXPECT_EQ(read_json("{\"a\":1,\"a\":2}", "weights").error().message(),
            "[weights] cannot parse JSON at byte 10: duplicate member name \"a\"");
}

TEST(JsonReader, NestingIsBounded) {
  auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(read_json(nested(64)).ok());
  EXPECT_FALSE(read_json(nested(100000)).ok());
}

TEST(JsonReader, MembersOneByOne) {
  std::vector<std::string> seen;
  auto take = [&](const std::string& name, const JsonValue& value) -> Result<void> {
    seen.push_back(name + "=" + value.text);
    if (value.text == "9") return Error(ErrorCode::kUnimplemented, "nine");
    return {};
  };
  EXPECT_TRUE(read_json_members(R"( {"a": 1, "b": {"c": [2]}, "d": "e"} )", "w", take).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"a=1", "b=", "d=e"}));
  EXPECT_TRUE(read_json_members("{}", "w", take).ok());
  EXPECT_EQ(read_json_members(R"({"a":9,)", "w", take).error().message(), "nine");
  for (const char* text : {"[1]", "", "{", R"({"a":1,"a":2})", R"({"a":1} 2)", R"({"a"})"})
    EXPECT_EQ(read_json_members(text, "w", take).error().code(), ErrorCode::kInvalidArgument)
        << text;
}

TEST(JsonReader, ValuesOfAMemberAreBounded) {
  auto take = [](const std::string&, const JsonValue&) -> Result<void> { return {}; };
  JsonLimits three{3};
  EXPECT_TRUE(read_json_members(R"({"a":[1,2],"b":[3,4]})", "w", take, three).ok());
  EXPECT_EQ(read_json_members(R"({"a":[1,2,3]})", "w", take, three).error().message(),
            "[w] cannot parse JSON at byte 10: too many values");
}

}  // namespace
}  // namespace meshard
