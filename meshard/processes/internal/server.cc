#include "meshard/processes/internal/server.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "meshard/base/threads.h"

namespace meshard::internal {
namespace {

constexpr std::chrono::seconds kStrangerLimit{10};
constexpr std::size_t kMostStrangers = 256;

}  // namespace

std::unique_ptr<CoordinatorServer> CoordinatorServer::start(Listener listener, std::string secret,
                                                            int size, LivenessTimes times) {
  std::unique_ptr<CoordinatorServer> server(
      new CoordinatorServer(std::move(listener), std::move(secret), size, times));
  server->thread_ = start_quiet_thread([raw = server.get()] { raw->run(); });
  return server;
}

CoordinatorServer::CoordinatorServer(Listener listener, std::string secret, int size,
                                     LivenessTimes times)
    : listener_(std::move(listener)),
      secret_(std::move(secret)),
      size_(size),
      times_(times),
      members_(static_cast<std::size_t>(size)),
      coordinator_(size, times, ProcessClock::now()) {}

CoordinatorServer::~CoordinatorServer() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify();
  if (thread_.joinable()) thread_.join();
}

std::vector<int> CoordinatorServer::others_running() const {
  std::lock_guard lock(mutex_);
  return others_running_;
}

void CoordinatorServer::run() {
  for (bool stop = false; !stop;) {
    wait_for_events(ProcessClock::now());
    {
      std::lock_guard lock(mutex_);
      stop = stopping_;
    }
    Now now = ProcessClock::now();
    accept_strangers(now);
    hear_strangers(now);
    hear_members(now);  // before advance(): what has arrived is not silence
    coordinator_.advance(now);
    {
      std::lock_guard lock(mutex_);  // before others read that all have joined
      others_running_ = coordinator_.others_running();
    }
    send_beats(now);
    send_outgoing();
  }
}

void CoordinatorServer::wait_for_events(Now now) {
  std::vector<pollfd> events = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  if (now >= accept_after_)
    events.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  auto add = [&](const MessageSocket& socket) {
    short wanted = POLLIN;
    if (socket.has_unsent()) wanted |= POLLOUT;
    events.push_back({.fd = socket.get(), .events = wanted, .revents = 0});
  };
  for (const Stranger& stranger : strangers_) add(stranger.socket);
  for (const auto& socket : members_)
    if (socket) add(*socket);
  ::poll(events.data(), events.size(), static_cast<int>(coordinator_.next_step(now).count()));
  wake_.clear();
}

void CoordinatorServer::accept_strangers(Now now) {
  if (now < accept_after_) return;
  for (int i = 0; i < 64; ++i) {
    errno = 0;
    FileHandle socket = accept_connection(listener_);
    // Without free file handles, poll() would return at once for ever.
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) accept_after_ = now + times_.beat;
    Result<std::string> challenge = random_bytes(32);
    if (socket.get() < 0 || !challenge.ok()) return;
    if (strangers_.size() >= kMostStrangers) strangers_.pop_front();
    strangers_.push_back({.socket = MessageSocket(std::move(socket)),
                          .handshake = ServerHandshake(secret_, size_, *std::move(challenge)),
                          .deadline = now + kStrangerLimit});
  }
}

void CoordinatorServer::hear_strangers(Now now) {
  for (auto at = strangers_.begin(); at != strangers_.end();)
    at = now < at->deadline && hear(*at, now) ? std::next(at) : strangers_.erase(at);
}

bool CoordinatorServer::hear(Stranger& stranger, Now now) {
  bool open = stranger.socket.receive();
  for (;;) {
    Result<std::optional<Message>> message = stranger.socket.next();
    if (!message.ok()) return false;
    if (!*message) return open;
    Message answer = stranger.handshake.receive(**message);
    int rank = stranger.handshake.accepted() ? stranger.handshake.rank() : -1;
    if (rank >= 0) {
      std::string why_not = coordinator_.connected(rank, now);
      if (!why_not.empty()) answer = refusal(ErrorCode::kAlreadyExists, why_not), rank = -1;
    }
    stranger.socket.send(answer);
    open = stranger.socket.flush() && open;  // small: the socket takes it
    if (answer.kind == MessageKind::kRefuse) return false;
    if (rank < 0) continue;
    stranger.socket.set_limit(kMostMemberBytes);
    members_[static_cast<std::size_t>(rank)] = std::move(stranger.socket);
    return false;
  }
}

void CoordinatorServer::hear_members(Now now) {
  for (int rank = 0; rank < size_; ++rank) {
    std::optional<MessageSocket>& socket = members_[static_cast<std::size_t>(rank)];
    if (!socket) continue;
    bool open = socket->receive();
    for (;;) {
      Result<std::optional<Message>> message = socket->next();
      if (message.ok() && !*message) break;
      if (message.ok() && coordinator_.receive(rank, **std::move(message), now)) continue;
      open = false;
      break;
    }
    if (!open) close(rank, now);
  }
}

void CoordinatorServer::send_beats(Now now) {
  if (now < next_beat_) return;
  next_beat_ = now + times_.beat;
  Message beat = coordinator_.own_beat(now);
  for (std::optional<MessageSocket>& socket : members_)
    if (socket && !socket->has_unsent()) socket->send(beat);
}

void CoordinatorServer::send_outgoing() {
  for (auto& [rank, message] : coordinator_.take_outgoing())
    if (auto& socket = members_[static_cast<std::size_t>(rank)]) socket->send(message);
  // A broken connection is noticed by the next receive().
  for (std::optional<MessageSocket>& socket : members_)
    if (socket && socket->has_unsent()) socket->flush();
}

void CoordinatorServer::close(int rank, Now now) {
  members_[static_cast<std::size_t>(rank)].reset();
  coordinator_.closed(rank, now);
}

}  // namespace meshard::internal
