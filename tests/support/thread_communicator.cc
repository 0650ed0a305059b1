#include "tests/support/thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using Bytes = std::vector<unsigned char>;

/// What one thread passed to a collective.
struct ThreadCall {
  GroupCall call;  ///< must be equal in the group
  const void* in = nullptr;
};

/// The calls of one group. All members wait for one another twice in each call: before they read
/// the operands, and before they write their results, which may be in the operands' memory.
struct Meeting {
  std::vector<ThreadCall> calls;
  std::vector<bool> here;
  int arrived = 0;
  std::uint64_t round = 0;
};

struct ThreadBoard {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::vector<int>, Meeting> meetings;
  // By sender, receiver and tag.
  std::map<std::tuple<int, int, std::int64_t>, std::deque<Bytes>> mail;
  std::optional<Error> failure;
};

class ThreadCommunicator : public ProcessCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadBoard> board, int rank, int size,
                     std::chrono::milliseconds limit)
      : board_(std::move(board)), rank_(rank), size_(size), limit_(limit) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                    void* out) override {
    MESHARD_ASSIGN_OR_RETURN(std::size_t own, check_call(group, call, rank_, size_));
    const std::size_t bytes = call.bytes();
    return meet(group, own, call, in, out, [&](const Blocks& blocks, unsigned char* result) {
      auto each_block = [&](std::size_t offset) {
        for (std::size_t i = 0; i < blocks.size(); ++i)
          copy(result + i * bytes, blocks[i] + offset, bytes);
      };
      auto combined = [&](std::size_t offset) {
        std::vector<const void*> parts;
        for (const unsigned char* block : blocks) parts.push_back(block + offset);
        combine_blocks(call.op, call.type, parts, result, call.count);
      };
      switch (call.kind) {
        case GroupCall::Kind::kAllReduce: return combined(0);
        case GroupCall::Kind::kReduceScatter: return combined(own * bytes);
        case GroupCall::Kind::kAllGather: return each_block(0);
        case GroupCall::Kind::kAllToAll: return each_block(own * bytes);
        case GroupCall::Kind::kBroadcast: break;
      }
      auto root = std::ranges::find(group, call.root) - group.begin();
      copy(result, blocks[static_cast<std::size_t>(root)], bytes);
    });
  }
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override {
    MESHARD_RETURN_IF_ERROR(check_permute(to, from, rank_, size_));
    std::unique_lock lock(board_->mutex);
    if (to >= 0) post(to, kPermuteTag, in, bytes);
    if (from < 0) {
      if (bytes != 0 && out != nullptr) std::memset(out, 0, bytes);
      return {};
    }
    return fetch(from, kPermuteTag, out, bytes, "a permute", lock);
  }

  Result<void> exchange(std::span<const OutgoingMessage> sent,
                        std::span<const IncomingMessage> received) override {
    for (const OutgoingMessage& each : sent)
      MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank_, size_));
    for (const IncomingMessage& each : received)
      MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank_, size_));
    std::unique_lock lock(board_->mutex);
    for (const OutgoingMessage& each : sent) post(each.process, each.tag, each.data, each.bytes);
    for (const IncomingMessage& each : received)
      MESHARD_RETURN_IF_ERROR(
          fetch(each.process, each.tag, each.data, each.bytes, "an exchange", lock));
    return {};
  }

  Result<std::unique_ptr<StartedMessage>> start_send(const OutgoingMessage& message) override {
    MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank_, size_));
    std::lock_guard lock(board_->mutex);
    post(message.process, kFirstStartedTag + message.tag, message.data, message.bytes);
    return std::unique_ptr<StartedMessage>(new Posted);
  }
  Result<std::unique_ptr<StartedMessage>> start_receive(const IncomingMessage& message) override {
    MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank_, size_));
    return std::unique_ptr<StartedMessage>(new Expected(*this, message));
  }
  int largest_tag() const override { return 32767; }

 private:
  static constexpr int kPermuteTag = -1;
  static constexpr std::int64_t kFirstStartedTag = std::int64_t{1} << 32;

  /// A letter is copied when it is posted.
  struct Posted final : StartedMessage {
    Result<bool> has_ended() override { return true; }
    void cancel() override {}
  };
  struct Expected final : StartedMessage {
    Expected(ThreadCommunicator& by, const IncomingMessage& what)
        : communicator(by), message(what) {}
    Result<bool> has_ended() override {
      std::unique_lock lock(communicator.board_->mutex);
      const std::int64_t tag = kFirstStartedTag + message.tag;
      if (communicator.board_->mail[{message.process, communicator.rank_, tag}].empty())
        return false;
      MESHARD_RETURN_IF_ERROR(
          communicator.fetch(message.process, tag, message.data, message.bytes, "a message", lock));
      return true;
    }
    void cancel() override {}
    ThreadCommunicator& communicator;
    IncomingMessage message;
  };

  /// @pre the board is locked, in both functions
  void post(int to, std::int64_t tag, const void* in, std::size_t bytes) {
    Bytes letter(bytes);
    copy(letter.data(), in, bytes);
    board_->mail[{rank_, to, tag}].push_back(std::move(letter));
    board_->changed.notify_all();
  }
  Result<void> fetch(int from, std::int64_t tag, void* out, std::size_t bytes,
                     std::string_view what, std::unique_lock<std::mutex>& lock) {
    std::deque<Bytes>& letters = board_->mail[{from, rank_, tag}];
    auto ready = [&] { return !letters.empty() || board_->failure; };
    if (!board_->changed.wait_for(lock, limit_, ready))
      return fail(cat(what, " on process ", rank_, ": nothing came from process ", from));
    if (board_->failure) return *board_->failure;
    Bytes letter = std::move(letters.front());
    letters.pop_front();
    if (letter.size() != bytes)
      return fail(cat(what, ": process ", from, " sent ", letter.size(), " bytes, process ", rank_,
                      " expects ", bytes));
    copy(out, letter.data(), bytes);
    return {};
  }

  /// The operands of all members.
  using Blocks = std::vector<const unsigned char*>;
  static void copy(void* out, const void* in, std::size_t bytes) {
    if (bytes != 0) std::memcpy(out, in, bytes);
  }

  /// Ends all calls, also those of other threads. @pre the board is locked
  Error fail(std::string text) {
    board_->failure = Error(ErrorCode::kDeadlineExceeded, "[processes] " + std::move(text));
    board_->changed.notify_all();
    return *board_->failure;
  }

  Result<void> wait_for_all(Meeting& meeting, std::span<const int> group, std::size_t position,
                            std::unique_lock<std::mutex>& lock) {
    if (board_->failure) return *board_->failure;
    std::uint64_t round = meeting.round;
    meeting.here[position] = true;
    if (++meeting.arrived == static_cast<int>(group.size())) {
      meeting.arrived = 0;
      meeting.here.assign(group.size(), false);
      ++meeting.round;
      board_->changed.notify_all();
      return {};
    }
    auto done = [&] { return meeting.round != round || board_->failure; };
    if (!board_->changed.wait_for(lock, limit_, done)) {
      std::string missing;
      for (std::size_t i = 0; i < group.size(); ++i)
        if (!meeting.here[i]) missing += cat(missing.empty() ? "" : ", ", group[i]);
      return fail(cat(meeting.calls[position].call, ": no call of the processes ", missing));
    }
    if (meeting.round == round) return *board_->failure;
    return {};
  }

  template <class Compute>
  Result<void> meet(std::span<const int> group, std::size_t position, const GroupCall& call,
                    const void* in, void* out, Compute compute) {
    std::unique_lock lock(board_->mutex);
    Meeting& meeting = board_->meetings[std::vector<int>(group.begin(), group.end())];
    meeting.calls.resize(group.size());
    meeting.here.resize(group.size());
    meeting.calls[position] = {call, in};
    MESHARD_RETURN_IF_ERROR(wait_for_all(meeting, group, position, lock));
    Blocks blocks;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!(meeting.calls[i].call == meeting.calls[0].call))
        return fail(cat("process ", group[0], " calls ", meeting.calls[0].call, ", but process ",
                        group[i], " calls ", meeting.calls[i].call));
      blocks.push_back(static_cast<const unsigned char*>(meeting.calls[i].in));
    }
    lock.unlock();
    Bytes result(call.result_bytes(group.size()));
    compute(blocks, result.data());
    lock.lock();
    MESHARD_RETURN_IF_ERROR(wait_for_all(meeting, group, position, lock));
    copy(out, result.data(), result.size());
    return {};
  }

  std::shared_ptr<ThreadBoard> board_;
  int rank_;
  int size_;
  std::chrono::milliseconds limit_;
};

}  // namespace

std::vector<std::unique_ptr<ProcessCommunicator>> make_thread_communicators(
    int size, std::chrono::milliseconds limit) {
  auto board = std::make_shared<ThreadBoard>();
  std::vector<std::unique_ptr<ProcessCommunicator>> result;
  for (int rank = 0; rank < size; ++rank)
    result.push_back(std::make_unique<ThreadCommunicator>(board, rank, size, limit));
  return result;
}

}  // namespace meshard
