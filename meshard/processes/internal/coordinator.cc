#include "meshard/processes/internal/coordinator.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/member_text.h"
#include "meshard/processes/processes.h"

namespace meshard::internal {
namespace {

std::chrono::milliseconds whole_milliseconds(ProcessClock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

// Limits beyond a year would overflow the clock.
constexpr std::int64_t kLongestWait = std::int64_t{365} * 24 * 3600 * 1000;

// A wait that has lasted for so long may be found to never end. All processes must have been seen
// to wait at the same time, so their signs of life must be newer than the waits.
constexpr std::chrono::milliseconds kStuck{2000}, kFresh{1000}, kSettled{1000};
constexpr std::size_t kMostStuckShown = 8;

std::string last_text(std::string_view activity) {
  return activity.empty() ? "" : cat("; it was last in \"", activity, '"');
}

}  // namespace

Coordinator::Coordinator(int size, LivenessTimes times, Time now)
    : times_(times), stalls_(times, now), members_(static_cast<std::size_t>(size)) {}

std::string Coordinator::connected(int rank, Time now) {
  Member& m = member(rank);
  if (m.state != State::kAbsent)
    return cat(member_text(rank, m.host, m.pid), m.state == State::kLost || m.state == State::kEnded
                                                     ? " has joined before and left"
                                                     : " has already joined");
  m.state = State::kConnected;
  m.open = true;
  m.heard = m.in_activity = now;
  m.host = "?";
  return "";
}

bool Coordinator::receive(int rank, Message message, Time now) {
  Member& m = member(rank);
  m.heard = now;
  // A member that was declared lost may still send; it learns of it by a kLost.
  if (m.state == State::kLost || m.state == State::kEnded) return true;
  if (m.state == State::kConnected && message.kind != MessageKind::kJoin &&
      message.kind != MessageKind::kBeat && message.kind != MessageKind::kBye)
    return false;
  switch (message.kind) {
    case MessageKind::kJoin: return join(rank, message, now);
    case MessageKind::kPut: return put(rank, std::move(message)), true;
    case MessageKind::kPublish: return publish(rank, std::move(message)), true;
    case MessageKind::kGet: return get(rank, std::move(message), now), true;
    case MessageKind::kBarrier: return barrier(rank, message, now), true;
    case MessageKind::kBye: return bye(rank, message, now), true;
    case MessageKind::kBeat:
      m.activity = std::move(message.name);
      m.in_activity = now - std::chrono::milliseconds(
                                std::clamp<std::int64_t>(message.number, 0, kLongestWait));
      m.status = ProcessStatus::from_bytes(message.value);
      m.status_at = now;
      if (m.status && m.status->has_ended && !m.ended_at) {
        m.ended_at = now;
        fail_waits(gone_text());
      }
      return true;
    default: return false;
  }
}

void Coordinator::closed(int rank, Time now) {
  Member& m = member(rank);
  m.open = false;
  std::erase_if(waits_, [&](const Wait& wait) { return wait.rank == rank; });
  if (m.state == State::kConnected) m = Member{};  // it may come again
  if (m.state == State::kJoined) lose(rank, LossKind::kDied, 0, now);
}

void Coordinator::advance(Time now) {
  ProcessClock::duration stall = stalls_.take(now);
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    Member& m = member(rank);
    m.heard += stall;
    if (m.state == State::kJoined && now - m.heard > times_.silence)
      lose(rank, LossKind::kStopped, 0, now);
  }
  look_for_stuck_waits(now);
  auto is_over = [&](const Wait& wait) { return wait.limit >= 0 && now >= wait.deadline; };
  for (const Wait& wait : waits_)  // all of them before any is removed: none of them is missing
    if (is_over(wait)) expire(wait, now);
  if (std::erase_if(waits_, is_over) == 0) return;
  for (Member& m : members_)
    if (m.gave_up && !somebody_waits_in(*m.gave_up)) m.gave_up.reset();
}

std::chrono::milliseconds Coordinator::next_step(Time now) const {
  ProcessClock::duration step = times_.beat;
  for (const Wait& wait : waits_)
    if (wait.limit >= 0) step = std::min(step, wait.deadline - now);
  // Rounded up, or the last millisecond would be spent in a busy loop.
  return std::max(whole_milliseconds(step) + std::chrono::milliseconds(1),
                  std::chrono::milliseconds(0));
}

std::vector<int> Coordinator::others_running() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < static_cast<int>(members_.size()); ++rank)
    if (member(rank).state == State::kConnected || member(rank).state == State::kJoined)
      ranks.push_back(rank);
  return ranks;
}

Message Coordinator::own_beat(Time now) const {
  const Member& own = members_[0];
  return {.kind = MessageKind::kBeat,
          .number = whole_milliseconds(now - own.in_activity).count(),
          .name = own.activity};
}

void Coordinator::reply(int rank, std::uint64_t request, std::string value) {
  send(rank, {.kind = MessageKind::kReply, .request = request, .value = std::move(value)});
}

void Coordinator::reply_error(int rank, std::uint64_t request, ErrorCode code, std::string text) {
  if (text.size() > kMostNameBytes) text.resize(kMostNameBytes);
  send(rank, {.kind = MessageKind::kReply,
              .request = request,
              .number = static_cast<int>(code),
              .name = std::move(text)});
}

bool Coordinator::join(int rank, const Message& message, Time now) {
  Member& m = member(rank);
  Result<JoinRequest> request = from_packed<JoinRequest>(message.value, "processes");
  if (!request.ok() || m.state != State::kConnected) return false;
  m.host = request->host;
  m.pid = request->pid;
  m.devices = request->local_devices;
  if (request->count != std::ssize(members_)) {
    reply_error(rank, message.request, ErrorCode::kInvalidArgument,
                cat("process ", rank, " was started as one of ", request->count,
                    " processes, process 0 as one of ", members_.size()));
    return true;
  }
  if (first_loss_) {
    reply_error(rank, message.request, ErrorCode::kUnavailable, first_loss_->to_string());
    return true;
  }
  m.state = State::kJoined;
  add_wait(MessageKind::kJoin, rank, message, now);
  if (std::all_of(members_.begin(), members_.end(),
                  [](const Member& each) { return each.state == State::kJoined; }))
    all_joined();
  return true;
}

void Coordinator::all_joined() {
  std::vector<ProcessInfo> all;
  for (const Member& m : members_) {
    const int first = all.empty() ? 0 : all.back().first_device + all.back().local_devices;
    all.push_back({static_cast<int>(all.size()), m.host, m.pid, m.devices, first});
  }
  const std::string table = to_packed(all);
  std::erase_if(waits_, [&](const Wait& wait) {
    if (wait.kind != MessageKind::kJoin) return false;
    return reply(wait.rank, wait.request, table), true;
  });
}

void Coordinator::store(int rank, const std::string& key, std::string value) {
  std::erase_if(waits_, [&](const Wait& wait) {
    if (wait.kind != MessageKind::kGet || wait.name != key) return false;
    return reply(wait.rank, wait.request, value), true;
  });
  values_[key] = {std::move(value), rank};
}

void Coordinator::put(int rank, Message message) {
  store(rank, message.name, std::move(message.value));
  reply(rank, message.request);
}

void Coordinator::publish(int rank, Message message) {
  auto found = values_.find(message.name);
  if (found == values_.end()) {
    store(rank, message.name, std::move(message.value));
    return reply(rank, message.request);
  }
  if (found->second.value == message.value) return reply(rank, message.request);
  const Member& writer = member(found->second.writer);
  send(rank, {.kind = MessageKind::kReply,
              .request = message.request,
              .number = static_cast<int>(ErrorCode::kAlreadyExists),
              .name = member_text(found->second.writer, writer.host, writer.pid),
              .value = found->second.value});
}

void Coordinator::get(int rank, Message message, Time now) {
  auto found = values_.find(message.name);
  if (found != values_.end()) return reply(rank, message.request, found->second.value);
  if (message.number == 0)
    return reply_error(rank, message.request, ErrorCode::kNotFound, "there is no such key");
  if (first_loss_)
    return reply_error(rank, message.request, ErrorCode::kUnavailable, first_loss_->to_string());
  add_wait(MessageKind::kGet, rank, message, now);
}

void Coordinator::barrier(int rank, const Message& message, Time now) {
  if (std::string text = gone_text(); !text.empty())
    return reply_error(rank, message.request, ErrorCode::kUnavailable, std::move(text));
  auto same = [&](const Wait& wait) { return is_in_barrier(wait, message.name); };
  if (std::any_of(waits_.begin(), waits_.end(),
                  [&](const Wait& wait) { return same(wait) && wait.rank == rank; }))
    return reply_error(rank, message.request, ErrorCode::kFailedPrecondition,
                       "another thread of this process waits in it");
  if (member(rank).gave_up == message.name) member(rank).gave_up.reset();
  add_wait(MessageKind::kBarrier, rank, message, now);
  if (static_cast<std::size_t>(std::count_if(waits_.begin(), waits_.end(), same)) < members_.size())
    return;
  std::erase_if(waits_, [&](const Wait& wait) {
    if (!same(wait)) return false;
    return reply(wait.rank, wait.request), true;
  });
}

void Coordinator::bye(int rank, const Message& message, Time now) {
  Member& m = member(rank);
  reply(rank, message.request);
  if (message.number != 0 && m.state == State::kJoined)
    return lose(rank, LossKind::kFailed, static_cast<int>(message.number), now);
  m.state = State::kEnded;
  if (!m.ended_at) m.ended_at = now;
  std::erase_if(waits_, [&](const Wait& wait) { return wait.rank == rank; });
  fail_waits(gone_text());
}

void Coordinator::lose(int rank, LossKind kind, int status, Time now) {
  Member& m = member(rank);
  m.state = State::kLost;
  ProcessLoss loss{.rank = rank,
                   .kind = kind,
                   .status = status,
                   .host = m.host,
                   .pid = m.pid,
                   .activity = m.activity,
                   .in_activity = whole_milliseconds(now - m.in_activity)};
  report_loss(loss);
}

void Coordinator::report_loss(const ProcessLoss& loss) {
  if (!first_loss_) first_loss_ = loss;
  // Process 0 last: the messages to the others should be on their way before it reacts. The process
  // itself, if it was only suspended or has ended, learns that the others have gone on.
  const bool is_gone = loss.kind == LossKind::kDied || loss.kind == LossKind::kFailed;
  for (int other = static_cast<int>(members_.size()) - 1; other >= 0; --other)
    if (member(other).open && (other != loss.rank || !is_gone))
      send(other, {.kind = MessageKind::kLost, .value = to_packed(loss)});
  fail_waits(gone_text());
}

void Coordinator::look_for_stuck_waits(Time now) {
  if (first_loss_ || now < next_look_) return;
  next_look_ = now + times_.beat;
  // What a process did last before it ended may end waits that the others still mention.
  Time last_end{};
  for (const Member& m : members_)
    if (m.ended_at) last_end = std::max(last_end, *m.ended_at);
  std::vector<std::optional<ProcessStatus>> statuses;
  for (const Member& m : members_) {
    const bool ended = m.ended_at.has_value();
    const bool is_known =
        ended || (now - m.status_at < kFresh && m.status_at - last_end > kSettled);
    statuses.push_back(is_known ? m.status : std::nullopt);
    if (ended) statuses.back() = ProcessStatus{.has_ended = true};
  }
  std::vector<StuckWait> stuck = stuck_waits(statuses, kStuck);
  if (stuck.empty()) return;
  // A process that has ended says most, then the one for which most wait.
  auto weight = [&](const StuckWait& each) {
    const bool ended = statuses[static_cast<std::size_t>(each.awaited)]->has_ended;
    return std::pair(ended, std::ranges::count(stuck, each.awaited, &StuckWait::awaited));
  };
  const int lost = std::ranges::max(stuck, {}, weight).awaited;
  const Member& m = member(lost);
  const bool ended = statuses[static_cast<std::size_t>(lost)]->has_ended;
  ProcessLoss loss{.rank = lost,
                   .kind = ended ? LossKind::kEnded : LossKind::kElsewhere,
                   .host = m.host,
                   .pid = m.pid,
                   .activity = m.activity,
                   .in_activity = whole_milliseconds(now - m.in_activity)};
  for (std::size_t i = 0; i < stuck.size(); ++i) {
    if (i == kMostStuckShown) {
      append(loss.difference, cat("\n  and ", stuck.size() - i, " more processes wait"));
      break;
    }
    const Member& waiting = member(stuck[i].rank);
    append(loss.difference, cat("\n  ", member_text(stuck[i].rank, waiting.host, waiting.pid),
                                " waits for process ", stuck[i].awaited, " in \"",
                                stuck[i].wait.what, "\", for ", seconds_text(stuck[i].wait.age)));
  }
  report_loss(loss);
}

std::string Coordinator::gone_text() const {
  if (first_loss_) return first_loss_->to_string();
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank)
    if (const Member& m = member(rank); m.ended_at)
      return cat(member_text(rank, m.host, m.pid), " has ended", last_text(m.activity));
  return "";
}

void Coordinator::fail_waits(const std::string& text) {
  std::erase_if(waits_, [&](const Wait& wait) {
    // A value may still come from the processes that run, unless one was lost.
    if (wait.kind == MessageKind::kGet && !first_loss_) return false;
    return reply_error(wait.rank, wait.request, ErrorCode::kUnavailable, text), true;
  });
}

void Coordinator::add_wait(MessageKind kind, int rank, const Message& message, Time now) {
  std::int64_t limit = std::min(message.number, kLongestWait);
  waits_.push_back({.kind = kind,
                    .rank = rank,
                    .request = message.request,
                    .name = message.name,
                    .limit = limit,
                    .deadline = now + std::chrono::milliseconds(std::max<std::int64_t>(limit, 0))});
}

void Coordinator::expire(const Wait& wait, Time now) {
  std::string text =
      wait.kind == MessageKind::kGet ? "no process has put it" : missing_text(wait, now);
  reply_error(wait.rank, wait.request, ErrorCode::kDeadlineExceeded, std::move(text));
  if (wait.kind != MessageKind::kBarrier) return;
  Member& m = member(wait.rank);
  m.gave_up = wait.name;
  m.gave_up_after = std::chrono::milliseconds(wait.limit);
}

bool Coordinator::somebody_waits_in(std::string_view barrier) const {
  return std::any_of(waits_.begin(), waits_.end(),
                     [&](const Wait& wait) { return is_in_barrier(wait, barrier); });
}

std::string Coordinator::missing_text(const Wait& wait, Time now) const {
  std::string text;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    const Member& m = member(rank);
    bool here = rank == wait.rank;
    for (const Wait& other : waits_)
      here |= other.rank == rank && other.kind == wait.kind &&
              (wait.kind == MessageKind::kJoin || other.name == wait.name);
    if (here || (wait.kind == MessageKind::kJoin && m.state == State::kJoined)) continue;
    text += text.empty() ? "" : "\n  ";
    if (m.state == State::kAbsent || m.state == State::kConnected) {
      text += cat("process ", rank, " has not joined");
    } else if (wait.kind == MessageKind::kBarrier && m.gave_up == wait.name) {
      text +=
          cat(member_text(rank, m.host, m.pid), " gave up after ", seconds_text(m.gave_up_after));
    } else {
      text += member_text(rank, m.host, m.pid) +
              activity_text(m.activity, whole_milliseconds(now - m.in_activity));
    }
  }
  return text;
}

}  // namespace meshard::internal
