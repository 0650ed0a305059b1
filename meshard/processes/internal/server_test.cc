#include "meshard/processes/internal/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/member.h"
#include "meshard/processes/internal/stores.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// A server of `size` processes at 127.0.0.1.
std::unique_ptr<CoordinatorServer> start_server(int size, LivenessTimes times = {}) {
  return CoordinatorServer::start(Listener::open({.path = {}, .host = "127.0.0.1"}).value(),
                                  "secret", size, times);
}

MemberOptions member_options(const CoordinatorServer& server, int rank) {
  return {.addresses = {server.address()},
          .secret = "secret",
          .rank = rank,
          .times = {},
          .limit = milliseconds(5000),
          .on_loss = {}};
}

Message join_request(int rank, int size) {
  return {.kind = MessageKind::kJoin,
          .number = 10000,
          .value = to_packed(JoinRequest{cat("host", rank), 100 + rank, 1, size})};
}

/// Connections of all processes; all have joined.
std::vector<std::unique_ptr<MemberConnection>> join_all(const CoordinatorServer& server, int size) {
  std::vector<std::unique_ptr<MemberConnection>> members;
  std::vector<std::jthread> joins;
  for (int rank = 0; rank < size; ++rank)
    members.push_back(MemberConnection::open(member_options(server, rank)).value());
  for (int rank = 0; rank < size; ++rank)
    joins.emplace_back([&, rank] {
      EXPECT_EQ(members[static_cast<std::size_t>(rank)]->request(join_request(rank, size))->number,
                0);
    });
  return members;
}

void end_all(std::vector<std::unique_ptr<MemberConnection>>& members) {
  for (auto& member : members) member->say_bye(0);
}

TEST(CoordinatorServer, AnswersMembers) {
  auto server = start_server(3);
  auto members = join_all(*server, 3);
  EXPECT_EQ(server->others_running(), (std::vector{1, 2}));
  std::string value(3000000, 'v');
  EXPECT_EQ(members[1]->request({.kind = MessageKind::kPut, .name = "k", .value = value})->number,
            0);
  EXPECT_EQ(members[2]->request({.kind = MessageKind::kGet, .number = 0, .name = "k"})->value,
            value);
  end_all(members);
  while (!server->others_running().empty()) std::this_thread::yield();
}

TEST(RemoteStore, AllFunctions) {
  auto server = start_server(2);
  auto members = join_all(*server, 2);
  RemoteStore first(*members[0]), second(*members[1]);
  EXPECT_EQ(second.try_get("k").value(), std::nullopt);
  EXPECT_EQ(second.get("k", milliseconds(0)).error().code(), ErrorCode::kDeadlineExceeded);
  std::jthread later([&] { first.put("k", "v").value(); });
  EXPECT_EQ(second.get("k", kNoTimeLimit).value(), "v");
  EXPECT_EQ(second.try_get("k").value(), "v");
  std::string value;
  first.publish("p", "a", &value).value();
  EXPECT_EQ(value, "a");
  Error error = second.publish("p", "b", &value).error();
  EXPECT_EQ(error.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(error.message(),
            "[store] publish \"p\": process 0 (pid 100 on host0) has stored another value");
  EXPECT_EQ(value, "a");
  second.publish("p", "a", nullptr).value();
  end_all(members);
}

TEST(CoordinatorServer, StrangersAreRefusedAndBlockNobody) {
  auto server = start_server(2);
  std::vector<FileHandle> silent;
  for (int i = 0; i < 20; ++i)
    silent.push_back(connect_to(server->address(), milliseconds(1000)).value());
  for (std::string_view bytes : {"GET / HTTP/1.1\r\n\r\n", "\xff\xff\xff\xff", "\x19\0\0\0"}) {
    silent.push_back(connect_to(server->address(), milliseconds(1000)).value());
    ::send(silent.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  MemberOptions wrong = member_options(*server, 1);
  wrong.secret = "guess";
  EXPECT_EQ(MemberConnection::open(wrong).error().code(), ErrorCode::kUnauthenticated);
  auto members = join_all(*server, 2);
  EXPECT_EQ(MemberConnection::open(member_options(*server, 1)).error().code(),
            ErrorCode::kAlreadyExists);
  EXPECT_THAT(MemberConnection::open(member_options(*server, 5)).error().message(),
              HasSubstr("is out of range for a run of 2"));
  end_all(members);
}

TEST(CoordinatorServer, ReportsALostMemberToTheOthers) {
  auto server = start_server(3);
  auto members = join_all(*server, 3);
  EXPECT_EQ(server->others_running().size(), 2u);
  members[2].reset();
  Result<Message> reply =
      members[1]->request({.kind = MessageKind::kBarrier, .number = -1, .name = "b"});
  EXPECT_THAT(reply->name, HasSubstr("process 2 (pid 102 on host2) died"));
  members[1]->say_bye(0);
}

TEST(MemberConnection, ReportsLosses) {
  std::atomic<int> losses = 0;
  auto server = start_server(2);
  MemberOptions options = member_options(*server, 1);
  options.on_loss = [&](const ProcessLoss& loss) {
    EXPECT_EQ(loss.rank, 0);
    EXPECT_EQ(loss.kind, LossKind::kDied);
    ++losses;
  };
  auto member = MemberConnection::open(options).value();
  server.reset();
  EXPECT_EQ(member->request({.kind = MessageKind::kGet, .number = -1, .name = "k"}).error().code(),
            ErrorCode::kUnavailable);
  while (losses == 0) std::this_thread::yield();
  EXPECT_EQ(member->request({.kind = MessageKind::kGet, .name = "k"}).error().code(),
            ErrorCode::kUnavailable);
}

TEST(MemberConnection, WaitsForTheServerOrGivesUp) {
  ProcessAddress address;
  {
    Listener listener = Listener::open({.path = {}, .host = "127.0.0.1"}).value();
    address = listener.address();
  }
  MemberOptions options{.addresses = {address},
                        .secret = "secret",
                        .rank = 0,
                        .times = {},
                        .limit = milliseconds(200),
                        .on_loss = {}};
  Error error = MemberConnection::open(options).error();
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(error.to_string(), HasSubstr("cannot reach process 0 within 0.2 s"));
  std::unique_ptr<CoordinatorServer> server;
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(100));
    server = CoordinatorServer::start(Listener::open(address).value(), "secret", 1, {});
  });
  options.limit = milliseconds(10000);
  EXPECT_TRUE(MemberConnection::open(options).ok());
}

TEST(MemberConnection, RefusesAServerWithoutTheSecret) {
  auto server = CoordinatorServer::start(Listener::open({.path = {}, .host = "127.0.0.1"}).value(),
                                         "other", 1, {});
  EXPECT_EQ(MemberConnection::open(member_options(*server, 0)).error().code(),
            ErrorCode::kUnauthenticated);
}

TEST(MemberConnection, TooLargeRequestsAreErrors) {
  auto server = start_server(1);
  auto members = join_all(*server, 1);
  std::string name(kMostNameBytes + 1, 'n');
  EXPECT_EQ(members[0]->request({.kind = MessageKind::kPut, .name = name}).error().code(),
            ErrorCode::kInvalidArgument);
  end_all(members);
}

}  // namespace
}  // namespace meshard::internal
