#include "meshard/processes/internal/socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// A folder that only this user can write, removed at the end.
class PrivateFolder {
 public:
  PrivateFolder() { path_ = ::mkdtemp(path_.data()); }
  ~PrivateFolder() { ::rmdir(path_.c_str()); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = testing::TempDir() + "meshard-XXXXXX";
};

TEST(Sockets, AddressesParse) {
  for (const char* text : {"host:8080", "127.0.0.1:1", "[::1]:65535", "/run/user/1000/job"})
    EXPECT_EQ(ProcessAddress::parse(text).value().to_string(), text);
  EXPECT_EQ(ProcessAddress::parse("unix:/tmp/x").value().path, "/tmp/x");
  EXPECT_EQ(ProcessAddress::parse("[fe80::2]:77").value(),
            (ProcessAddress{.path = {}, .host = "fe80::2", .port = 77}));
  for (const char* text : {"", "host", "host:", "host:0", "host:65536", "host:x", ":80", "::1:80",
                           "unix:relative", "unix:host:80", "host:80 "})
    EXPECT_THAT(ProcessAddress::parse(text).error().message(), HasSubstr("use host:port")) << text;
}

void check_connects(const ProcessAddress& address) {
  Result<Listener> listener = Listener::open(address);
  ASSERT_TRUE(listener.ok()) << listener.error().what();
  EXPECT_EQ(accept_connection(*listener).get(), -1);
  FileHandle client = connect_to(listener->address(), milliseconds(5000)).value();
  pollfd waiting{.fd = listener->get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&waiting, 1, 5000), 1);
  FileHandle server = accept_connection(*listener);
  ASSERT_EQ(::write(client.get(), "hello", 5), 5);
  pollfd readable{.fd = server.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&readable, 1, 5000), 1);
  char text[8] = {};
  EXPECT_EQ(::read(server.get(), text, 8), 5);
}

TEST(Sockets, ConnectOverTcp) {
  check_connects({.path = {}, .host = "127.0.0.1"});
  check_connects({.path = {}, .host = "localhost"});
}

TEST(Sockets, TakenPortsAndForeignAddresses) {
  Listener first = Listener::open({.path = {}, .host = "127.0.0.1"}).value();
  EXPECT_EQ(Listener::open(first.address()).error().code(), ErrorCode::kAlreadyExists);
  EXPECT_THAT(Listener::open({.path = {}, .host = "192.0.2.1"}).error().to_string(),  // RFC 5737
              HasSubstr("process 0 must run on the machine"));
  ProcessAddress closed = first.address();
  { Listener gone = std::move(first); }
  EXPECT_EQ(connect_to(closed, milliseconds(1000)).error().code(), ErrorCode::kUnavailable);
}

TEST(Sockets, UnixSocketsArePrivate) {
  PrivateFolder folder;
  std::string path = folder / "socket";
  check_connects({.path = path});
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the file is removed with its listener";
  Listener listener = Listener::open({.path = path}).value();
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_THAT(Listener::open({.path = path}).error().message(), HasSubstr("another process does"));
}

TEST(Sockets, AbandonedUnixSocketsAreReplaced) {
  PrivateFolder folder;
  std::string path = folder / "socket", kept = folder / "kept";
  {
    Listener listener = Listener::open({.path = path}).value();
    ASSERT_EQ(::link(path.c_str(), kept.c_str()), 0);
  }
  ASSERT_EQ(::rename(kept.c_str(), path.c_str()), 0);
  check_connects({.path = path});
  std::ofstream(path) << "a file";
  EXPECT_THAT(Listener::open({.path = path}).error().message(), HasSubstr("a file is there"));
  ::unlink(path.c_str());
}

TEST(Sockets, FoldersThatOthersCanWriteAreRefused) {
  PrivateFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  EXPECT_EQ(Listener::open({.path = folder / "socket"}).error().code(),
            ErrorCode::kPermissionDenied);
  ::chmod(folder.path().c_str(), 0700);
  EXPECT_THAT(Listener::open({.path = folder / std::string(200, 'x').c_str()}).error().message(),
              HasSubstr("at most 107"));
}

TEST(Sockets, NamesOfThisMachine) {
  EXPECT_EQ(machine_name(), machine_name());
  EXPECT_GT(machine_name().size(), 30u);
  EXPECT_FALSE(host_name().empty());
  for (const std::string& address : interface_addresses())
    EXPECT_FALSE(address.starts_with("127."));
}

}  // namespace
}  // namespace meshard::internal
