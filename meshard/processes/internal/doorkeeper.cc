// Tested in meshard/processes/internal/server_test.cc.
#include "meshard/processes/internal/doorkeeper.h"

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

namespace meshard::internal {
namespace {

constexpr std::chrono::seconds kStrangerLimit{10};
constexpr std::size_t kMostStrangers = 256;

}  // namespace

pollfd events_of(const MessageSocket& socket) {
  short wanted = POLLIN;
  if (socket.has_unsent()) wanted |= POLLOUT;
  return {.fd = socket.get(), .events = wanted, .revents = 0};
}

void Doorkeeper::add_events(std::vector<pollfd>& events, Now now) const {
  if (now >= accept_after_)
    events.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  for (const Stranger& stranger : strangers_) events.push_back(events_of(stranger.socket));
}

std::vector<Doorkeeper::Guest> Doorkeeper::admit(
    Now now, const std::function<std::string(int rank)>& why_not) {
  accept_strangers(now);
  std::vector<Guest> guests;
  for (auto at = strangers_.begin(); at != strangers_.end();)
    at = now < at->deadline && hear(*at, why_not, guests) ? std::next(at) : strangers_.erase(at);
  return guests;
}

void Doorkeeper::accept_strangers(Now now) {
  if (now < accept_after_) return;
  for (int i = 0; i < 64; ++i) {
    errno = 0;
    FileHandle socket = accept_connection(listener_);
    // Without free file handles, poll() would return at once for ever.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) accept_after_ = now + rest_;
    Result<std::string> challenge = random_bytes(32);
    if (socket.get() < 0 || !challenge.ok()) return;
    if (strangers_.size() >= kMostStrangers) strangers_.pop_front();
    strangers_.push_back({.socket = MessageSocket(std::move(socket)),
                          .handshake = ServerHandshake(secret_, size_, *std::move(challenge)),
                          .deadline = now + kStrangerLimit});
  }
}

bool Doorkeeper::hear(Stranger& stranger, const std::function<std::string(int)>& why_not,
                      std::vector<Guest>& guests) const {
  bool open = stranger.socket.receive();
  for (;;) {
    Result<std::optional<Message>> message = stranger.socket.next();
    if (!message.ok()) return false;
    if (!*message) return open;
    Message answer = stranger.handshake.receive(**message);
    int rank = stranger.handshake.accepted() ? stranger.handshake.rank() : -1;
    if (rank >= 0) {
      std::string reason = why_not(rank);
      if (!reason.empty()) answer = refusal(ErrorCode::kAlreadyExists, reason), rank = -1;
    }
    stranger.socket.send(answer);
    open = stranger.socket.flush() && open;  // small: the socket takes it
    if (answer.kind == MessageKind::kRefuse) return false;
    if (rank < 0) continue;
    stranger.socket.set_limit(kMostMemberBytes);
    guests.push_back({rank, std::move(stranger.socket)});
    return false;
  }
}

}  // namespace meshard::internal
