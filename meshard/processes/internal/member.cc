// Tested in meshard/processes/internal/server_test.cc.
#include "meshard/processes/internal/member.h"

#include <poll.h>

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/base/threads.h"
#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard::internal {
namespace {

using std::chrono::milliseconds;
using Time = ProcessClock::time_point;

constexpr milliseconds kConnectLimit{3000};
constexpr milliseconds kHandshakeLimit{10000};
constexpr milliseconds kBetweenTries{50};
constexpr milliseconds kDoubt{2000};

milliseconds until(Time deadline) {
  auto rest = std::chrono::ceil<milliseconds>(deadline - ProcessClock::now());
  return std::max(rest, milliseconds(0));
}

/// Waits for the next message of a handshake.
Result<Message> next_message(MessageSocket& socket, Time deadline) {
  for (;;) {
    MESHARD_ASSIGN_OR_RETURN(std::optional<Message> message, socket.next());
    if (message) return *std::move(message);
    pollfd ready{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (until(deadline).count() == 0)
      return Error(ErrorCode::kUnavailable, "[processes] process 0 does not answer");
    if (::poll(&ready, 1, static_cast<int>(until(deadline).count())) > 0 && !socket.receive()) {
      MESHARD_ASSIGN_OR_RETURN(message, socket.next());
      if (message) return *std::move(message);
      return Error(ErrorCode::kUnavailable, "[processes] process 0 closed the connection");
    }
  }
}

Result<void> shake_hands(MessageSocket& socket, const MemberOptions& options) {
  MESHARD_ASSIGN_OR_RETURN(std::string challenge, random_bytes(32));
  MemberHandshake handshake(options.secret, options.rank, std::move(challenge));
  Time deadline = ProcessClock::now() + kHandshakeLimit;
  socket.send(handshake.hello());
  while (!handshake.accepted()) {
    if (!socket.flush())
      return Error(ErrorCode::kUnavailable, "[processes] process 0 closed the connection");
    MESHARD_ASSIGN_OR_RETURN(Message message, next_message(socket, deadline));
    MESHARD_ASSIGN_OR_RETURN(std::optional<Message> answer, handshake.receive(message));
    if (answer) socket.send(*answer);
  }
  return {};
}

}  // namespace

Result<MessageSocket> connect_as_member(const ProcessAddress& address, const MemberOptions& options,
                                        Time deadline) {
  MESHARD_ASSIGN_OR_RETURN(
      FileHandle handle,
      connect_to(address, std::clamp(until(deadline), milliseconds(1), kConnectLimit)));
  MessageSocket socket(std::move(handle));
  MESHARD_RETURN_IF_ERROR(shake_hands(socket, options));
  socket.set_limit(kMostMemberBytes);
  return socket;
}

namespace {

/// Tries until process 0 has started.
Result<MessageSocket> connect_member(const MemberOptions& options) {
  Time begin = ProcessClock::now(), deadline = begin + options.limit;
  for (;;) {
    std::optional<Error> refused, last;
    for (const ProcessAddress& address : options.addresses) {
      Result<MessageSocket> socket = connect_as_member(address, options, deadline);
      if (socket.ok()) return socket;
      last = socket.error();
      if (last->code() != ErrorCode::kUnavailable) refused = last;
    }
    if (refused) return *refused;
    if (until(deadline).count() == 0)
      return Error(ErrorCode::kUnavailable,
                   cat("[processes] process ", options.rank, " cannot reach process 0 within ",
                       seconds_text(options.limit)))
          .with_note(last ? last->message() : "there is no address");
    std::this_thread::sleep_for(std::min(kBetweenTries, until(deadline)));
  }
}

}  // namespace

Result<std::unique_ptr<MemberConnection>> MemberConnection::open(MemberOptions options) {
  MESHARD_ASSIGN_OR_RETURN(MessageSocket socket, connect_member(options));
  std::unique_ptr<MemberConnection> connection(
      new MemberConnection(std::move(options), std::move(socket)));
  connection->thread_ = start_quiet_thread([raw = connection.get()] { raw->run(); });
  return connection;
}

MemberConnection::MemberConnection(MemberOptions options, MessageSocket socket)
    : options_(std::move(options)),
      socket_(std::move(socket)),
      ends_(connection_ends(socket_.get())),
      stalls_(options_.times, ProcessClock::now()),
      heard_(ProcessClock::now()),
      next_beat_(heard_),
      server_in_activity_(heard_),
      in_activity_(heard_) {
  server_.host = "?";
}

void MemberConnection::ignore_losses() {
  std::lock_guard lock(mutex_);
  closing_ = true;
}

void MemberConnection::close() {
  {
    std::lock_guard lock(mutex_);
    closing_ = stopping_ = true;
    if (!failure_)
      failure_ = Error(ErrorCode::kFailedPrecondition, "[processes] this process has left the run");
    replied_.notify_all();
  }
  wake_.notify();
  if (thread_.joinable()) thread_.join();
}

Result<Message> MemberConnection::request(Message message) {
  if (message.name.size() > kMostNameBytes || message.value.size() > kMostValueBytes)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] a name of ", message.name.size(), " bytes with a value of ",
                     message.value.size(), " bytes is too large; the limits are ", kMostNameBytes,
                     " and ", kMostValueBytes));
  std::unique_lock lock(mutex_);
  if (failure_) return *failure_;
  std::uint64_t id = message.request = ++last_request_;
  replies_[id];
  queue_.push_back(std::move(message));
  wake_.notify();
  replied_.wait(lock, [&] { return replies_[id] || failure_; });
  std::optional<Message> reply = std::move(replies_[id]);
  replies_.erase(id);
  if (!reply) return *failure_;
  return *std::move(reply);
}

void MemberConnection::set_activity(std::string_view text) {
  std::lock_guard lock(activity_mutex_);
  activity_ = text.substr(0, kMostNameBytes);
  in_activity_ = ProcessClock::now();
}

std::string MemberConnection::activity() const {
  std::lock_guard lock(activity_mutex_);
  return activity_;
}

void MemberConnection::set_activity_source(ActivitySource source) {
  std::lock_guard lock(activity_mutex_);
  source_ = std::move(source);
}

void MemberConnection::set_ended() {
  {
    std::lock_guard lock(activity_mutex_);
    ended_ = true;
  }
  wake_.notify();
}

void MemberConnection::set_server(std::string host, int pid) {
  std::lock_guard lock(mutex_);
  server_.host = std::move(host);
  server_.pid = pid;
}

void MemberConnection::say_bye(int status) {
  {
    std::lock_guard lock(mutex_);
    said_bye_ = true;
  }
  [[maybe_unused]] Result<Message> reply = request({.kind = MessageKind::kBye, .number = status});
}

void MemberConnection::run() {
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (stopping_) break;
      for (const Message& message : queue_) socket_.send(message);
      queue_.clear();
    }
    bool open = socket_.flush();
    beat(ProcessClock::now());
    if (!(socket_.flush() && open) && !hear()) return lose_server(LossKind::kDied);
    short wanted = POLLIN;
    if (socket_.has_unsent()) wanted |= POLLOUT;
    pollfd events[] = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                       {.fd = socket_.get(), .events = wanted, .revents = 0}};
    ::poll(events, 2, static_cast<int>(until(next_beat_).count()));
    heard_ += stalls_.take(ProcessClock::now());
    if (events[0].revents != 0) wake_.clear();
    if (events[1].revents != 0 && !hear()) return lose_server(LossKind::kDied);
    if (ProcessClock::now() - heard_ > options_.times.silence + 2 * options_.times.beat)
      return lose_server(LossKind::kStopped);
  }
  socket_.flush();
  socket_.shut_down();
}

bool MemberConnection::hear() {
  Time now = ProcessClock::now();
  if (now - heard_ > options_.times.silence / 2) doubted_until_ = now + kDoubt;
  bool open = socket_.receive();
  for (;;) {
    Result<std::optional<Message>> message = socket_.next();
    if (!message.ok()) return false;
    if (!*message) return open;
    heard_ = ProcessClock::now();
    take(**std::move(message));
  }
}

void MemberConnection::take(Message message) {
  if (message.kind == MessageKind::kBeat) {
    std::lock_guard lock(mutex_);
    server_.activity = std::move(message.name);
    server_in_activity_ =
        heard_ - milliseconds(std::clamp<std::int64_t>(message.number, 0, std::int64_t{1} << 40));
  } else if (message.kind == MessageKind::kReply) {
    std::lock_guard lock(mutex_);
    auto waiting = replies_.find(message.request);
    if (waiting == replies_.end()) return;
    waiting->second = std::move(message);
    replied_.notify_all();
  } else if (message.kind == MessageKind::kLost) {
    Result<ProcessLoss> loss = from_packed<ProcessLoss>(message.value, "processes");
    if (!loss.ok()) return;
    // Process 0 was suspended; others have noticed it and ended, which process 0 reports now.
    if (heard_ < doubted_until_) return lose_server(LossKind::kStopped);
    report(*loss);
  }
}

void MemberConnection::beat(Time now) {
  if (now < next_beat_) return;
  next_beat_ = now + options_.times.beat;
  if (socket_.has_unsent()) return;  // process 0 does not read
  Message message{.kind = MessageKind::kBeat};
  {
    std::lock_guard lock(activity_mutex_);
    ProcessActivity doing;
    if (source_) doing = source_();
    ProcessStatus status = ProcessStatus::of(all_awaiting(), now);
    for (const SharedStep& step : doing.launches)
      status.reached.emplace_back(step.channel, step.number);
    if (doing.in_collective)
      status.others.push_back(
          {doing.text, doing.launches,
           std::chrono::duration_cast<milliseconds>(now - *doing.in_collective)});
    status.has_ended = ended_;
    if (!activity_.empty() || !source_) doing = {.text = activity_, .since = in_activity_};
    message.name = doing.text.substr(0, kMostNameBytes);
    message.number = std::chrono::duration_cast<milliseconds>(now - doing.since).count();
    message.value = status.to_bytes();
  }
  socket_.send(message);
}

void MemberConnection::lose_server(LossKind kind) {
  std::unique_lock lock(mutex_);
  server_.kind = kind;
  server_.in_activity =
      std::chrono::duration_cast<milliseconds>(ProcessClock::now() - server_in_activity_);
  ProcessLoss loss = server_;
  failure_ = Error(ErrorCode::kUnavailable, cat("[processes] ", loss.to_string()));
  bool expected = closing_ || said_bye_;
  replied_.notify_all();
  lock.unlock();
  if (!expected) report(loss);
}

void MemberConnection::report(const ProcessLoss& loss) {
  {
    std::lock_guard lock(mutex_);
    if (closing_) return;
  }
  if (options_.on_loss) options_.on_loss(loss);
}

}  // namespace meshard::internal
