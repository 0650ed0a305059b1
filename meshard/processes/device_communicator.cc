#include "meshard/processes/device_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>

#include "meshard/base/cat.h"
#include "meshard/processes/check_call.h"
#include "meshard/processes/internal/device_meeting.h"

namespace meshard {
namespace {

using internal::DeviceCall;
using internal::DeviceGroup;
using internal::DeviceMeeting;
using internal::DeviceMemory;
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

class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(std::shared_ptr<DeviceBoard> board, int rank)
      : board_(std::move(board)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return board_->size; }

  Result<void> all_reduce(std::span<const int> group, Reduction op, DType type, const void* in,
                          void* out, std::size_t count) override;
  Result<void> all_gather(std::span<const int> group, const void* in, void* out,
                          std::size_t bytes) override;
  Result<void> reduce_scatter(std::span<const int> group, Reduction op, DType type, const void* in,
                              void* out, std::size_t count) override;
  Result<void> all_to_all(std::span<const int> group, const void* in, void* out,
                          std::size_t bytes) override;
  Result<void> broadcast(std::span<const int> group, int root_rank, void* data,
                         std::size_t bytes) override;
  Result<void> permute(int to, int from, const void* in, void* out, std::size_t bytes) override;

 private:
  /// A group that this device has been in.
  struct Place {
    std::shared_ptr<DeviceMeeting> meeting;
    std::size_t position;  ///< in the group
    std::size_t member;    ///< among those in this process
  };
  Result<const Place*> find(std::span<const int> group);
  Result<void> reduce_across(const DeviceGroup& group, Reduction op, DType type, std::byte* data,
                             std::size_t count);

  std::shared_ptr<DeviceBoard> board_;
  int rank_;
  std::deque<Place> places_;  // few; found by comparing
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

Result<const DeviceCommunicator::Place*> DeviceCommunicator::find(std::span<const int> group) {
  for (const Place& place : places_)
    if (std::ranges::equal(place.meeting->group().devices, group)) return &place;
  MESHARD_ASSIGN_OR_RETURN(int own, check_group(group, rank_, size()));
  Place place{.meeting = nullptr, .position = static_cast<std::size_t>(own), .member = 0};
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

/// Combines one operand of each process of the group, in their order.
Result<void> DeviceCommunicator::reduce_across(const DeviceGroup& group, Reduction op, DType type,
                                               std::byte* data, std::size_t count) {
  const std::size_t processes = group.processes.size(), width = size_in_bytes(type);
  if (processes == 1) return {};
  // No other device of these processes communicates now, so their collectives cannot mix.
  if (group.is_whole)
    return board_->processes.all_reduce(group.processes, op, type, data, data, count);
  GroupMessages messages(*board_, group);
  auto part = [&](std::size_t p) {
    return count * width <= kSentWhole ? Part{0, count} : part_of(count, processes, p);
  };
  const Part own = part(group.here);
  DeviceMemory received((processes - 1) * own.size() * width);
  std::vector<const void*> blocks(processes, data + own.begin * width);
  std::byte* at = received.data();
  for (std::size_t p = 0; p < processes; ++p) {
    if (p == group.here) continue;
    messages.send(p, data + part(p).begin * width, part(p).size() * width);
    messages.receive(p, at, own.size() * width);
    blocks[p] = at;
    at += own.size() * width;
  }
  MESHARD_RETURN_IF_ERROR(messages.exchange());
  combine_blocks(op, type, blocks, data + own.begin * width, own.size());
  if (own.size() == count) return {};
  for (std::size_t p = 0; p < processes; ++p) {
    if (p == group.here) continue;
    messages.send(p, data + own.begin * width, own.size() * width);
    messages.receive(p, data + part(p).begin * width, part(p).size() * width);
  }
  return messages.exchange();
}

Result<void> DeviceCommunicator::all_reduce(std::span<const int> group, Reduction op, DType type,
                                            const void* in, void* out, std::size_t count) {
  MESHARD_RETURN_IF_ERROR(check_reduction(op, type));
  MESHARD_ASSIGN_OR_RETURN(std::size_t bytes, check_size(1, count, size_in_bytes(type)));
  MESHARD_ASSIGN_OR_RETURN(const Place* place, find(group));
  if (group.size() == 1) return copy_bytes(out, in, bytes), Result<void>();
  const DeviceGroup& devices = place->meeting->group();
  const DType wide = wide_type(type);
  auto round =
      place->meeting->join(place->member, {DeviceCall::Kind::kAllReduce, op, type, count}, in);
  auto allocate = [&] { round->shared = DeviceMemory(count * size_in_bytes(wide)); };
  auto across = [&] { return reduce_across(devices, op, wide, round->shared.data(), count); };
  if (bytes <= kCombinedByOne) {
    MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
      allocate();
      combine_blocks_wide(op, type, round->operands(), round->shared.data(), count);
      return across();
    }));
  } else {
    MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] { return allocate(), Result<void>(); }));
    Part own = part_of(count, devices.num_here(), place->member);
    std::vector<const void*> blocks;
    for (std::size_t m = 0; m < devices.num_here(); ++m)
      blocks.push_back(round->operand(m) + own.begin * size_in_bytes(type));
    combine_blocks_wide(op, type, blocks, round->shared.data() + own.begin * size_in_bytes(wide),
                        own.size());
    MESHARD_RETURN_IF_ERROR(round->meet(devices, across));
  }
  if (wide == type)
    copy_bytes(out, round->shared.data(), bytes);
  else
    round_wide(type, round->shared.data(), out, count);
  return {};
}

// The operands are sent as they are, and stay until all members here have read them.
Result<void> DeviceCommunicator::all_gather(std::span<const int> group, const void* in, void* out,
                                            std::size_t bytes) {
  MESHARD_RETURN_IF_ERROR(check_size(group.size(), bytes, 1));
  MESHARD_ASSIGN_OR_RETURN(const Place* place, find(group));
  if (group.size() == 1) return copy_bytes(out, in, bytes), Result<void>();
  const DeviceGroup& devices = place->meeting->group();
  auto round = place->meeting->join(place->member,
                                    {.kind = DeviceCall::Kind::kAllGather, .count = bytes}, in);
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    round->received = DeviceMemory((devices.size() - devices.num_here()) * bytes);
    GroupMessages messages(*board_, devices);
    for_each_other(devices, [&](std::size_t p, std::size_t offset) {
      for (const void* operand : round->operands()) messages.send(p, operand, bytes);
      for (std::size_t m = 0; m < devices.positions[p].size(); ++m)
        messages.receive(p, round->received.data() + (offset + m) * bytes, bytes);
    });
    return messages.exchange();
  }));
  auto to = [&](std::size_t position) { return static_cast<std::byte*>(out) + position * bytes; };
  for (std::size_t m = 0; m < devices.num_here(); ++m)
    copy_bytes(to(devices.positions[devices.here][m]), round->operand(m), bytes);
  for_each_other(devices, [&](std::size_t p, std::size_t offset) {
    for (std::size_t m = 0; m < devices.positions[p].size(); ++m)
      copy_bytes(to(devices.positions[p][m]), round->received.data() + (offset + m) * bytes, bytes);
  });
  return round->meet(devices);
}

// Each process combines the operands of its members, and sends to each other process the blocks of
// that one's members.
Result<void> DeviceCommunicator::reduce_scatter(std::span<const int> group, Reduction op,
                                                DType type, const void* in, void* out,
                                                std::size_t count) {
  MESHARD_RETURN_IF_ERROR(check_reduction(op, type));
  MESHARD_RETURN_IF_ERROR(check_size(group.size(), count, size_in_bytes(type)));
  MESHARD_ASSIGN_OR_RETURN(const Place* place, find(group));
  const std::size_t bytes = count * size_in_bytes(type);
  if (group.size() == 1) return copy_bytes(out, in, bytes), Result<void>();
  const DeviceGroup& devices = place->meeting->group();
  const DType wide = wide_type(type);
  const std::size_t block = count * size_in_bytes(wide), here = devices.num_here();
  const std::size_t others = devices.size() - here;
  auto round =
      place->meeting->join(place->member, {DeviceCall::Kind::kReduceScatter, op, type, count}, in);
  // `shared` has the blocks of other processes' members, then those of the members here.
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    round->shared = DeviceMemory(devices.size() * block);
    round->received = DeviceMemory((devices.processes.size() - 1) * here * block);
    return Result<void>();
  }));
  const Part own = part_of(count, here, place->member);
  auto combine_block = [&](std::size_t position, std::size_t offset) {
    std::vector<const void*> blocks;
    for (std::size_t m = 0; m < here; ++m)
      blocks.push_back(round->operand(m) + position * bytes + own.begin * size_in_bytes(type));
    combine_blocks_wide(op, type, blocks,
                        round->shared.data() + offset * block + own.begin * size_in_bytes(wide),
                        own.size());
  };
  for_each_other(devices, [&](std::size_t p, std::size_t offset) {
    for (std::size_t m = 0; m < devices.positions[p].size(); ++m)
      combine_block(devices.positions[p][m], offset + m);
  });
  for (std::size_t m = 0; m < here; ++m)
    combine_block(devices.positions[devices.here][m], others + m);
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    GroupMessages messages(*board_, devices);
    std::byte* at = round->received.data();
    for_each_other(devices, [&](std::size_t p, std::size_t offset) {
      messages.send(p, round->shared.data() + offset * block, devices.positions[p].size() * block);
      messages.receive(p, at, here * block);
      at += here * block;
    });
    return messages.exchange();
  }));
  std::byte* mine = round->shared.data() + (others + place->member) * block;
  std::vector<const void*> blocks(devices.processes.size(), mine);
  const std::byte* from = round->received.data() + place->member * block;
  for_each_other(devices, [&](std::size_t p, std::size_t) {
    blocks[p] = from;
    from += here * block;
  });
  combine_blocks(op, wide, blocks, mine, count);
  if (wide == type)
    copy_bytes(out, mine, bytes);
  else
    round_wide(type, mine, out, count);
  return {};
}

// `shared` has the blocks for other processes, by process, sender and receiver; `received` those
// from them, likewise.
Result<void> DeviceCommunicator::all_to_all(std::span<const int> group, const void* in, void* out,
                                            std::size_t bytes) {
  MESHARD_RETURN_IF_ERROR(check_size(group.size(), bytes, 1));
  MESHARD_ASSIGN_OR_RETURN(const Place* place, find(group));
  if (group.size() == 1) return copy_bytes(out, in, bytes), Result<void>();
  const DeviceGroup& devices = place->meeting->group();
  const std::size_t here = devices.num_here(), others = devices.size() - here;
  auto round = place->meeting->join(place->member,
                                    {.kind = DeviceCall::Kind::kAllToAll, .count = bytes}, in);
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    round->shared = DeviceMemory(here * others * bytes);
    round->received = DeviceMemory(here * others * bytes);
    return Result<void>();
  }));
  auto from = static_cast<const std::byte*>(in);
  auto to = static_cast<std::byte*>(out);
  for_each_other(devices, [&](std::size_t p, std::size_t offset) {
    const std::vector<std::size_t>& there = devices.positions[p];
    std::byte* at = round->shared.data() + (offset * here + place->member * there.size()) * bytes;
    for (std::size_t m = 0; m < there.size(); ++m)
      copy_bytes(at + m * bytes, from + there[m] * bytes, bytes);
  });
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    GroupMessages messages(*board_, devices);
    for_each_other(devices, [&](std::size_t p, std::size_t offset) {
      std::size_t begin = offset * here * bytes, size = devices.positions[p].size() * here * bytes;
      messages.send(p, round->shared.data() + begin, size);
      messages.receive(p, round->received.data() + begin, size);
    });
    return messages.exchange();
  }));
  for (std::size_t m = 0; m < here; ++m)
    copy_bytes(to + devices.positions[devices.here][m] * bytes,
               round->operand(m) + place->position * bytes, bytes);
  for_each_other(devices, [&](std::size_t p, std::size_t offset) {
    const std::vector<std::size_t>& there = devices.positions[p];
    for (std::size_t m = 0; m < there.size(); ++m)
      copy_bytes(to + there[m] * bytes,
                 round->received.data() + (offset * here + m * here + place->member) * bytes,
                 bytes);
  });
  return round->meet(devices);
}

Result<void> DeviceCommunicator::broadcast(std::span<const int> group, int root_rank, void* data,
                                           std::size_t bytes) {
  MESHARD_ASSIGN_OR_RETURN(const Place* place, find(group));
  const DeviceGroup& devices = place->meeting->group();
  auto root = static_cast<std::size_t>(std::ranges::find(group, root_rank) - group.begin());
  if (root == group.size())
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] device ", root_rank, " is not in the group of a broadcast"));
  if (group.size() == 1) return {};
  std::size_t process = 0, root_member = 0;
  for (std::size_t p = 0; p < devices.positions.size(); ++p)
    for (std::size_t m = 0; m < devices.positions[p].size(); ++m)
      if (devices.positions[p][m] == root) process = p, root_member = m;
  auto round = place->meeting->join(
      place->member, {.kind = DeviceCall::Kind::kBroadcast, .count = bytes, .root = root_rank},
      data);
  const bool is_here = process == devices.here;
  MESHARD_RETURN_IF_ERROR(round->meet(devices, [&] {
    GroupMessages messages(*board_, devices);
    if (is_here) {
      for_each_other(devices, [&](std::size_t p, std::size_t) {
        messages.send(p, round->operand(root_member), bytes);
      });
    } else {
      round->received = DeviceMemory(bytes);
      messages.receive(process, round->received.data(), bytes);
    }
    return messages.exchange();
  }));
  copy_bytes(data, is_here ? round->operand(root_member) : round->received.data(), bytes);
  return is_here ? round->meet(devices) : Result<void>();
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
