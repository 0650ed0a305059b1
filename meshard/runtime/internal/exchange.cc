// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/exchange.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "meshard/array/box_overlap.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

// One tile of the value: the processes that hold it, and where.
struct HeldTile {
  Box box;
  std::vector<std::pair<int, std::int64_t>> holders;  // process, position
};

std::vector<HeldTile> held_tiles(const pjrt::Client& client, const DeviceArray& source) {
  const Sharding& sharding = *source.sharding();
  std::map<std::int64_t, HeldTile> by_number;
  for (std::int64_t p = 0; p < sharding.mesh().size(); ++p) {
    HeldTile& tile = by_number[tile_number(sharding, p)];
    if (tile.holders.empty()) tile.box = box_of(sharding, source.type().shape, p);
    int process = client.find_device(sharding.mesh().device_id(p))->process_index();
    tile.holders.push_back({process, p});
  }
  std::vector<HeldTile> tiles;
  for (auto& [number, tile] : by_number) tiles.push_back(std::move(tile));
  return tiles;
}

class Exchange {
 public:
  Exchange(AcrossProcesses& across, const DeviceArray& source, SourceLocation where)
      : across_(across),
        source_(source),
        where_(where),
        element_(meshard::size_in_bytes(source.type().dtype)),
        tiles_(held_tiles(across.client(), source)) {}

  // The processes that have the value or want parts of it.
  std::set<int> ranks(std::span<const WantedPart> wanted) const {
    std::set<int> all;
    for (const WantedPart& part : wanted) all.insert(part.rank);
    for (const HeldTile& tile : tiles_)
      for (const auto& [process, position] : tile.holders) all.insert(process);
    return all;
  }

  // All pieces at the same time.
  Result<void> run(ProcessCommunicator& communicator, std::span<const WantedPart> wanted) {
    for (const WantedPart& part : wanted)
      for (const HeldTile& tile : tiles_)
        if (std::optional<Box> piece = overlap(part.box, tile.box)) add(part, tile, *piece);
    MESHARD_RETURN_IF_ERROR(communicator.exchange(sent_, received_));
    for (const Arrival& each : arrivals_)
      copy_to(*each.part, each.piece, each.packed.bytes(), each.packed.shape(),
              whole_box(each.packed.shape()));
    return {};
  }

 private:
  // Of MPI's, the largest that is always allowed; the communicators of devices count from 0.
  static constexpr int kTag = 32767;

  struct Arrival {
    const WantedPart* part;
    Box piece;
    HostArray packed;
  };

  void add(const WantedPart& part, const HeldTile& tile, const Box& piece) {
    auto own =
        std::ranges::find(tile.holders, part.rank, [](const auto& each) { return each.first; });
    // Receivers take copies from different holders.
    auto [holder, position] =
        own == tile.holders.end()
            ? tile.holders[static_cast<std::size_t>(part.rank) % tile.holders.size()]
            : *own;
    bool sends = holder == across_.rank(), receives = part.rank == across_.rank();
    if (!sends && !receives) return;
    if (sends && receives) {
      const HostArray& shard = shard_at(position);
      copy_to(part, piece, shard.bytes(), shard.shape(), relative_to(tile.box, piece));
      return;
    }
    HostArray packed = HostArray::uninitialized({source_.type().dtype, box_shape(piece)});
    auto bytes = static_cast<std::size_t>(packed.size_in_bytes());
    if (receives) {
      received_.push_back({holder, kTag, packed.mutable_bytes(), bytes});
      arrivals_.push_back({&part, piece, std::move(packed)});
      return;
    }
    const HostArray& shard = shard_at(position);
    plan_gather(shard.bytes(), shard.shape(), relative_to(tile.box, piece), element_,
                packed.mutable_bytes())
        .run();
    sent_.push_back({part.rank, kTag, packed.bytes(), bytes});
    departures_.push_back(std::move(packed));
  }

  void copy_to(const WantedPart& part, const Box& piece, const void* from, const Shape& from_shape,
               const Box& from_box) {
    plan_copy(from, from_shape, from_box, part.destination, part.shape,
              relative_to(part.box, piece), element_)
        .run();
  }

  // Read once.
  const HostArray& shard_at(std::int64_t position) {
    std::size_t i = *source_.shard_at(position);
    auto known = shards_.find(i);
    if (known == shards_.end()) known = shards_.emplace(i, source_.padded_shard(i, where_)).first;
    return known->second;
  }

  AcrossProcesses& across_;
  const DeviceArray& source_;
  SourceLocation where_;
  std::size_t element_;
  std::vector<HeldTile> tiles_;
  std::map<std::size_t, HostArray> shards_;
  std::vector<OutgoingMessage> sent_;
  std::vector<IncomingMessage> received_;
  std::vector<HostArray> departures_;
  std::vector<Arrival> arrivals_;
};

// Exchanges, and then sends what process `root` received to all of `group`.
void run_exchange(AcrossProcesses& across, const DeviceArray& source,
                  std::span<const WantedPart> wanted, SourceLocation where,
                  std::span<const int> group = {}, int root = -1, void* data = nullptr) {
  Exchange exchange(across, source, where);
  std::set<int> ranks = exchange.ranks(wanted);
  ranks.insert(group.begin(), group.end());
  if (!ranks.contains(across.rank())) return;
  internal::HostSpan span;
  if (internal::records_events()) span.begin("exchange", source.type().to_string(), where);
  const std::string what = cat("transfer of ", source.type(), " between processes");
  across.run().entering(cat(what, ", ", where));
  auto communicate = [&](ProcessCommunicator& communicator) -> Result<void> {
    try {
      MESHARD_RETURN_IF_ERROR(exchange.run(communicator, wanted));
    } catch (const Error& error) {  // from reading a shard
      return error;
    }
    if (group.size() < 2) return {};
    return communicator.broadcast(group, root, data,
                                  static_cast<std::size_t>(source.type().bytes()));
  };
  Result<void> done = across.in_order({ranks.begin(), ranks.end()}, what, where, communicate);
  across.run().entering("");
  if (!done.ok())
    throw done.error().at(where).with_note(
        cat("while bringing ", source.type(), " from ", source.placement(), " to other processes"));
}

WantedPart whole_value(const DeviceArray& source, int rank, void* destination) {
  return {rank, whole_box(source.type().shape), destination, source.type().shape};
}

}  // namespace

void exchange(AcrossProcesses& across, const DeviceArray& source,
              std::span<const WantedPart> wanted, SourceLocation where) {
  run_exchange(across, source, wanted, where);
}

void gather_across(AcrossProcesses& across, const DeviceArray& source, void* destination,
                   SourceLocation where) {
  std::vector<int> ranks = processes_of(across.client(), source.sharding()->mesh());
  if (std::ranges::find(ranks, across.rank()) == ranks.end())
    throw Error(
        ErrorCode::kFailedPrecondition,
        cat("[tensor] the value ", source.type(), " is on devices of ", names_of_processes(ranks),
            " only, and this is process ", across.rank(), ": gather() brings it to all processes"),
        where);
  WantedPart all_of_it = whole_value(source, ranks.front(), destination);
  run_exchange(across, source, std::span(&all_of_it, 1), where, ranks, ranks.front(), destination);
}

void gather_to_process(AcrossProcesses& across, const DeviceArray& source, int to,
                       void* destination, SourceLocation where) {
  std::vector<int> holders = processes_of(across.client(), source.sharding()->mesh());
  int root = to >= 0 ? to : holders.front();
  WantedPart all_of_it = whole_value(source, root, destination);
  std::vector<int> all;
  if (to < 0) {
    all.resize(static_cast<std::size_t>(across.run().size()));
    std::iota(all.begin(), all.end(), 0);
  }
  run_exchange(across, source, std::span(&all_of_it, 1), where, all, root, destination);
}

}  // namespace meshard
