#include "meshard/processes/device_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/device_meeting.h"

namespace meshard {
namespace {

using internal::DeviceGroup;
using internal::DeviceMeeting;
using internal::DeviceRound;

// Up to this size, one thread combines the operands of all: waking the others takes longer.
constexpr std::size_t kCombinedByOne = 16384;
// Up to this size, each process sends its whole operand to each other one.
constexpr std::size_t kSentWhole = 4096;

void copy_bytes(void* to, const void* from, std::size_t bytes) {
  if (bytes != 0 && to != from) std::memcpy(to, from, bytes);
}

/// Part `i` of `count` elements in `parts` parts.
struct Part {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};
Part part_of(std::size_t count, std::size_t parts, std::size_t i) {
  std::size_t size = count / parts, longer = count % parts;
  std::size_t begin = i * size + std::min(i, longer);
  return {begin, begin + size + (i < longer ? 1 : 0)};
}

/// An operand of a permutation, for a device of the same process.
struct DeviceLetter {
  const void* data;
  std::size_t bytes;
  bool is_taken = false;
};

/// What the devices of one process share.
struct DeviceBoard {
  DeviceBoard(ProcessCommunicator& to, std::vector<int> numbers)
      : processes(to), counts(std::move(numbers)) {
    auto own = counts.begin() + processes.rank();
    first = std::accumulate(counts.begin(), own, 0);
    size = std::accumulate(own, counts.end(), first);
    most = *std::max_element(counts.begin(), counts.end());
  }

  ProcessCommunicator& processes;
  const std::vector<int> counts;
  int first = 0;  ///< the first device of this process
  int size = 0;
  int most = 0;  ///< devices of one process

  std::mutex mutex;  // of the rest
  std::map<std::vector<int>, std::shared_ptr<DeviceMeeting>> meetings;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<DeviceLetter>>> mail;

  bool has(int device) const {
    return device >= first && device < first + counts[static_cast<std::size_t>(processes.rank())];
  }
  /// The tag of messages between two devices, which are numbered within their processes. Two
  /// devices make the collectives that both take part in one after the other and in the same order,
  /// so such messages never mix.
  int tag(int sender, int receiver) const { return sender * most + receiver; }

  std::shared_ptr<DeviceLetter> post(int sender, int receiver, const void* in, std::size_t bytes) {
    auto letter = std::make_shared<DeviceLetter>(DeviceLetter{in, bytes});
    std::lock_guard lock(mutex);
    mail[{sender, receiver}].push_back(letter);
    changed.notify_all();
    return letter;
  }
  Result<void> fetch(int sender, int receiver, void* out, std::size_t bytes) {
    std::unique_lock lock(mutex);
    auto& letters = mail[{sender, receiver}];
    changed.wait(lock, [&] { return !letters.empty(); });
    std::shared_ptr<DeviceLetter> letter = std::move(letters.front());
    letters.pop_front();
    lock.unlock();
    if (letter->bytes == bytes) copy_bytes(out, letter->data, bytes);
    lock.lock();
    letter->is_taken = true;
    changed.notify_all();
    if (letter->bytes == bytes) return {};
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[processes] a permute: device ", sender, " sends ", letter->bytes,
                     " bytes, device ", receiver, " expects ", bytes));
  }
  void wait_until_taken(const DeviceLetter& letter) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return letter.is_taken; });
  }
};

/// A message to or from each other process of a group.
class GroupMessages {
 public:
  GroupMessages(DeviceBoard& board, const DeviceGroup& group) : board_(board), group_(group) {}

  void send(std::size_t process, const void* data, std::size_t bytes) {
    sent_.push_back({group_.processes[process],
                     board_.tag(group_.first_devices[group_.here], group_.first_devices[process]),
                     data, bytes});
  }
  void receive(std::size_t process, void* data, std::size_t bytes) {
    received_.push_back(
        {group_.processes[process],
         board_.tag(group_.first_devices[process], group_.first_devices[group_.here]), data,
         bytes});
  }
  Result<void> exchange() {
    if (sent_.empty() && received_.empty()) return {};
    Result<void> done = board_.processes.exchange(sent_, received_);
    sent_.clear();
    received_.clear();
    return done;
  }

 private:
  DeviceBoard& board_;
  const DeviceGroup& group_;
  std::vector<OutgoingMessage> sent_;
  std::vector<IncomingMessage> received_;
};

/// A group that a device has been in.
struct DevicePlaceInGroup {
  std::shared_ptr<DeviceMeeting> meeting;
  std::size_t position;  ///< in the group
  std::size_t member;    ///< among those in this process
};

class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(std::shared_ptr<DeviceBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return board_->size; }

  Result<void> call(std::span<const int> group, const GroupCall& call, const void* in,
                    void* out) override;
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override;

 private:
  Result<const DevicePlaceInGroup*> find(std::span<const int> group);

  std::shared_ptr<DeviceBoard> board_;
  int rank_;
  std::deque<DevicePlaceInGroup> places_;  // few; found by comparing
};

/// Calls `visit(process, offset)` for each process of the group but this one; `offset` is that of
/// its members among those of all of them, by process.
template <class Visit>
void for_each_other(const DeviceGroup& group, Visit visit) {
  std::size_t offset = 0;
  for (std::size_t p = 0; p < group.processes.size(); ++p) {
    if (p == group.here) continue;
    visit(p, offset);
    offset += group.positions[p].size();
  }
}

Result<const DevicePlaceInGroup*> DeviceCommunicator::find(std::span<const int> group) {
  for (const DevicePlaceInGroup& place : places_)
    if (std::ranges::equal(place.meeting->group().devices, group)) return &place;
  MESHARD_ASSIGN_OR_RETURN(std::size_t own, check_group(group, rank_, size()));
  DevicePlaceInGroup place{.meeting = nullptr, .position = own, .member = 0};
  {
    std::lock_guard lock(board_->mutex);
    auto& known = board_->meetings[std::vector<int>(group.begin(), group.end())];
    if (!known)
      known = std::make_shared<DeviceMeeting>(
          DeviceGroup::of(group, board_->counts, board_->processes.rank()));
    place.meeting = known;
  }
  const DeviceGroup& devices = place.meeting->group();
  const std::vector<std::size_t>& here = devices.positions[devices.here];
  place.member = static_cast<std::size_t>(std::ranges::find(here, place.position) - here.begin());
  return &places_.emplace_back(std::move(place));
}

/// A call in a group of several devices.
class DeviceGroupCall {
 public:
  DeviceGroupCall(DeviceBoard& board, const DevicePlaceInGroup& place, const GroupCall& call,
                  const void* in, void* out)
      : board_(board),
        place_(place),
        devices_(place.meeting->group()),
        call_(call),
        bytes_(call.bytes()),
        in_(static_cast<const std::byte*>(in)),
        out_(static_cast<std::byte*>(out)),
        round_(place.meeting->join(place.member, call, in)) {}

  Result<void> run() {
    switch (call_.kind) {
      case GroupCall::Kind::kAllReduce: return all_reduce();
      case GroupCall::Kind::kAllGather: return all_gather();
      case GroupCall::Kind::kReduceScatter: return reduce_scatter();
      case GroupCall::Kind::kAllToAll: return all_to_all();
      case GroupCall::Kind::kBroadcast: break;
    }
    return broadcast();
  }

 private:
  Result<void> all_reduce();
  Result<void> reduce_across(std::byte* data);
  Result<void> all_gather();
  Result<void> reduce_scatter();
  Result<void> all_to_all();
  Result<void> broadcast();
  /// The result of a reduction, of which `wide` has elements of wide_type().
  Result<void> deliver(const std::byte* wide) {
    if (wide_type(call_.type) == call_.type)
      copy_bytes(out_, wide, bytes_);
    else
      round_wide(call_.type, wide, out_, call_.count);
    return {};
  }

  DeviceBoard& board_;
  const DevicePlaceInGroup& place_;
  const DeviceGroup& devices_;
  const GroupCall& call_;
  std::size_t bytes_;
  const std::byte* in_;
  std::byte* out_;
  std::shared_ptr<DeviceRound> round_;
};

Result<void> DeviceCommunicator::call(std::span<const int> group, const GroupCall& call,
                                      const void* in, void* out) {
  MESHARD_RETURN_IF_ERROR(check_call(group, call, rank_, size()));
  if (group.size() == 1) return copy_bytes(out, in, call.bytes()), Result<void>();
  MESHARD_ASSIGN_OR_RETURN(const DevicePlaceInGroup* place, find(group));
  return DeviceGroupCall(*board_, *place, call, in, out).run();
}

/// Combines one operand of each process of the group, in their order.
Result<void> DeviceGroupCall::reduce_across(std::byte* data) {
  const std::size_t processes = devices_.processes.size(), count = call_.count;
  const DType wide = wide_type(call_.type);
  const std::size_t width = size_in_bytes(wide);
  if (processes == 1) return {};
  // No other device of these processes communicates now, so their collectives cannot mix.
  if (devices_.is_whole)
    return board_.processes.all_reduce(devices_.processes, call_.op, wide, data, data, count);
  GroupMessages messages(board_, devices_);
  auto part = [&](std::size_t p) {
    return count * width <= kSentWhole ? Part{0, count} : part_of(count, processes, p);
  };
  const Part own = part(devices_.here);
  MessageMemory received((processes - 1) * own.size() * width);
  std::vector<const void*> blocks(processes, data + own.begin * width);
  std::byte* at = received.data();
  for (std::size_t p = 0; p < processes; ++p) {
    if (p == devices_.here) continue;
    messages.send(p, data + part(p).begin * width, part(p).size() * width);
    messages.receive(p, at, own.size() * width);
    blocks[p] = at;
    at += own.size() * width;
  }
  MESHARD_RETURN_IF_ERROR(messages.exchange());
  combine_blocks(call_.op, wide, blocks, data + own.begin * width, own.size());
  if (own.size() == count) return {};
  for (std::size_t p = 0; p < processes; ++p) {
    if (p == devices_.here) continue;
    messages.send(p, data + own.begin * width, own.size() * width);
    messages.receive(p, data + part(p).begin * width, part(p).size() * width);
  }
  return messages.exchange();
}

Result<void> DeviceGroupCall::all_reduce() {
  const DType wide = wide_type(call_.type);
  auto allocate = [&] { round_->shared = MessageMemory(call_.count * size_in_bytes(wide)); };
  auto across = [&] { return reduce_across(round_->shared.data()); };
  if (bytes_ <= kCombinedByOne) {
    MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
      allocate();
      combine_blocks_wide(call_.op, call_.type, round_->operands(), round_->shared.data(),
                          call_.count);
      return across();
    }));
  } else {
    MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] { return allocate(), Result<void>(); }));
    Part own = part_of(call_.count, devices_.num_here(), place_.member);
    std::vector<const void*> blocks;
    for (std::size_t m = 0; m < devices_.num_here(); ++m)
      blocks.push_back(round_->operand(m) + own.begin * size_in_bytes(call_.type));
    combine_blocks_wide(call_.op, call_.type, blocks,
                        round_->shared.data() + own.begin * size_in_bytes(wide), own.size());
    MESHARD_RETURN_IF_ERROR(round_->meet(devices_, across));
  }
  return deliver(round_->shared.data());
}

// The operands are sent as they are, and stay until all members here have read them.
Result<void> DeviceGroupCall::all_gather() {
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    round_->received = MessageMemory((devices_.size() - devices_.num_here()) * bytes_);
    GroupMessages messages(board_, devices_);
    for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
      for (const void* operand : round_->operands()) messages.send(p, operand, bytes_);
      for (std::size_t m = 0; m < devices_.positions[p].size(); ++m)
        messages.receive(p, round_->received.data() + (offset + m) * bytes_, bytes_);
    });
    return messages.exchange();
  }));
  auto to = [&](std::size_t position) { return out_ + position * bytes_; };
  for (std::size_t m = 0; m < devices_.num_here(); ++m)
    copy_bytes(to(devices_.positions[devices_.here][m]), round_->operand(m), bytes_);
  for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
    for (std::size_t m = 0; m < devices_.positions[p].size(); ++m)
      copy_bytes(to(devices_.positions[p][m]), round_->received.data() + (offset + m) * bytes_,
                 bytes_);
  });
  return round_->meet(devices_);
}

// Each process combines the operands of its members, and sends to each other process the blocks of
// that one's members.
Result<void> DeviceGroupCall::reduce_scatter() {
  const DType wide = wide_type(call_.type);
  const std::size_t block = call_.count * size_in_bytes(wide), here = devices_.num_here();
  const std::size_t others = devices_.size() - here;
  // `shared` has the blocks of other processes' members, then those of the members here.
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    round_->shared = MessageMemory(devices_.size() * block);
    round_->received = MessageMemory((devices_.processes.size() - 1) * here * block);
    return Result<void>();
  }));
  const Part own = part_of(call_.count, here, place_.member);
  auto combine_block = [&](std::size_t position, std::size_t offset) {
    std::vector<const void*> blocks;
    for (std::size_t m = 0; m < here; ++m)
      blocks.push_back(round_->operand(m) + position * bytes_ +
                       own.begin * size_in_bytes(call_.type));
    combine_blocks_wide(call_.op, call_.type, blocks,
                        round_->shared.data() + offset * block + own.begin * size_in_bytes(wide),
                        own.size());
  };
  for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
    for (std::size_t m = 0; m < devices_.positions[p].size(); ++m)
      combine_block(devices_.positions[p][m], offset + m);
  });
  for (std::size_t m = 0; m < here; ++m)
    combine_block(devices_.positions[devices_.here][m], others + m);
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    GroupMessages messages(board_, devices_);
    std::byte* at = round_->received.data();
    for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
      messages.send(p, round_->shared.data() + offset * block,
                    devices_.positions[p].size() * block);
      messages.receive(p, at, here * block);
      at += here * block;
    });
    return messages.exchange();
  }));
  std::byte* mine = round_->shared.data() + (others + place_.member) * block;
  std::vector<const void*> blocks(devices_.processes.size(), mine);
  const std::byte* from = round_->received.data() + place_.member * block;
  for_each_other(devices_, [&](std::size_t p, std::size_t) {
    blocks[p] = from;
    from += here * block;
  });
  combine_blocks(call_.op, wide, blocks, mine, call_.count);
  return deliver(mine);
}

// `shared` has the blocks for other processes, by process, sender and receiver; `received` those
// from them, likewise.
Result<void> DeviceGroupCall::all_to_all() {
  const std::size_t here = devices_.num_here(), others = devices_.size() - here;
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    round_->shared = MessageMemory(here * others * bytes_);
    round_->received = MessageMemory(here * others * bytes_);
    return Result<void>();
  }));
  for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
    const std::vector<std::size_t>& there = devices_.positions[p];
    std::byte* at = round_->shared.data() + (offset * here + place_.member * there.size()) * bytes_;
    for (std::size_t m = 0; m < there.size(); ++m)
      copy_bytes(at + m * bytes_, in_ + there[m] * bytes_, bytes_);
  });
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    GroupMessages messages(board_, devices_);
    for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
      std::size_t begin = offset * here * bytes_,
                  size = devices_.positions[p].size() * here * bytes_;
      messages.send(p, round_->shared.data() + begin, size);
      messages.receive(p, round_->received.data() + begin, size);
    });
    return messages.exchange();
  }));
  for (std::size_t m = 0; m < here; ++m)
    copy_bytes(out_ + devices_.positions[devices_.here][m] * bytes_,
               round_->operand(m) + place_.position * bytes_, bytes_);
  for_each_other(devices_, [&](std::size_t p, std::size_t offset) {
    const std::vector<std::size_t>& there = devices_.positions[p];
    for (std::size_t m = 0; m < there.size(); ++m)
      copy_bytes(out_ + there[m] * bytes_,
                 round_->received.data() + (offset * here + m * here + place_.member) * bytes_,
                 bytes_);
  });
  return round_->meet(devices_);
}

Result<void> DeviceGroupCall::broadcast() {
  auto root = static_cast<std::size_t>(std::ranges::find(devices_.devices, call_.root) -
                                       devices_.devices.begin());
  std::size_t process = 0, root_member = 0;
  for (std::size_t p = 0; p < devices_.positions.size(); ++p)
    for (std::size_t m = 0; m < devices_.positions[p].size(); ++m)
      if (devices_.positions[p][m] == root) process = p, root_member = m;
  const bool is_here = process == devices_.here;
  MESHARD_RETURN_IF_ERROR(round_->meet(devices_, [&] {
    GroupMessages messages(board_, devices_);
    if (is_here) {
      for_each_other(devices_, [&](std::size_t p, std::size_t) {
        messages.send(p, round_->operand(root_member), bytes_);
      });
    } else {
      round_->received = MessageMemory(bytes_);
      messages.receive(process, round_->received.data(), bytes_);
    }
    return messages.exchange();
  }));
  copy_bytes(out_, is_here ? round_->operand(root_member) : round_->received.data(), bytes_);
  return is_here ? round_->meet(devices_) : Result<void>();
}

// A device of the same process copies from this one's memory, so both wait for it.
Result<void> DeviceCommunicator::permute(int to, int from, const void* in, void* out,
                                         std::size_t bytes) {
  MESHARD_RETURN_IF_ERROR(check_permute(to, from, rank_, size()));
  if (to == rank_) return copy_bytes(out, in, bytes), Result<void>();
  if (from < 0 && bytes != 0 && out != nullptr) std::memset(out, 0, bytes);
  const int own = rank_ - board_->first;
  std::shared_ptr<DeviceLetter> letter;
  std::vector<OutgoingMessage> sent;
  std::vector<IncomingMessage> received;
  if (to >= 0 && board_->has(to)) {
    letter = board_->post(rank_, to, in, bytes);
  } else if (to >= 0) {
    internal::DevicePlace place = internal::place_of(to, board_->counts);
    sent.push_back({place.process, board_->tag(own, place.number), in, bytes});
  }
  if (from >= 0 && !board_->has(from)) {
    internal::DevicePlace place = internal::place_of(from, board_->counts);
    received.push_back({place.process, board_->tag(place.number, own), out, bytes});
  }
  Result<void> done;
  if (!sent.empty() || !received.empty()) done = board_->processes.exchange(sent, received);
  if (from >= 0 && board_->has(from)) {
    Result<void> copied = board_->fetch(from, rank_, out, bytes);
    if (done.ok()) done = std::move(copied);
  }
  if (letter) board_->wait_until_taken(*letter);
  return done;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_device_communicators(ProcessCommunicator& processes,
                                                                     std::vector<int> counts) {
  auto board = std::make_shared<DeviceBoard>(processes, std::move(counts));
  std::vector<std::unique_ptr<Communicator>> result;
  for (int i = 0; i < board->counts[static_cast<std::size_t>(processes.rank())]; ++i)
    result.push_back(std::make_unique<DeviceCommunicator>(board, board->first + i));
  return result;
}

}  // namespace meshard
