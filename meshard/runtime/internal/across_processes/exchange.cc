// Values that go from process to process through host memory: each process receives the parts that
// it wants, each once, from the processes that have them.
// Tested in tests/processes/check_pipelines.py.
#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/base/awaiting.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/across_processes/across_processes.h"
#include "meshard/runtime/internal/copy_pool.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/move_plan.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

/// A part of a value that a process wants.
struct WantedPart {
  int rank = 0;
  Box box;
  /// In process `rank`: where the part goes, the first elements of a row-major array of `shape`.
  /// Elements outside of the part are left as they are.
  void* destination = nullptr;
  Shape shape = {};
  /// In process `rank`: called once when the part is there, or will never be, on the thread of the
  /// messages. Until then the destination is in use.
  std::function<void(const Result<void>&)> done = {};
};

// The process of each position of the value's mesh.
std::vector<int> processes_by_position(const pjrt::Client& client, const DeviceArray& source) {
  std::vector<int> processes;
  for (std::int64_t id : source.sharding()->mesh().device_ids())
    processes.push_back(client.find_device(id)->process_index());
  return processes;
}

void copy(const void* from, const Shape& from_shape, const Box& from_box, void* to,
          const Shape& to_shape, const Box& to_box, std::size_t element) {
  StridedCopy plan = plan_copy(from, from_shape, from_box, to, to_shape, to_box, element);
  CopyPool::get().run(std::span(&plan, 1));
}

// A part that this process receives, on the thread of the messages.
class Arriving {
 public:
  Arriving(WantedPart part, std::size_t element) : part_(std::move(part)), element_(element) {}
  void expect() { ++missing_; }
  // Where a piece goes, if it can be received there.
  std::byte* place_of(const Box& piece) const {
    std::optional<std::int64_t> at = contiguous_at(relative_to(part_.box, piece), part_.shape);
    return at ? static_cast<std::byte*>(part_.destination) +
                    static_cast<std::size_t>(*at) * element_
              : nullptr;
  }
  void take(const Box& piece, const void* from, const Shape& shape, const Box& box) {
    copy(from, shape, box, part_.destination, part_.shape, relative_to(part_.box, piece), element_);
  }
  // A piece is there, or will never be.
  void arrived(const Result<void>& outcome) {
    if (!outcome.ok() && outcome_.ok()) outcome_ = outcome;
    if (--missing_ == 0) part_.done(outcome_);
  }
  bool is_complete() const { return missing_ == 0; }
  void end() { part_.done({}); }

 private:
  WantedPart part_;
  std::size_t element_;
  std::size_t missing_ = 0;
  Result<void> outcome_;
};

// A shard of this process, of which other processes and parts in this one need pieces.
struct Leaving {
  struct Piece {
    Box in_shard, in_value;
    int to = -1, tag = 0;                 // of another process
    std::shared_ptr<Arriving> part = {};  // of this one
  };
  HostArray bytes;
  std::vector<Piece> pieces;
};

// The shard is in host memory.
void send_pieces(BackgroundMessages& messages, const std::shared_ptr<Leaving>& shard,
                 std::size_t element) {
  const Shape& shape = shard->bytes.shape();
  for (const Leaving::Piece& piece : shard->pieces) {
    if (piece.part) {
      piece.part->take(piece.in_value, shard->bytes.bytes(), shape, piece.in_shard);
      piece.part->arrived({});
      continue;
    }
    const Shape piece_shape = box_shape(piece.in_shard);
    const auto size = static_cast<std::size_t>(piece_shape.size()) * element;
    if (std::optional<std::int64_t> at = contiguous_at(piece.in_shard, shape)) {
      const std::byte* begin = shard->bytes.bytes() + static_cast<std::size_t>(*at) * element;
      messages.send({piece.to, piece.tag, begin, size}, shard);
      continue;
    }
    auto packed =
        std::make_shared<HostArray>(HostArray::uninitialized({shard->bytes.dtype(), piece_shape}));
    copy(shard->bytes.bytes(), shape, piece.in_shard, packed->mutable_bytes(), piece_shape,
         whole_box(piece_shape), element);
    messages.send({piece.to, piece.tag, packed->bytes(), size}, packed);
  }
}

// Begins to copy the shard to the host, and sends its pieces when they are there.
Result<void> start_leaving(BackgroundMessages& messages, const pjrt::BufferView& buffer,
                           DType dtype, const std::shared_ptr<Leaving>& shard) {
  const std::size_t element = meshard::size_in_bytes(dtype);
  shard->bytes = HostArray::uninitialized({dtype, Shape(buffer.dimensions())});
  auto size = static_cast<std::size_t>(shard->bytes.size_in_bytes());
  MESHARD_ASSIGN_OR_RETURN(pjrt::Event copied,
                           buffer.copy_to_host(std::span(shard->bytes.mutable_bytes(), size)));
  internal::count(internal::counters().buffers_read);
  internal::count(internal::counters().bytes_read, size);
  return copied.on_ready(
      [&messages, shard, element](const Result<void>& outcome) {
        messages.run([&messages, shard, element, outcome] {
          if (outcome.ok()) return send_pieces(messages, shard, element);
          messages.fail(outcome.error());
          for (const Leaving::Piece& piece : shard->pieces)
            if (piece.part) piece.part->arrived(outcome);
        });
      },
      pjrt::CallbackThread::kPlugins);
}

// The processes that have the value or want parts of it.
std::set<int> ranks_of(std::span<const int> holders, std::span<const WantedPart> wanted) {
  std::set<int> all(holders.begin(), holders.end());
  for (const WantedPart& part : wanted) all.insert(part.rank);
  return all;
}

std::string what_is_moved(const DeviceArray& source) {
  return cat("transfer of ", source.type(), " between processes");
}

void start_moves(AcrossProcesses& across, const DeviceArray& source, std::span<const int> holders,
                 std::span<const WantedPart> wanted, SourceLocation where) {
  BackgroundMessages& messages = across.messages();
  const int own = across.rank();
  const DType dtype = source.type().dtype;
  const std::size_t element = meshard::size_in_bytes(dtype);
  std::vector<MoveTarget> parts;
  std::vector<std::shared_ptr<Arriving>> arriving;
  for (const WantedPart& part : wanted) {
    parts.push_back({part.rank, part.box});
    arriving.push_back(part.rank == own ? std::make_shared<Arriving>(part, element) : nullptr);
  }
  const Tiling tiling(*source.sharding(), source.type().shape);
  const std::vector<Move> moves = plan_moves(tiling, holders, parts);
  for (const Move& move : moves)
    if (arriving[move.to]) arriving[move.to]->expect();
  for (const auto& part : arriving)
    if (part && part->is_complete()) messages.run([part] { part->end(); });  // it has no elements
  std::map<std::int64_t, std::shared_ptr<Leaving>> leaving;                  // by position
  for (const Move& move : moves) {
    const std::shared_ptr<Arriving>& part = arriving[move.to];
    const int from = holders[static_cast<std::size_t>(move.from)], to = parts[move.to].place;
    if (from == own) {
      std::shared_ptr<Leaving>& shard = leaving[move.from];
      if (!shard) shard = std::make_shared<Leaving>();
      const Box tile = box_of(tiling.sharding(), source.type().shape, move.from);
      shard->pieces.push_back({relative_to(tile, move.piece), move.piece, to,
                               part ? 0 : messages.next_tag_to(to), part});
    } else if (part) {
      const Shape shape = box_shape(move.piece);
      const auto size = static_cast<std::size_t>(shape.size()) * element;
      std::string what = cat(source.type());
      if (std::byte* place = part->place_of(move.piece)) {
        messages.receive(from, place, size, std::move(what),
                         [part](const Result<void>& outcome) { part->arrived(outcome); });
        continue;
      }
      auto packed = std::make_shared<HostArray>(HostArray::uninitialized({dtype, shape}));
      messages.receive(from, packed->mutable_bytes(), size, std::move(what),
                       [part, packed, piece = move.piece](const Result<void>& outcome) {
                         if (outcome.ok())
                           part->take(piece, packed->bytes(), packed->shape(),
                                      whole_box(packed->shape()));
                         part->arrived(outcome);
                       });
    }
  }
  std::optional<Error> failed;
  for (const auto& [position, shard] : leaving) {
    Result<void> begun =
        start_leaving(messages, source.buffers()[*source.shard_at(position)], dtype, shard);
    if (begun.ok()) continue;
    failed = begun.error();
    messages.fail(*failed);
    for (const Leaving::Piece& piece : shard->pieces)
      if (piece.part) messages.run([part = piece.part, error = *failed] { part->arrived(error); });
  }
  if (failed) throw failed->at(where);
}

// Waits for a part that this process wants.
class Awaited {
 public:
  std::function<void(const Result<void>&)> done() {
    return [promise = promise_](const Result<void>& outcome) { promise->set_value(outcome); };
  }
  Result<void> await() { return promise_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<Result<void>>> promise_ =
      std::make_shared<std::promise<Result<void>>>();
};

// While alive, the history says that this process waits for the others.
class CommunicatingScope {
 public:
  CommunicatingScope(LaunchHistory& history, std::string_view what) : history_(history) {
    history_.begin_collective("transfer", what);
  }
  ~CommunicatingScope() { history_.end_collective(); }
  CommunicatingScope(const CommunicatingScope&) = delete;
  CommunicatingScope& operator=(const CommunicatingScope&) = delete;

 private:
  LaunchHistory& history_;
};

// Sends the bytes of process `root` to all of `group`: each process that has them sends them to at
// most log2(n) others.
Result<void> broadcast(AcrossProcesses& across, std::span<const int> group, int root, void* data,
                       std::size_t bytes, const std::string& what) {
  BackgroundMessages& messages = across.messages();
  const std::size_t size = group.size();
  const auto place = [&](int rank) {
    return static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin());
  };
  const std::size_t first = place(root), own = (place(across.rank()) + size - first) % size;
  const auto at = [&](std::size_t number) { return group[(number + first) % size]; };
  std::size_t step = 1;
  for (; step < size && (own & step) == 0; step *= 2) {
  }
  if (own != 0) {
    Awaited received;
    messages.receive(at(own - step), data, bytes, what, received.done());
    MESHARD_RETURN_IF_ERROR(received.await());
  }
  std::shared_ptr<HostArray> kept;  // the caller's memory may be gone before it is sent
  while ((step /= 2) > 0) {
    if (own + step >= size) continue;
    if (!kept) {
      kept = std::make_shared<HostArray>(
          HostArray::uninitialized({DType::u8, {static_cast<std::int64_t>(bytes)}}));
      std::copy_n(static_cast<const std::byte*>(data), bytes, kept->mutable_bytes());
    }
    const int to = at(own + step);
    messages.send({to, messages.next_tag_to(to), kept->bytes(), bytes}, kept);
  }
  return {};
}

// Brings the whole value to process `root`, and then to all of `group`.
void gather_to(AcrossProcesses& across, const DeviceArray& source, int root,
               std::span<const int> group, void* destination, SourceLocation where) {
  const std::vector<int> holders = processes_by_position(across.client(), source);
  Awaited whole;
  const TensorType& type = source.type();
  WantedPart part{root, whole_box(type.shape), destination, type.shape, whole.done()};
  std::set<int> ranks = ranks_of(holders, std::span(&part, 1));
  ranks.insert(group.begin(), group.end());
  if (!ranks.contains(across.rank())) return;
  internal::HostSpan span;
  if (internal::records_events()) span.begin("exchange", type.to_string(), where);
  const std::string what = what_is_moved(source);
  across.run().entering(cat(what, ", ", where));
  auto communicate = [&]() -> Result<void> {
    internal::AwaitingScope awaiting({.what = "work of its devices"});
    CommunicatingScope communicating(*across.order().history(), cat(what, ", ", where));
    try {
      start_moves(across, source, holders, std::span(&part, 1), where);
    } catch (const Error& error) {                     // from reading a shard
      if (across.rank() == root) (void)whole.await();  // the destination is in use until then
      return error;
    }
    if (across.rank() == root) {
      MESHARD_RETURN_IF_ERROR(whole.await());
    }
    if (group.size() < 2) return {};
    return broadcast(across, group, root, destination, static_cast<std::size_t>(type.bytes()),
                     type.to_string());
  };
  Result<void> done = across.in_order({ranks.begin(), ranks.end()}, what, where, communicate);
  across.run().entering("");
  if (done.ok()) return;
  across.give_up(done.error());  // the others wait for what this process does not send
  throw done.error().at(where).with_note(
      cat("while bringing ", type, " from ", source.placement(), " to other processes"));
}

// Brings parts of a value to processes that want them, from those that have them; waits for
// nothing, not even for the value. Called by all of these processes, with equal lists except for
// the destinations, at the same place in their order of transfers; it does nothing in others. A
// part that its process has is copied there. All others are sent directly, each at once when the
// sender has it.
// @pre the value's sharding has no unreduced axes
// @error an earlier failure of the communication; those of reading the value
void start_exchange(AcrossProcesses& across, const DeviceArray& source,
                    std::span<const WantedPart> wanted, SourceLocation where) {
  const std::vector<int> holders = processes_by_position(across.client(), source);
  const std::set<int> ranks = ranks_of(holders, wanted);
  if (!ranks.contains(across.rank())) return;
  if (std::optional<Error> failed = across.messages().failure())
    throw failed->at(where).with_note("in an earlier transfer between processes");
  internal::HostSpan span;
  if (internal::records_events()) span.begin("exchange", source.type().to_string(), where);
  across.record({ranks.begin(), ranks.end()}, what_is_moved(source), where);
  start_moves(across, source, holders, wanted, where);
}

// A tile of this process, from the first message to the copies on its devices.
struct ComingTile {
  explicit ComingTile(const TensorType& type) : block(HostArray::zeros(type)) {}
  HostArray block;  // with the padding of the shard
  std::vector<pjrt::HostToDeviceTransfer> devices;
};

// On the thread of the messages.
void give_to_devices(const std::shared_ptr<ComingTile>& tile, const Result<void>& outcome) {
  std::span bytes(tile->block.bytes(), static_cast<std::size_t>(tile->block.size_in_bytes()));
  for (const pjrt::HostToDeviceTransfer& device : tile->devices) {
    Result<void> done = outcome;
    if (done.ok()) {
      Result<pjrt::Event> sent = device.send(0, bytes, 0, /*is_last=*/true);
      // The plugin reads the block until then.
      done = sent.ok() ? sent->on_ready([tile](const Result<void>&) {}) : sent.error();
    }
    if (!done.ok()) (void)device.set_error(0, done.error());
  }
}

}  // namespace

Result<std::vector<pjrt::Buffer>> AcrossProcesses::receive(const DeviceArray& source,
                                                           const Sharding& target,
                                                           SourceLocation where) {
  const TensorType& type = source.type();
  const TensorType shard_type = shard_type_of(type, target);
  const pjrt::ArrayType array_type{element_type_of(type.dtype),
                                   {shard_type.shape.begin(), shard_type.shape.end()}};
  std::vector<WantedPart> wanted;
  std::set<std::pair<int, std::int64_t>> known;               // process and tile
  std::map<std::int64_t, std::shared_ptr<ComingTile>> tiles;  // of this process
  std::vector<pjrt::Buffer> buffers;
  for (std::int64_t p = 0; p < target.mesh().size(); ++p) {
    const pjrt::Device& device = device_of(client(), target.mesh().device_id(p), where);
    const std::int64_t number = tile_number(target, p);
    const bool is_new = known.insert({device.process_index(), number}).second;
    if (is_new)
      wanted.push_back(
          {device.process_index(), box_of(target, type.shape, p), nullptr, shard_type.shape, {}});
    if (!device.addressable()) continue;
    std::shared_ptr<ComingTile>& tile = tiles[number];
    if (is_new) {
      tile = std::make_shared<ComingTile>(shard_type);
      wanted.back().destination = tile->block.mutable_bytes();
      wanted.back().done = [tile](const Result<void>& outcome) { give_to_devices(tile, outcome); };
    }
    internal::TransferSpan span;
    if (internal::records_events())
      span.begin("receive", type.to_string(), device,
                 static_cast<std::uint64_t>(shard_type.bytes()), where);
    MESHARD_ASSIGN_OR_RETURN(pjrt::HostToDeviceTransfer transfer,
                             client().begin_transfer(std::span(&array_type, 1), device));
    MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer buffer, transfer.take_buffer(0));
    span.end_when_ready(buffer);
    tile->devices.push_back(std::move(transfer));
    buffers.push_back(std::move(buffer));
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved,
                    static_cast<std::uint64_t>(shard_type.bytes()));
  }
  start_exchange(*this, source, wanted, where);
  return buffers;
}

bool AcrossProcesses::gather(const DeviceArray& source, int to, void* destination,
                             SourceLocation where) {
  const std::vector<int> holders = processes_of(client(), source.sharding()->mesh());
  std::vector<int> receivers;
  if (to == kAllProcesses) {
    receivers.resize(static_cast<std::size_t>(run().size()));
    std::iota(receivers.begin(), receivers.end(), 0);
  } else if (to == kProcessesOfValue) {
    if (std::ranges::find(holders, rank()) == holders.end())
      throw Error(ErrorCode::kFailedPrecondition,
                  cat("[tensor] the value ", source.type(), " is on devices of ",
                      names_of_processes(holders), " only, and this is process ", rank(),
                      ": gather() brings it to all processes"),
                  where);
    receivers = holders;
  }
  gather_to(*this, source, to >= 0 ? to : holders.front(), receivers, destination, where);
  return true;
}

}  // namespace meshard
