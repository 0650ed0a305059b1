#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>

#include "meshard/io/safetensors.h"
#include "tests/support/exit_statuses.h"

namespace meshard::io {
namespace {

// A file with this header, followed by `bytes` zero bytes.
std::string file_of(const std::string& json, std::size_t bytes) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return file + json + std::string(bytes, '\0');
}

std::string refusal(const std::string& json, std::size_t bytes) {
  Result<SafetensorsHeader> header = read_safetensors_header(file_of(json, bytes), "w");
  return header ? "accepted" : header.error().message();
}

TEST(SafetensorsHeader, ReadsPlacesAndMetadata) {
  SafetensorsHeader header =
      read_safetensors_header(file_of(R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},
                      "__metadata__":{"k":"v"},
                      "e":{"dtype":"I64","shape":[3,0],"data_offsets":[2,2]},
                      "a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}   )",
                                      10),
                              "w")
          .value();
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0], (SafetensorsEntry{"a", {DType::bf16, {}}, 0, 2}));
  EXPECT_EQ(header.tensors[1], (SafetensorsEntry{"e", {DType::i64, {3, 0}}, 2, 2}));
  EXPECT_EQ(header.tensors[2], (SafetensorsEntry{"b", {DType::f32, {2, 1}}, 2, 10}));
  EXPECT_EQ(header.metadata.at("k"), "v");
}

TEST(SafetensorsHeader, RefusesPlacesThatDoNotTileTheData) {
  auto two = [](const char* first, const char* second, std::size_t bytes) {
    return refusal(std::string(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)") + first +
                       R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}",
                   bytes);
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "accepted");
  EXPECT_EQ(two("[0,4]", "[3,7]", 8),
            "[w] tensor \"b\" begins at byte 3 of the data, inside the preceding tensor, which "
            "ends at 4");
  EXPECT_EQ(two("[0,4]", "[5,9]", 9),
            "[w] tensor \"b\" begins at byte 5 of the data, after a gap that begins at 4");
  EXPECT_EQ(two("[0,4]", "[4,8]", 9),
            "[w] the tensors have 8 bytes, but the file has 9 bytes of data");
  EXPECT_EQ(two("[0,4]", "[4,8]", 7),
            "[w] the tensors have 8 bytes, but the file has 7 bytes of data");
  EXPECT_NE(two("[0,4]", "[4,9]", 9), "accepted") << "one byte too many";
  EXPECT_NE(two("[0,4]", "[8,4]", 8), "accepted") << "backward";
  EXPECT_NE(two("[0,4]", "[18446744073709551612,18446744073709551616]", 8), "accepted");
  EXPECT_NE(two("[0,4]", "[0,4]", 4), "accepted") << "the same bytes";
}

TEST(SafetensorsHeader, RefusesEntriesItDoesNotKnow) {
  auto one = [](const std::string& entry) { return refusal("{\"a\":" + entry + "}", 0); };
  EXPECT_EQ(one(R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})"), "accepted");
  for (
      const char* entry :
      {R"({"dtype":"F4","shape":[1],"data_offsets":[0,0]})", R"({"dtype":"F32","shape":[0]})",
       R"({"dtype":"F32","shape":0,"data_offsets":[0,0]})",
       R"({"dtype":3,"shape":[0],"data_offsets":[0,0]})",
       R"({"dtype":"F32","shape":[0],"data_offsets":[0]})",
       R"({"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":1})",
       R"({"dtype":"F32","shape":[-1],"data_offsets":[0,0]})",
       R"({"dtype":"F32","shape":[0.0],"data_offsets":[0,0]})",
       R"({"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]})",
       R"({"dtype":"F32","shape":[0,4611686018427387903,4611686018427387903],"data_offsets":[0,0]})",
       "[]", "null"})
    EXPECT_NE(one(entry), "accepted") << entry;
  EXPECT_NE(refusal(R"({"__metadata__":{"a":1}})", 0), "accepted");
  EXPECT_NE(
      refusal(
          R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
          0),
      "accepted");
}

// Parsing the whole text into values would take 88 bytes for every two bytes of text.
TEST(SafetensorsHeader, HostileHeadersNeedLittleMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space";
#endif
  auto many = [](std::string_view begin, std::string_view piece, std::string_view end) {
    std::string text(begin);
    while (text.size() < 20'000'000) text += piece;
    text.pop_back();
    return text + std::string(end);
  };
  auto answer = [&](const std::string& json) {
    std::string file = file_of(json, 0);
    rlimit limit{};
    ::getrlimit(RLIMIT_DATA, &limit);
    limit.rlim_cur = std::size_t{600} << 20;
    ::setrlimit(RLIMIT_DATA, &limit);
    auto header = read_safetensors_header(file, "w");
    bool refused = !header && header.error().code() == ErrorCode::kInvalidArgument;
    std::fprintf(stderr, "%s", header ? "accepted" : header.error().what());
    std::_Exit(refused ? 0 : 1);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(answer(many(R"({"a":{"dtype":"F32","shape":[)", "0,", R"(],"data_offsets":[0,0]}})")),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(answer(many(R"({"a":[)", "[0],", "]}")), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(answer(many(R"({"a":[)", "{},", "]}")), testing::ExitedWithCode(0), "");
}

TEST(SafetensorsHeader, RefusesWhatIsNoSuchFile) {
  for (const std::string& file :
       {std::string(), std::string("1234567"), std::string(8, '\xFF'), std::string(8, '\0'),
        file_of("[]", 0), file_of(" {}", 0), file_of("{", 0), file_of("{}", 1)})
    EXPECT_FALSE(read_safetensors_header(file, "w").ok());
  EXPECT_TRUE(read_safetensors_header(file_of("{}", 0), "w").ok());
}

TEST(SafetensorsHeader, WritesWhatItReads) {
  std::vector<SafetensorsEntry> entries{
      {"z", {DType::f32, {2, 3}}, 0, 0},   {"odd \"\n\\", {DType::u8, {5}}, 0, 0},
      {"a", {DType::f8e4m3fn, {3}}, 0, 0}, {"four", {DType::u8, {2, 1}}, 0, 0, "F4", {2, 2}},
      {"c", {DType::c64, {}}, 0, 0},       {"d", {DType::f64, {}}, 0, 0}};
  std::string text = write_safetensors_header(entries, {{"format", "x"}}).value();
  EXPECT_EQ(text.size() % 64, 0u);
  EXPECT_EQ(entries[1].name, "d") << "wide elements first";
  SafetensorsHeader header = read_safetensors_header(text + std::string(50, '\0'), "w").value();
  EXPECT_EQ(header.tensors, entries);
  EXPECT_EQ(header.data_begin, text.size());
  EXPECT_EQ(header.metadata.at("format"), "x");
}

// Dtypes that meshard lacks are bytes: rows if these are whole bytes. Of dtypes that nobody knows,
// any number of bytes is taken.
TEST(SafetensorsHeader, ReadsOtherDtypesAsBytes) {
  auto type_of = [](const std::string& dtype, const std::string& shape, int bytes) {
    std::string text = cat(R"({"a":{"dtype":")", dtype, R"(","shape":)", shape,
                           R"(,"data_offsets":[0,)", bytes, "]}}");
    Result<SafetensorsHeader> header = read_safetensors_header(file_of(text, bytes), "w");
    return header ? header->tensors[0].type.to_string() : header.error().message();
  };
  EXPECT_EQ(type_of("F4", "[3,4]", 6), "u8[3,2]");
  EXPECT_EQ(type_of("F4", "[2,3]", 3), "u8[3]") << "rows of 12 bits";
  EXPECT_EQ(type_of("F6_E3M2", "[2,4]", 6), "u8[2,3]");
  EXPECT_EQ(type_of("F6_E2M3", "[0,4]", 0), "u8[0]");
  EXPECT_EQ(type_of("I2", "[2,7]", 4), "u8[2,2]");
  EXPECT_EQ(type_of("C32", "[]", 4), "u8[4]");
  EXPECT_THAT(type_of("F4", "[3,4]", 7), testing::HasSubstr("F4[3, 4] does not match"));
  EXPECT_THAT(type_of("F4", "[3]", 1), testing::HasSubstr("does not match"));
}

TEST(SafetensorsHeader, DoesNotWriteWhatCannotBeRead) {
  std::vector<SafetensorsEntry> twice{{"a", {}, 0, 0}, {"a", {}, 0, 0}},
      reserved{{"__metadata__", {}, 0, 0}}, unnamed{{"a", {DType::f8e3m4, {1}}, 0, 0}};
  EXPECT_EQ(write_safetensors_header(twice, {}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_safetensors_header(reserved, {}).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(write_safetensors_header(unnamed, {}).error().code(), ErrorCode::kUnimplemented);
}

}  // namespace
}  // namespace meshard::io
