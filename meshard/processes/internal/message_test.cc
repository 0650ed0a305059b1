#include "meshard/processes/internal/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::internal {
namespace {

using testing::HasSubstr;

const Message kPutMessage{.kind = MessageKind::kPut,
                          .request = 0x123456789abcdef0,
                          .number = -1,
                          .name = "key with spaces",
                          .value = std::string("\0binary\xff", 8)};

TEST(Messages, BytesOfOne) {
  std::string bytes =
      encode({.kind = MessageKind::kBye, .request = 258, .number = -2, .name = "a", .value = "bc"});
  EXPECT_EQ(bytes, std::string("\x1c\0\0\0"        // 28 bytes
                               "\x0b"              // kind
                               "\2\1\0\0\0\0\0\0"  // request
                               "\xfe\xff\xff\xff\xff\xff\xff\xff"
                               "\1\0\0\0\2\0\0\0"
                               "abc",
                               32));
}

TEST(Messages, ArriveInPieces) {
  Message second{.kind = MessageKind::kBeat, .name = "compile"};
  std::string bytes = encode(kPutMessage) + encode(second);
  for (std::size_t piece : {1, 2, 7, 1000}) {
    MessageReader reader(kMostMemberBytes);
    std::vector<Message> messages;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(std::string_view(bytes).substr(at, piece));
      while (auto message = reader.next().value()) messages.push_back(*message);
    }
    EXPECT_THAT(messages, testing::ElementsAre(kPutMessage, second));
  }
}

TEST(Messages, MalformedBytesAreErrors) {
  auto error_of = [](std::string bytes, std::size_t limit = kMostMemberBytes) {
    MessageReader reader(limit);
    reader.add(bytes);
    return reader.next().error().message();
  };
  std::string good = encode(kPutMessage);
  EXPECT_THAT(error_of("GET / HTTP/1.1\r\n\r\n"), HasSubstr("its size is"));
  EXPECT_THAT(error_of(std::string(30, '\0')), HasSubstr("its size is 0"));
  EXPECT_THAT(error_of(good, 16), HasSubstr("to 16"));
  for (char kind : {'\0', '\x63'}) {
    std::string bytes = good;
    bytes[4] = kind;
    EXPECT_THAT(error_of(bytes), HasSubstr("kind"));
  }
  for (std::size_t at : {21, 24, 25, 28}) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] + 1);
    EXPECT_THAT(error_of(bytes), HasSubstr("fields")) << at;
  }
}

}  // namespace
}  // namespace meshard::internal
