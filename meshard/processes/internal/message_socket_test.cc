#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "meshard/processes/internal/message.h"

namespace meshard::internal {
namespace {

std::pair<MessageSocket, MessageSocket> socket_pair() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  return {MessageSocket(FileHandle(ends[0]), kMostMemberBytes),
          MessageSocket(FileHandle(ends[1]), kMostMemberBytes)};
}

TEST(MessageSocket, LargeMessagesInSmallSteps) {
  auto [a, b] = socket_pair();
  Message sent{.kind = MessageKind::kPut, .name = "k", .value = std::string(5000000, 'x')};
  a.send(sent);
  std::optional<Message> received;
  int steps = 0;
  for (; !received && steps < 10000; ++steps) {
    ASSERT_TRUE(a.flush());
    ASSERT_TRUE(b.receive());
    received = b.next().value();
  }
  EXPECT_EQ(received, sent);
  EXPECT_GT(steps, 5);  // the socket takes only a part at a time
  EXPECT_FALSE(a.has_unsent());
}

TEST(MessageSocket, EndsAreNoticedAfterTheLastMessage) {
  auto [a, b] = socket_pair();
  a.send({.kind = MessageKind::kBye});
  EXPECT_TRUE(a.flush());
  { MessageSocket gone = std::move(a); }
  EXPECT_TRUE(b.receive());
  EXPECT_FALSE(b.receive());
  EXPECT_EQ(b.next().value()->kind, MessageKind::kBye);
  b.send({.kind = MessageKind::kBye});
  EXPECT_FALSE(b.flush());  // and no SIGPIPE
}

TEST(MessageSocket, WakesUp) {
  WakeUp wake;
  pollfd ready{.fd = wake.get(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  wake.notify();
  wake.notify();
  EXPECT_EQ(::poll(&ready, 1, 0), 1);
  wake.clear();
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
}

}  // namespace
}  // namespace meshard::internal
