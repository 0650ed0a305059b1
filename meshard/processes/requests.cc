#include "meshard/processes/requests.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/threads.h"
#include "meshard/processes/internal/doorkeeper.h"
#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/internal/member.h"
#include "meshard/processes/internal/message.h"
#include "meshard/processes/internal/socket.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using Now = ProcessClock::time_point;

constexpr milliseconds kBeat{500}, kSilence{5000}, kTakesNothing{30000}, kBetweenTries{50};
constexpr milliseconds kIdle{1000};
constexpr std::size_t kShortestSecret = 16;
// So many messages are sent to one connection before the others have their turn.
constexpr int kMostInTurn = 16;

// The secret of a run may be used for its requests, too; proofs for one are none for the other.
std::string secret_for_requests(const std::string& secret) {
  return hmac_sha256(secret, "meshard requests");
}

// The system closes the connection when the other machine is gone.
void notice_lost_machine(int socket) {
  int yes = 1, idle = 5, interval = 2, count = 3;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
}

// As ProcessAddress::parse, and with port 0 and an empty host.
Result<ProcessAddress> address_to_listen(const std::string& text) {
  if (!text.ends_with(":0")) return ProcessAddress::parse(text);
  if (text == ":0") return ProcessAddress{};
  std::string with_port = text;
  with_port.back() = '1';
  MESHARD_ASSIGN_OR_RETURN(ProcessAddress address, ProcessAddress::parse(with_port));
  address.port = 0;
  return address;
}

std::vector<std::string> reachable_at(ProcessAddress address) {
  if (address.is_unix() || !address.host.empty()) return {address.to_string()};
  std::vector<std::string> all;
  for (std::string& host : interface_addresses()) {
    address.host = std::move(host);
    all.push_back(address.to_string());
  }
  address.host = host_name();
  all.push_back(address.to_string());
  return all;
}

}  // namespace

Result<void> check_request_address(const std::string& address, const std::string& secret) {
  MESHARD_ASSIGN_OR_RETURN(ProcessAddress parsed, address_to_listen(address));
  if (parsed.is_unix() || secret.size() >= kShortestSecret) return {};
  return Error(ErrorCode::kInvalidArgument,
               cat("[processes] the address ", address, " needs a secret of at least ",
                   kShortestSecret, " characters, the same on both sides; it has ", secret.size()));
}

std::string address_beside(const std::string& address, int rank) {
  ProcessAddress place = address_to_listen(address).value();
  if (place.is_unix()) return cat(place.path, '.', rank);
  if (!is_loopback(place.host)) place.host.clear();
  place.port = 0;
  return place.to_string();
}

class RequestServer::Thread {
 public:
  Thread(Listener listener, std::string secret, Handler handler)
      : door_(std::move(listener), std::move(secret), 1, kBeat), handler_(std::move(handler)) {
    thread_ = start_quiet_thread([this] { run(); });
  }
  ~Thread() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify();
    thread_.join();
  }
  void wake() { wake_.notify(); }

 private:
  struct Peer {
    Connection id;
    MessageSocket socket;
    Now progress, next_beat{};
    std::deque<Message> requests = {};
    Answer answer = {};  // to the last request that was taken
    std::uint64_t answered = 0;
    bool open = true;
  };

  bool stopping() {
    std::lock_guard lock(mutex_);
    return stopping_;
  }

  void run() {
    while (!stopping()) {
      Now now = ProcessClock::now();
      for (Doorkeeper::Guest& guest : door_.admit(now, [](int) { return std::string(); })) {
        notice_lost_machine(guest.socket.get());
        peers_.push_back({.id = ++last_id_, .socket = std::move(guest.socket), .progress = now});
      }
      bool has_more = false;
      for (Peer& peer : peers_) {
        hear(peer);
        has_more |= answer(peer, now);
        if (peer.socket.has_unsent() && now - peer.progress > kTakesNothing) peer.open = false;
      }
      for (auto at = peers_.begin(); at != peers_.end();) {
        if (at->open) {
          ++at;
          continue;
        }
        handler_.closed(at->id);
        at = peers_.erase(at);
      }
      wait_for_events(has_more);
    }
  }

  void wait_for_events(bool has_more) {
    std::vector<pollfd> events = {{.fd = wake_.get(), .events = POLLIN, .revents = 0}};
    for (const Peer& peer : peers_) events.push_back(events_of(peer.socket));
    door_.add_events(events, ProcessClock::now());
    const milliseconds limit = peers_.empty() ? kIdle : kBeat;
    ::poll(events.data(), events.size(), has_more ? 0 : static_cast<int>(limit.count()));
    if (events[0].revents != 0) wake_.clear();
    Now now = ProcessClock::now();
    std::size_t at = 1;
    for (Peer& peer : peers_)
      if ((events[at++].revents & POLLOUT) != 0 || !peer.socket.has_unsent()) peer.progress = now;
  }

  static void hear(Peer& peer) {
    if (!peer.socket.receive()) peer.open = false;
    while (peer.open) {
      Result<std::optional<Message>> message = peer.socket.next();
      if (message.ok() && !*message) return;
      if (message.ok() && (*message)->kind == MessageKind::kGet)
        peer.requests.push_back(**std::move(message));
      else
        peer.open = false;
    }
  }

  // Sends messages until the socket is full. @return true if there are more for it
  bool answer(Peer& peer, Now now) {
    for (int i = 0; peer.open; ++i) {
      if (!peer.socket.flush()) peer.open = false;
      if (peer.socket.has_unsent() || !peer.open) return false;
      if (i == kMostInTurn) return true;
      if (!peer.answer && !peer.requests.empty()) {
        const Message& request = peer.requests.front();
        peer.answer = handler_.answer(
            peer.id, {.number = request.number, .name = request.name, .value = request.value});
        if (!peer.answer) {
          if (now < peer.next_beat) return false;
          peer.next_beat = now + kBeat;
          peer.socket.send({.kind = MessageKind::kBeat});
          continue;
        }
        peer.answered = request.request;
        peer.requests.pop_front();
      }
      if (!peer.answer) return false;
      send_next(peer);
    }
    return false;
  }

  void send_next(Peer& peer) {
    next_.number = 0;
    next_.name.clear();
    Result<bool> next = peer.answer(next_);
    if (next.ok() && *next) {
      to_send_.request = peer.answered;
      to_send_.number = next_.number;
      std::swap(to_send_.name, next_.name);
      std::swap(to_send_.value, next_.value);
      peer.socket.send(to_send_);
      std::swap(to_send_.value, next_.value);
      return;
    }
    if (!next.ok()) {
      Message refused =
          refusal(next.error().code(), next.error().message().substr(0, kMostNameBytes));
      refused.request = peer.answered;
      peer.socket.send(refused);
    }
    peer.answer = nullptr;
  }

  Doorkeeper door_;
  const Handler handler_;
  WakeUp wake_;
  // Messages of an answer go through these, so that their memory is used again.
  ServedMessage next_;
  Message to_send_{.kind = MessageKind::kReply};
  std::list<Peer> peers_;
  Connection last_id_ = 0;
  std::mutex mutex_;
  bool stopping_ = false;
  std::thread thread_;
};

Result<std::unique_ptr<RequestServer>> RequestServer::start(const std::string& address,
                                                            const std::string& secret,
                                                            Handler handler) {
  MESHARD_RETURN_IF_ERROR(check_request_address(address, secret));
  MESHARD_ASSIGN_OR_RETURN(ProcessAddress place, address_to_listen(address));
  MESHARD_ASSIGN_OR_RETURN(Listener listener, Listener::open(place));
  std::vector<std::string> addresses = reachable_at(listener.address());
  auto thread = std::make_unique<Thread>(std::move(listener), secret_for_requests(secret),
                                         std::move(handler));
  return std::unique_ptr<RequestServer>(new RequestServer(std::move(thread), std::move(addresses)));
}

RequestServer::RequestServer(std::unique_ptr<Thread> thread, std::vector<std::string> addresses)
    : thread_(std::move(thread)), addresses_(std::move(addresses)) {}
RequestServer::~RequestServer() = default;
void RequestServer::wake() { thread_->wake(); }

class RequestClient::State {
 public:
  State(MessageSocket socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {
    notice_lost_machine(socket_.get());
  }

  void ask(const ServedMessage& request) {
    socket_.send({.kind = MessageKind::kGet,
                  .request = ++last_request_,
                  .number = request.number,
                  .name = request.name,
                  .value = request.value});
    (void)socket_.flush();  // next() notices that the connection is broken
  }

  Result<ServedMessage> next(milliseconds limit) {
    const Now begin = ProcessClock::now();
    Now heard = begin;
    for (bool open = true;;) {
      MESHARD_ASSIGN_OR_RETURN(std::optional<Message> message, socket_.next());
      if (message && message->kind == MessageKind::kReply)
        return ServedMessage{message->number, std::move(message->name), std::move(message->value)};
      if (message && message->kind == MessageKind::kRefuse) {
        bool known = message->number >= 1 && message->number <= 16;
        return Error(known ? static_cast<ErrorCode>(message->number) : ErrorCode::kUnknown,
                     std::move(message->name));
      }
      if (message) continue;  // a sign of life
      if (!open) return unavailable("closed the connection");
      pollfd ready = events_of(socket_);
      milliseconds wait = kBeat;
      if (limit != kNoTimeLimit)
        wait = std::clamp(std::chrono::ceil<milliseconds>(begin + limit - ProcessClock::now()),
                          milliseconds(1), kBeat);
      const bool is_ready = ::poll(&ready, 1, static_cast<int>(wait.count())) > 0;
      const Now now = ProcessClock::now();
      if (is_ready) {
        heard = now;
        open = socket_.flush();
        open = socket_.receive() && open;
      } else if (now - heard > kSilence) {
        return unavailable(cat("gives no sign of life for ", kSilence.count() / 1000, " s"));
      }
      if (limit != kNoTimeLimit && now - begin > limit)
        return Error(ErrorCode::kDeadlineExceeded,
                     cat("[processes] ", name_, " has not answered within ", limit.count(), " ms"));
    }
  }

 private:
  Error unavailable(std::string_view what) const {
    return Error(ErrorCode::kUnavailable, cat("[processes] ", name_, ' ', what));
  }

  MessageSocket socket_;
  std::string name_;
  std::uint64_t last_request_ = 0;
};

Result<RequestClient> RequestClient::open(const std::vector<std::string>& addresses,
                                          const std::string& secret, milliseconds limit) {
  MemberOptions member;
  member.secret = secret_for_requests(secret);
  const Now deadline = ProcessClock::now() + limit;
  for (;;) {
    std::optional<Error> last;
    for (const std::string& text : addresses) {
      MESHARD_RETURN_IF_ERROR(check_request_address(text, secret));
      MESHARD_ASSIGN_OR_RETURN(ProcessAddress address, ProcessAddress::parse(text));
      Result<MessageSocket> socket = connect_as_member(address, member, deadline);
      if (socket.ok()) return RequestClient(std::make_unique<State>(*std::move(socket), text));
      last = socket.error();
      if (last->code() != ErrorCode::kUnavailable) return *last;
    }
    if (ProcessClock::now() + kBetweenTries > deadline) {
      if (last) return *last;
      return Error(ErrorCode::kInvalidArgument, "[processes] there is no address to connect to");
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
}

RequestClient::RequestClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
RequestClient::RequestClient(RequestClient&&) noexcept = default;
RequestClient& RequestClient::operator=(RequestClient&&) noexcept = default;
RequestClient::~RequestClient() = default;
void RequestClient::ask(const ServedMessage& request) { state_->ask(request); }
Result<ServedMessage> RequestClient::next(milliseconds limit) { return state_->next(limit); }

}  // namespace meshard::internal
