#include "meshard/base/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include "meshard/base/error.h"

namespace meshard {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonWriter, ObjectsAndArrays) {
  JsonWriter json;
  json.begin_object();
  json.member("name", "all-reduce.1");
  json.key("bytes").value(4096);
  json.key("axes").begin_array().value("data").value("model").end_array();
  json.key("none").begin_object().end_object();
  json.key("empty").begin_array().end_array();
  json.member("yes", true).member("nothing", nullptr);
  json.member("maybe", std::optional<int>()).member("some", std::optional<int>(7));
  json.end_object();
  EXPECT_EQ(std::move(json).text(),
            R"({"name":"all-reduce.1","bytes":4096,"axes":["data","model"],"none":{},"empty":[],)"
            R"("yes":true,"nothing":null,"maybe":null,"some":7})");
}

TEST(JsonWriter, Indented) {
  JsonWriter json(2);
  json.begin_object().key("a").begin_array().value(1).value(2).end_array();
  json.key("b").begin_array().end_array().end_object();
  EXPECT_EQ(std::move(json).text(), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": []\n}");
}

TEST(JsonWriter, NumbersKeepAllTheirDigits) {
  JsonWriter json;
  json.begin_array();
  json.value(std::numeric_limits<std::int64_t>::max());
  json.value(std::numeric_limits<std::int64_t>::min());
  json.value(std::numeric_limits<std::uint64_t>::max());
  json.value(0.1).value(1e300).value(-2.5);
  json.value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<double>::quiet_NaN());
  json.end_array();
  EXPECT_EQ(std::move(json).text(),
            "[9223372036854775807,-9223372036854775808,18446744073709551615,0.1,1e+300,-2.5,"
            "null,null]");
}

TEST(JsonWriter, EscapesAsTheRfcAsks) {
  EXPECT_EQ(json_of("a\"b\\c/d"), R"("a\"b\\c/d")");
  EXPECT_EQ(json_of("\n\r\t"), R"("\n\r\t")");
  EXPECT_EQ(json_of(std::string_view("\0\x1f\x7f", 3)), R"("\u0000\u001f\u007f")");
  EXPECT_EQ(json_of("µ→𝛼"), "\"µ→𝛼\"");
}

TEST(JsonWriter, BytesThatAreNoUtf8) {
  const std::string bad = "\xEF\xBF\xBD";                                       // U+FFFD
  EXPECT_EQ(json_of("a\xFFz"), "\"a" + bad + "z\"");                            // not a lead byte
  EXPECT_EQ(json_of("\xC3"), "\"" + bad + "\"");                                // truncated
  EXPECT_EQ(json_of("\xC0\xAF"), "\"" + bad + bad + "\"");                      // overlong
  EXPECT_EQ(json_of("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");            // surrogate
  EXPECT_EQ(json_of("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");  // above U+10FFFF
  EXPECT_EQ(json_of("\xE2\x82x"), "\"" + bad + bad + "x\"");
}

TEST(JsonWriter, RefusesWhatIsNoJson) {
  EXPECT_THROW(JsonWriter().end_array(), InternalError);
  EXPECT_THROW(JsonWriter().key("a"), InternalError);
  EXPECT_THROW(JsonWriter().begin_object().value(1), InternalError);
  EXPECT_THROW(JsonWriter().begin_object().end_array(), InternalError);
  EXPECT_THROW(JsonWriter().begin_object().key("a").key("b"), InternalError);
  EXPECT_THROW(JsonWriter().begin_object().key("a").end_object(), InternalError);
  EXPECT_THROW(JsonWriter().value(1).value(2), InternalError);
  EXPECT_THROW(JsonWriter().text(), InternalError);
  JsonWriter open;
  open.begin_array();
  EXPECT_THROW(std::move(open).text(), InternalError);
}

}  // namespace
}  // namespace meshard
