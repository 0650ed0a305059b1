#include <gtest/gtest.h>

#include "meshard/processes/internal/handshake.h"

namespace meshard::internal {
namespace {

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (char byte : bytes)
    for (int shift : {4, 0}) text += "0123456789abcdef"[byte >> shift & 15];
  return text;
}

// RFC 4231, test cases 1, 2, 3, 6 and 7.
TEST(Hmac, CasesOfTheStandard) {
  EXPECT_EQ(hex_of(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex_of(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex_of(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string long_key(131, '\xaa');
  EXPECT_EQ(hex_of(hmac_sha256(long_key, "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hex_of(hmac_sha256(long_key,
                               "This is a test using a larger than block-size key and a larger "
                               "than block-size data. The key needs to be hashed before being "
                               "used by the HMAC algorithm.")),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Hmac, CodesAreEqualOrNot) {
  EXPECT_TRUE(equal_codes("abc", "abc"));
  EXPECT_FALSE(equal_codes("abc", "abd"));
  EXPECT_FALSE(equal_codes("abc", "ab"));
}

TEST(Hmac, RandomBytesDiffer) {
  std::string a = random_bytes(32).value();
  EXPECT_EQ(a.size(), 32u);
  EXPECT_NE(a, random_bytes(32).value());
}

}  // namespace
}  // namespace meshard::internal
