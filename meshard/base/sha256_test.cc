#include "meshard/base/sha256.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.digits();
}

// The examples of FIPS 180-4
// (https://csrc.nist.gov/projects/cryptographic-standards-and-guidelines/example-values).
TEST(Sha256, ExamplesOfTheStandard) {
  EXPECT_EQ(sha256_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_of(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, Bytes) {
  Sha256 hash;
  hash.add("abc");
  std::string bytes = hash.bytes();
  ASSERT_EQ(bytes.size(), 32u);
  EXPECT_EQ(bytes.substr(0, 4), "\xba\x78\x16\xbf");
  EXPECT_EQ(bytes.substr(30), "\x15\xad");
}

TEST(Sha256, PiecesDoNotMatter) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i);
  for (std::size_t piece : {1, 7, 63, 64, 65, 200}) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece)
      hash.add(std::string_view(text).substr(at, piece));
    EXPECT_EQ(hash.digits(), sha256_of(text)) << piece;
  }
}

}  // namespace
}  // namespace meshard
