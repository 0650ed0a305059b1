#include "meshard/processes/internal/message_socket.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace meshard::internal {
namespace {

// So much is read in one turn, so that one connection does not keep the others waiting.
constexpr std::size_t kReadOnce = std::size_t{1} << 18;

bool is_temporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

bool MessageSocket::flush() {
  std::size_t done = 0;
  bool good = true;
  while (good && done < out_.size()) {
    ssize_t sent = ::send(socket_.get(), out_.data() + done, out_.size() - done, MSG_NOSIGNAL);
    if (sent >= 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    good = is_temporary(errno);
    if (errno != EINTR) break;
  }
  out_.erase(0, done);
  if (out_.empty() && out_.capacity() > kReadOnce) out_.shrink_to_fit();
  return good;
}

bool MessageSocket::receive() {
  thread_local std::array<char, 1 << 16> space;
  for (std::size_t total = 0; total < kReadOnce;) {
    ssize_t got = ::recv(socket_.get(), space.data(), space.size(), 0);
    if (got == 0) return false;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return is_temporary(errno);
    reader_.add({space.data(), static_cast<std::size_t>(got)});
    total += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < space.size()) break;
  }
  return true;
}

void MessageSocket::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

WakeUp::WakeUp() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void WakeUp::notify() {
  std::uint64_t one = 1;
  [[maybe_unused]] ssize_t written = ::write(event_.get(), &one, sizeof one);
}

void WakeUp::clear() {
  std::uint64_t count = 0;
  [[maybe_unused]] ssize_t got = ::read(event_.get(), &count, sizeof count);
}

}  // namespace meshard::internal
