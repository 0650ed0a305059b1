#include "meshard/processes/internal/server.h"

#include <poll.h>

#include "meshard/base/threads.h"

namespace meshard::internal {
std::unique_ptr<CoordinatorServer> CoordinatorServer::start(Listener listener, std::string secret,
                                                            int size, LivenessTimes times) {
  std::unique_ptr<CoordinatorServer> server(
      new CoordinatorServer(std::move(listener), std::move(secret), size, times));
  server->thread_ = start_quiet_thread([raw = server.get()] { raw->run(); });
  return server;
}

CoordinatorServer::CoordinatorServer(Listener listener, std::string secret, int size,
                                     LivenessTimes times)
    : door_(std::move(listener), std::move(secret), size, times.beat),
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
    admit_strangers(now);
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
  door_.add_events(events, now);
  for (const auto& socket : members_)
    if (socket) events.push_back(events_of(*socket));
  ::poll(events.data(), events.size(), static_cast<int>(coordinator_.next_step(now).count()));
  wake_.clear();
}

void CoordinatorServer::admit_strangers(Now now) {
  auto why_not = [&](int rank) { return coordinator_.connected(rank, now); };
  for (Doorkeeper::Guest& guest : door_.admit(now, why_not))
    members_[static_cast<std::size_t>(guest.rank)] = std::move(guest.socket);
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
