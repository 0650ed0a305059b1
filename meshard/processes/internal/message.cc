#include "meshard/processes/internal/message.h"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "meshard/base/cat.h"

namespace meshard::internal {
namespace {

// kind, request, number, and the sizes of name and value
constexpr std::size_t kFixedBytes = 1 + 8 + 8 + 4 + 4;

// A connection keeps so much memory for its next messages: new pages are slow.
constexpr std::size_t kKeptBytes = std::size_t{1} << 20;

void append_number(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i)));
}

std::uint64_t number_at(std::string_view text, std::size_t at, int bytes) {
  std::uint64_t number = 0;
  for (int i = 0; i < bytes; ++i)
    number |= std::uint64_t{static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)])}
              << (8 * i);
  return number;
}

Error not_a_message(std::string_view what) {
  return Error(ErrorCode::kInvalidArgument, cat("[processes] malformed message: ", what));
}

}  // namespace

std::string encode(const Message& message) {
  std::string out;
  out.reserve(4 + kFixedBytes + message.name.size() + message.value.size());
  append_encoded(out, message);
  return out;
}

void append_encoded(std::string& out, const Message& message) {
  std::size_t size = kFixedBytes + message.name.size() + message.value.size();
  append_number(out, size, 4);
  out.push_back(static_cast<char>(message.kind));
  append_number(out, message.request, 8);
  append_number(out, static_cast<std::uint64_t>(message.number), 8);
  append_number(out, message.name.size(), 4);
  append_number(out, message.value.size(), 4);
  out += message.name;
  out += message.value;
}

Result<std::optional<Message>> MessageReader::next() {
  std::string_view rest = std::string_view(bytes_).substr(begin_);
  if (rest.size() < 4) return std::optional<Message>();
  std::size_t size = number_at(rest, 0, 4);
  if (size < kFixedBytes || size > limit_)
    return not_a_message(cat("its size is ", size, ", not from ", kFixedBytes, " to ", limit_));
  if (rest.size() < 4 + size) return std::optional<Message>();
  rest = rest.substr(4, size);
  std::size_t name = number_at(rest, 17, 4), value = number_at(rest, 21, 4);
  auto kind = static_cast<std::uint8_t>(rest[0]);
  if (kind < static_cast<int>(MessageKind::kHello) || kind > static_cast<int>(MessageKind::kLost))
    return not_a_message(cat("kind ", int{kind}));
  if (name > kMostNameBytes || value > size || kFixedBytes + name + value != size)
    return not_a_message(cat("fields of ", name, " and ", value, " bytes in ", size));
  Message message{.kind = static_cast<MessageKind>(kind),
                  .request = number_at(rest, 1, 8),
                  .number = static_cast<std::int64_t>(number_at(rest, 9, 8)),
                  .name = std::string(rest.substr(kFixedBytes, name)),
                  .value = std::string(rest.substr(kFixedBytes + name, value))};
  begin_ += 4 + size;
  if (begin_ == bytes_.size() || begin_ > (std::size_t{1} << 20)) {
    bytes_.erase(0, begin_);
    begin_ = 0;
    if (bytes_.empty() && bytes_.capacity() > kKeptBytes) bytes_.shrink_to_fit();
  }
  return std::optional<Message>(std::move(message));
}

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
  if (out_.empty() && out_.capacity() > kKeptBytes) out_.shrink_to_fit();
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
