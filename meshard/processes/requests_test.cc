#include "meshard/processes/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string kSecret = "0123456789abcdef";
constexpr milliseconds kLimit{10000};

// Counts down from the number of a request; answers "wait" when `open` is set, and refuses others.
struct Counting {
  std::atomic<bool> open = false;
  std::atomic<int> closed = 0;
  std::unique_ptr<RequestServer> server;

  explicit Counting(const std::string& address = "127.0.0.1:0") {
    auto answer = [this](RequestServer::Connection,
                         const ServedMessage& request) -> RequestServer::Answer {
      if (request.name == "wait" && !open) return nullptr;
      if (request.name != "wait" && request.name != "count")
        return [](ServedMessage&) {
          return Result<bool>(Error(ErrorCode::kNotFound, "no such thing"));
        };
      return [left = request.number,
              value = request.value](ServedMessage& message) mutable -> Result<bool> {
        message.number = left;
        message.value = value;
        return left-- > 0;
      };
    };
    server = RequestServer::start(address, kSecret, {answer, [this](auto) { ++closed; }}).value();
  }
  RequestClient client() {
    return RequestClient::open(server->addresses(), kSecret, kLimit).value();
  }
};

TEST(Requests, AnswersComeInTheOrderOfTheRequests) {
  Counting counting;
  RequestClient client = counting.client(), other = counting.client();
  client.ask({.number = 100, .name = "count", .value = std::string(100000, 'x')});  // 10 MB
  client.ask({.name = "unknown"});
  client.ask({.number = 1, .name = "count", .value = "y"});
  other.ask({.number = 1, .name = "count", .value = "z"});
  EXPECT_EQ(other.next(kLimit).value().value, "z");
  for (int left = 100; left > 0; --left) {
    ServedMessage message = client.next(kLimit).value();
    EXPECT_EQ(message.number, left);
    EXPECT_EQ(message.value, std::string(100000, 'x'));
  }
  EXPECT_EQ(client.next(kLimit).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(client.next(kLimit).value().value, "y");
}

TEST(Requests, WaitUntilThereIsAnAnswer) {
  Counting counting;
  RequestClient client = counting.client();
  client.ask({.number = 1, .name = "wait"});
  EXPECT_EQ(client.next(milliseconds(1)).error().code(), ErrorCode::kDeadlineExceeded);
  counting.open = true;
  counting.server->wake();
  EXPECT_EQ(client.next(kLimit).value().number, 1);
}

TEST(Requests, EitherSideNoticesTheEndOfTheOther) {
  Counting counting;
  {
    RequestClient gone = counting.client();
    gone.ask({.number = 1, .name = "wait"});
  }
  RequestClient client = counting.client();
  while (counting.closed == 0) std::this_thread::yield();
  client.ask({.number = 1, .name = "wait"});
  std::jthread end([&] { counting.server.reset(); });
  Error error = client.next(kLimit).error();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.message(), HasSubstr("closed the connection"));
}

TEST(Requests, NeedTheSecret) {
  Counting counting;
  EXPECT_EQ(
      RequestClient::open(counting.server->addresses(), "another secret..", kLimit).error().code(),
      ErrorCode::kUnauthenticated);
  // Without a proof, nothing is answered.
  ProcessAddress address = ProcessAddress::parse(counting.server->addresses()[0]).value();
  MessageSocket stranger(connect_to(address, kLimit).value());
  stranger.send({.kind = MessageKind::kGet, .number = 1, .name = "count"});
  ASSERT_TRUE(stranger.flush());
  std::optional<Message> answer;
  for (bool open = true; open && !answer;) {
    open = stranger.receive();
    answer = stranger.next().value();
  }
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->kind, MessageKind::kRefuse);
  EXPECT_EQ(counting.client().next(milliseconds(1)).error().code(), ErrorCode::kDeadlineExceeded);
}

TEST(Requests, AddressesAreChecked) {
  EXPECT_THAT(check_request_address("alpha:1", "short").error().message(),
              HasSubstr("alpha:1 needs a secret of at least 16 characters"));
  EXPECT_TRUE(check_request_address("/run/x", "").ok());
  EXPECT_TRUE(check_request_address(":0", kSecret).ok());
  EXPECT_FALSE(check_request_address("alpha", kSecret).ok());
  EXPECT_EQ(address_beside("/run/x", 3), "/run/x.3");
  EXPECT_EQ(address_beside("127.0.0.1:80", 3), "127.0.0.1:0");
  EXPECT_EQ(address_beside("alpha:80", 3), ":0");
}

}  // namespace
}  // namespace meshard::internal
