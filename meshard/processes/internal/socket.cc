#include "meshard/processes/internal/socket.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard::internal {
namespace {

namespace fs = std::filesystem;

constexpr int kSocketFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

Error socket_error(ErrorCode code, std::string_view what, const ProcessAddress& address,
                   int error) {
  return Error(
      code, cat("[processes] cannot ", what, ' ', address.to_string(), ": ", std::strerror(error)));
}

Result<sockaddr_un> unix_address(const ProcessAddress& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (address.path.size() >= sizeof name.sun_path)
    return Error(
        ErrorCode::kInvalidArgument,
        cat("[processes] the path of the Unix socket ", address.path, " has ", address.path.size(),
            " bytes; at most ", sizeof name.sun_path - 1, " are possible"));
  std::memcpy(name.sun_path, address.path.c_str(), address.path.size() + 1);
  return name;
}

const sockaddr* as_socket_address(const void* address) {
  return static_cast<const sockaddr*>(address);
}

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Result<AddressList> resolve(const ProcessAddress& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  std::string port = cat(address.port);
  int error = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), port.c_str(),
                            &hints, &list);
  if (error != 0)
    return Error(ErrorCode::kUnavailable, cat("[processes] cannot find the address ",
                                              address.to_string(), ": ", ::gai_strerror(error)));
  return AddressList(list, ::freeaddrinfo);
}

void send_at_once(int socket) {
  int yes = 1;  // no effect, and no harm, on Unix sockets
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// True if the other end of a Unix socket belongs to this user or root.
bool is_own_peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::geteuid() || peer.uid == 0;
}

// A file that nobody listens at was left by a dead process.
Result<void> remove_abandoned(const ProcessAddress& address, const sockaddr_un& name) {
  struct stat about {};
  if (::lstat(address.path.c_str(), &about) != 0) return {};
  FileHandle probe(::socket(AF_UNIX, kSocketFlags, 0));
  bool dead = S_ISSOCK(about.st_mode) &&
              ::connect(probe.get(), as_socket_address(&name), sizeof name) != 0 &&
              errno == ECONNREFUSED;
  if (!dead)
    return Error(ErrorCode::kAlreadyExists,
                 cat("[processes] cannot listen at ", address.path,
                     S_ISSOCK(about.st_mode) ? ": another process does" : ": a file is there"));
  ::unlink(address.path.c_str());
  return {};
}

Result<FileHandle> listen_unix(const ProcessAddress& address) {
  MESHARD_ASSIGN_OR_RETURN(sockaddr_un name, unix_address(address));
  MESHARD_RETURN_IF_ERROR(check_file_trust(fs::path(address.path).parent_path().string()));
  MESHARD_RETURN_IF_ERROR(remove_abandoned(address, name));
  FileHandle socket(::socket(AF_UNIX, kSocketFlags, 0));
  // Nobody can connect before listen(), so the mode is right in time.
  if (socket.get() < 0 || ::bind(socket.get(), as_socket_address(&name), sizeof name) != 0 ||
      ::chmod(address.path.c_str(), 0600) != 0 || ::listen(socket.get(), SOMAXCONN) != 0)
    return socket_error(ErrorCode::kUnavailable, "listen at", address, errno);
  return socket;
}

Result<FileHandle> listen_tcp(ProcessAddress& address) {
  MESHARD_ASSIGN_OR_RETURN(AddressList list, resolve(address, true));
  int error = EADDRNOTAVAIL;
  // IPv6 sockets without an address accept IPv4 connections as well.
  for (int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
      if (at->ai_family != family) continue;
      FileHandle socket(::socket(at->ai_family, kSocketFlags, 0));
      int yes = 1, no = 0;
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
      if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
      if (socket.get() < 0 || ::bind(socket.get(), at->ai_addr, at->ai_addrlen) != 0 ||
          ::listen(socket.get(), SOMAXCONN) != 0) {
        error = errno;
        continue;
      }
      sockaddr_storage name{};
      socklen_t size = sizeof name;
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size);
      address.port =
          ntohs(name.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(name).sin6_port
                                           : reinterpret_cast<sockaddr_in&>(name).sin_port);
      return socket;
    }
  }
  Error failed =
      socket_error(error == EADDRINUSE ? ErrorCode::kAlreadyExists : ErrorCode::kUnavailable,
                   "listen at", address, error);
  if (error == EADDRNOTAVAIL)
    return failed.with_note("process 0 must run on the machine that the address names");
  return failed;
}

Result<FileHandle> finish_connect(FileHandle socket, const ProcessAddress& address,
                                  std::chrono::milliseconds limit) {
  if (errno != EINPROGRESS && errno != EINTR)
    return socket_error(ErrorCode::kUnavailable, "connect to", address, errno);
  pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  int count = ::poll(&ready, 1, static_cast<int>(limit.count()));
  int error = count == 0 ? ETIMEDOUT : errno;
  socklen_t size = sizeof error;
  if (count > 0) ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (count > 0 && error == 0) return socket;
  return socket_error(ErrorCode::kUnavailable, "connect to", address, error);
}

}  // namespace

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<ProcessAddress> ProcessAddress::parse(std::string_view text) {
  std::string_view path = text.substr(text.starts_with("unix:") ? 5 : 0);
  if (path.starts_with('/')) return ProcessAddress{.path = std::string(path)};
  std::size_t colon = text.rfind(':');
  Error invalid(ErrorCode::kInvalidArgument,
                cat("[processes] invalid address \"", text,
                    "\": use host:port, [IPv6 address]:port, or the path of a Unix socket"));
  if (colon == std::string_view::npos || text.starts_with("unix:")) return invalid;
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return invalid;
  Result<std::int64_t> port = read_number(text.substr(colon + 1));
  if (host.empty() || !port.ok() || *port < 1 || *port > 65535) return invalid;
  return ProcessAddress{.path = {}, .host = std::string(host), .port = static_cast<int>(*port)};
}

std::string ProcessAddress::to_string() const {
  if (is_unix()) return path;
  return host.find(':') != std::string::npos ? cat('[', host, "]:", port) : cat(host, ':', port);
}

Result<Listener> Listener::open(const ProcessAddress& address) {
  ProcessAddress bound = address;
  MESHARD_ASSIGN_OR_RETURN(FileHandle socket,
                           address.is_unix() ? listen_unix(address) : listen_tcp(bound));
  return Listener(std::move(socket), std::move(bound));
}

Listener::~Listener() {
  if (socket_.get() >= 0 && address_.is_unix()) ::unlink(address_.path.c_str());
}

FileHandle accept_connection(const Listener& listener) {
  FileHandle socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.get() >= 0 && listener.address().is_unix() && !is_own_peer(socket.get())) return {};
  if (socket.get() >= 0) send_at_once(socket.get());
  return socket;
}

Result<FileHandle> connect_to(const ProcessAddress& address, std::chrono::milliseconds limit) {
  if (address.is_unix()) {
    MESHARD_ASSIGN_OR_RETURN(sockaddr_un name, unix_address(address));
    FileHandle socket(::socket(AF_UNIX, kSocketFlags, 0));
    if (::connect(socket.get(), as_socket_address(&name), sizeof name) != 0)
      return socket_error(ErrorCode::kUnavailable, "connect to", address, errno);
    if (!is_own_peer(socket.get()))
      return Error(ErrorCode::kPermissionDenied,
                   cat("[processes] another user listens at ", address.path));
    return socket;
  }
  MESHARD_ASSIGN_OR_RETURN(AddressList list, resolve(address, false));
  Result<FileHandle> result =
      socket_error(ErrorCode::kUnavailable, "connect to", address, EADDRNOTAVAIL);
  for (const addrinfo* at = list.get(); at != nullptr && !result.ok(); at = at->ai_next) {
    FileHandle socket(::socket(at->ai_family, kSocketFlags, 0));
    if (socket.get() < 0) continue;
    send_at_once(socket.get());
    if (::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0)
      result = std::move(socket);
    else
      result = finish_connect(std::move(socket), address, limit);
  }
  return result;
}

ConnectionEnds connection_ends(int descriptor) {
  auto host_of = [&](auto get_name) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    std::array<char, NI_MAXHOST> text{};
    auto* name = reinterpret_cast<sockaddr*>(&address);
    if (get_name(descriptor, name, &size) != 0 || address.ss_family == AF_UNIX ||
        ::getnameinfo(name, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
      return std::string();
    return std::string(text.data());
  };
  return {.own = host_of(::getsockname), .other = host_of(::getpeername)};
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.") ||
         host.starts_with("::ffff:127.");
}

std::vector<std::string> interface_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_LOOPBACK) || !(at->ifa_flags & IFF_UP))
      continue;
    int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    if (family == AF_INET6 &&
        IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr))
      continue;
    std::array<char, NI_MAXHOST> text{};
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(at->ifa_addr, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) ==
        0)
      addresses.emplace_back(text.data());
  }
  ::freeifaddrs(list);
  return addresses;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown";
  return name.data();
}

std::string machine_name() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code ignored;
  return cat(boot, ' ', fs::read_symlink("/proc/self/ns/net", ignored).string());
}

}  // namespace meshard::internal
