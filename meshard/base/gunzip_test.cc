#include "meshard/base/gunzip.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

// Compressed by zlib 1.3: without compression, with fixed codes, and with codes of its own.
constexpr unsigned char kStoredHello[] = {31,  139, 8,  0,   0,   0,   0,   0,   4,   3,
                                          1,   5,   0,  250, 255, 104, 101, 108, 108, 111,
                                          134, 166, 16, 54,  5,   0,   0,   0};
constexpr unsigned char kFixedCodes[] = {31, 139, 8,   0,   0,   0,   0,   0,   2,
                                         3,  75,  76,  132, 1,   133, 164, 228, 20,
                                         0,  86,  207, 136, 253, 14,  0,   0,   0};
constexpr unsigned char kSquares[] = {
    31,  139, 8,   0,   0,   0,   0,   0,   2,   3,   93,  209, 59,  14,  2,   49,  12,  4,
    208, 126, 78,  177, 71,  136, 63,  241, 198, 199, 65,  130, 130, 18,  16,  247, 103, 182,
    203, 80,  58,  178, 236, 151, 241, 56,  62,  175, 239, 237, 253, 184, 31,  207, 207, 49,
    96,  123, 105, 240, 189, 76,  196, 94,  54,  82,  154, 11,  115, 175, 125, 162, 246, 58,
    10,  167, 76,  107, 172, 189, 174, 68,  239, 245, 50,  216, 144, 5,   131, 60,  245, 57,
    123, 132, 104, 153, 176, 80,  86,  195, 20,  218, 5,   83,  42,  173, 86,  138, 103, 143,
    112, 125, 113, 142, 128, 195, 185, 171, 245, 139, 76,  76,  204, 73,  179, 139, 57,  147,
    61,  26,  235, 74,  184, 152, 167, 55,  92,  204, 243, 44,  184, 152, 139, 102, 23,  115,
    93,  61,  98,  62,  175, 57,  98,  62,  175, 93,  26,  51,  61,  33,  230, 166, 57,  196,
    220, 252, 87,  104, 206, 131, 159, 15,  13,  122, 48,  161, 208, 164, 141, 49,  198, 212,
    147, 209, 29,  165, 79,  60,  72,  8,   220, 130, 87,  139, 245, 119, 89,  110, 20,  186,
    77,  222, 255, 7,   133, 21,  104, 74,  192, 2,   0,   0};

template <std::size_t N>
std::string bytes_of(const unsigned char (&values)[N]) {
  return std::string(values, values + N);
}

// The text in kSquares.
std::string squares() {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += std::to_string(i) + " squared is " + std::to_string(i * i) + "\n";
  return text;
}

TEST(Gunzip, ReadsWhatZlibWrites) {
  EXPECT_EQ(gunzip(bytes_of(kStoredHello)).value(), "hello");
  EXPECT_EQ(gunzip(bytes_of(kFixedCodes)).value(), "aaaaaaaaaa bcd");
  EXPECT_EQ(gunzip(bytes_of(kSquares)).value(), squares());
  EXPECT_TRUE(is_gzip(bytes_of(kSquares)));
  EXPECT_FALSE(is_gzip("{\"traceEvents\": []}"));
}

TEST(Gunzip, SeveralMembersFollowEachOther) {
  EXPECT_EQ(gunzip(bytes_of(kStoredHello) + bytes_of(kFixedCodes)).value(), "helloaaaaaaaaaa bcd");
}

TEST(Gunzip, DamagedFilesAreErrors) {
  std::string whole = bytes_of(kSquares);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    Result<std::string> read = gunzip(std::string_view(whole).substr(0, length));
    ASSERT_FALSE(read.ok()) << length;
    EXPECT_EQ(read.error().code(), ErrorCode::kDataLoss);
  }
  // Any change gives an error or other text, and does not read or write out of bounds.
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x55);
    (void)gunzip(changed, 1 << 20).ok();
  }
  EXPECT_FALSE(gunzip("plain text").ok());
}

TEST(Gunzip, TheContentsHaveALimit) {
  Result<std::string> read = gunzip(bytes_of(kSquares), 100);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(gunzip(bytes_of(kSquares), squares().size()).value(), squares());
}

}  // namespace
}  // namespace meshard
