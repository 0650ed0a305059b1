// Tested in meshard/runtime/transfer_test.cc.
#include "meshard/runtime/internal/transfer_by_pieces.h"

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/slicing.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/move_plan.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/tiles.h"

namespace meshard {
namespace {

Sharding whole_on(const Mesh& device, int rank) {
  return Sharding::replicated(device, static_cast<std::size_t>(rank));
}

// The mesh of the device at one position of another mesh.
Mesh device_at(const Mesh& mesh, std::int64_t position) {
  return Mesh({{"device", 1}}, {mesh.device_id(position)}).with_device_type(mesh.device_type());
}

// A program for one device, of what `record` returns for parameters of these types.
std::shared_ptr<const LoadedProgram> program_on(
    ProgramCache& programs, const Mesh& device, std::string name, std::span<const TensorType> types,
    SourceLocation where,
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& record) {
  Program program;
  program.name = std::move(name);
  {
    internal::TraceScope scope;
    SourceScope line(where);
    std::vector<Tensor> given;
    std::vector<Value> parameters, results;
    for (const TensorType& type : types) {
      given.push_back(make_parameter(type, whole_on(device, type.rank()), where));
      parameters.push_back(given.back().value());
    }
    for (const Tensor& result : record(given))
      results.push_back(
          sharding_constraint(In(result, where), whole_on(device, result.rank())).value());
    program.graph = Graph::build(parameters, results, scope.trace());
  }
  return programs.get(program, where);
}

Tensor cut(const Tensor& shard, const Box& box) {
  Dimensions starts, stops;
  for (const DimensionSlice& part : box) {
    starts.push_back(part.start);
    stops.push_back(part.stop);
  }
  return slice(shard, starts, stops);
}

// Joins the pieces of a grid, dimension by dimension, and adds the padding of the shard.
Tensor assembled(std::vector<Tensor> pieces, const IntVector& grid, const TensorType& shard) {
  if (pieces.empty()) return zeros(shard.shape, shard.dtype);
  for (std::size_t d = grid.size(); d-- > 0;) {
    std::vector<Tensor> rows;
    const auto count = static_cast<std::ptrdiff_t>(grid[d]);
    for (auto first = pieces.begin(); first != pieces.end(); first += count)
      rows.push_back(count == 1 ? *first
                                : concat({first, first + count}, static_cast<std::int64_t>(d)));
    pieces = std::move(rows);
  }
  const Tensor& tile = pieces.front();
  if (tile.shape() == shard.shape) return tile;
  Dimensions low, high;
  for (int d = 0; d < shard.rank(); ++d) {
    low.push_back(0);
    high.push_back(shard.shape[d] - tile.shape()[d]);
  }
  return pad(tile, zeros({}, shard.dtype), low, high);
}

// The number of the box among those that a position cuts.
std::size_t number_of(std::vector<Box>& boxes, const Box& box) {
  auto found = std::find(boxes.begin(), boxes.end(), box);
  if (found == boxes.end()) found = boxes.insert(boxes.end(), box);
  return static_cast<std::size_t>(found - boxes.begin());
}

// Fills the pieces of each tile, and what the source cuts for them.
void plan_pieces(PreparedTransfer& made) {
  // Equal tiles move with their padding.
  Shape shape = made.type.shape;
  if (has_same_tiles(&made.source, made.target)) {
    const IntVector padded = made.source.padded_shape(shape);
    shape = Shape(Dimensions(padded.begin(), padded.end()));
  }
  const Tiling tiling(made.source, shape);
  std::vector<int> devices;
  for (std::int64_t id : made.source.mesh().device_ids()) devices.push_back(static_cast<int>(id));
  std::vector<MoveTarget> targets;
  for (const LocalPosition& at : made.positions) {
    targets.push_back({at.device->id(), box_of(made.target, shape, at.position)});
    made.tiles.push_back({tiling.count_in(targets.back().box)});
  }
  made.cuts.resize(devices.size());
  for (const Move& move : plan_moves(tiling, devices, targets)) {
    const Box shard = box_of(made.source, shape, move.from);
    std::vector<Box>& boxes = made.cuts[static_cast<std::size_t>(move.from)].boxes;
    made.tiles[move.to].pieces.push_back(
        {move.from, number_of(boxes, relative_to(shard, move.piece))});
  }
}

std::shared_ptr<const PreparedTransfer> prepare(ProgramCache& programs, const pjrt::Client& client,
                                                const TensorType& type, const Sharding& source,
                                                const Sharding& target, bool views,
                                                SourceLocation where) {
  auto made = std::make_shared<PreparedTransfer>(PreparedTransfer{
      &client, type, source, target, views, local_positions(client, target.mesh(), where)});
  plan_pieces(*made);
  const TensorType from = shard_type_of(type, source), to = shard_type_of(type, target);
  for (std::size_t q = 0; q < made->cuts.size(); ++q) {
    const std::vector<Box>& boxes = made->cuts[q].boxes;
    const bool is_whole = boxes.size() == 1 && box_shape(boxes[0]) == from.shape;
    if (boxes.empty() || is_whole) continue;
    made->cuts[q].program =
        program_on(programs, device_at(source.mesh(), static_cast<std::int64_t>(q)), "cut",
                   std::span(&from, 1), where, [&](const std::vector<Tensor>& shard) {
                     std::vector<Tensor> pieces;
                     for (const Box& box : boxes) pieces.push_back(cut(shard[0], box));
                     return pieces;
                   });
  }
  for (std::size_t p = 0; p < made->tiles.size(); ++p) {
    PreparedTransfer::Tile& tile = made->tiles[p];
    const std::int64_t position = made->positions[p].position;
    std::vector<TensorType> types;
    for (const PreparedTransfer::Piece& piece : tile.pieces)
      types.push_back(
          {type.dtype,
           box_shape(made->cuts[static_cast<std::size_t>(piece.source)].boxes[piece.number])});
    bool is_tile = types.size() == 1 && types[0] == to;
    if (is_tile && !views) {
      // A shard that stays on its device is copied by a program: it belongs to the source.
      const std::int64_t q = tile.pieces[0].source;
      is_tile = source.mesh().device_id(q) != target.mesh().device_id(position) ||
                made->cuts[static_cast<std::size_t>(q)].program != nullptr;
    }
    if (is_tile) continue;
    tile.assemble = program_on(programs, device_at(target.mesh(), position), "assemble", types,
                               where, [&](const std::vector<Tensor>& pieces) {
                                 return std::vector{assembled(pieces, tile.grid, to)};
                               });
  }
  return made;
}

}  // namespace

Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::BufferView& source,
                               const pjrt::Device& device) {
  if (!source.is_of(client.ref()))
    return Error(ErrorCode::kUnimplemented,
                 cat("[runtime] the data is not on platform ", client.name(),
                     ", or is on a client that was replaced"));
  if (source.device().id() != device.id()) {
    internal::count(internal::counters().buffers_moved);
    internal::count(internal::counters().bytes_moved, source.type().host_size());
    internal::TransferSpan span;
    if (internal::records_events())
      span.begin("move", cat(source.type(), " from device ", source.device().id()), device,
                 source.type().host_size());
    Result<pjrt::Buffer> moved = source.copy_to_device(device);
    if (moved.ok()) span.end_when_ready(*moved);
    return moved;
  }
  if (source.type().element_count() == 0) return client.uninitialized_buffer(source.type(), device);
  MESHARD_ASSIGN_OR_RETURN(pjrt::HostView view, source.host_view());
  // While a view exists, the plugin does not reuse the memory, even if the source is donated.
  auto held = std::make_shared<pjrt::HostView>(std::move(view));
  void* address = const_cast<std::byte*>(held->bytes().data());
  return client.view_device_memory(address, source.type(), device, [held] {});
}

bool PreparedTransfer::is_current() const {
  const auto current = [](const auto& program) { return !program || program->is_current(); };
  return std::ranges::all_of(cuts, [&](const Cuts& each) { return current(each.program); }) &&
         std::ranges::all_of(tiles, [&](const Tile& each) { return current(each.assemble); });
}

std::shared_ptr<const PreparedTransfer> PreparedTransfers::get(
    ProgramCache& programs, const pjrt::Client& client, const TensorType& type,
    const Sharding& source, const Sharding& target, bool views, SourceLocation where) {
  {
    std::lock_guard lock(mutex_);
    auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& each) {
      return each->is_for(client, type, source, target, views);
    });
    if (found != known_.end() && (*found)->is_current()) {
      std::rotate(found, found + 1, known_.end());
      return known_.back();
    }
    if (found != known_.end()) known_.erase(found);
  }
  std::shared_ptr<const PreparedTransfer> made =
      prepare(programs, client, type, source, target, views, where);
  std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.erase(known_.begin());
  known_.push_back(made);
  return made;
}

std::size_t PreparedTransfers::size() {
  std::lock_guard lock(mutex_);
  return known_.size();
}

Result<StartedTransfer> PiecesUnderWay::start(Runtime& runtime, const pjrt::Client& client,
                                              StoragePtr storage, const Sharding& from,
                                              const Sharding& target, bool views,
                                              SourceLocation where) {
  const TensorType type = static_cast<const DeviceArray&>(*storage).type();
  const auto rank = static_cast<std::size_t>(type.rank());
  std::unique_ptr<PiecesUnderWay> made(
      new PiecesUnderWay(runtime.platforms, std::move(storage), target, where));
  made->prepared_ = runtime.transfers.get(runtime.programs, client, type, from.with_rank(rank),
                                          target.with_rank(rank), views, where);
  MESHARD_RETURN_IF_ERROR(made->start_copies(client));
  if (std::ranges::any_of(made->prepared_->tiles,
                          [](const auto& tile) { return tile.assemble != nullptr; }))
    return StartedTransfer(std::move(made));
  return StartedTransfer(made->finish());
}

Result<void> PiecesUnderWay::start_copies(const pjrt::Client& client) {
  const auto& array = static_cast<const DeviceArray&>(*array_);
  const auto shard = [&](std::size_t q) {
    return array.buffers()[*array.shard_at(static_cast<std::int64_t>(q))];
  };
  pieces_.resize(prepared_->cuts.size());
  for (std::size_t q = 0; q < pieces_.size(); ++q) {
    const auto& [boxes, program] = prepared_->cuts[q];
    if (!program) continue;
    pieces_[q].resize(boxes.size());
    const pjrt::BufferView view = shard(q);
    MESHARD_RETURN_IF_ERROR(program->launch_on_views(std::span(&view, 1), pieces_[q], where_));
  }
  copies_.resize(prepared_->tiles.size());
  received_.resize(prepared_->tiles.size());
  for (std::size_t p = 0; p < copies_.size(); ++p) {
    const pjrt::Device& device = *prepared_->positions[p].device;
    copies_[p].reserve(prepared_->tiles[p].pieces.size());  // views refer to them
    for (const PreparedTransfer::Piece& piece : prepared_->tiles[p].pieces) {
      const auto q = static_cast<std::size_t>(piece.source);
      pjrt::BufferView view = pieces_[q].empty() ? shard(q) : pieces_[q][piece.number];
      if (&view.device() != &device || prepared_->views) {
        MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer copy, buffer_on(client, view, device));
        copies_[p].push_back(std::move(copy));
        view = copies_[p].back();
      }
      received_[p].push_back(view);
    }
  }
  return {};
}

Result<std::vector<pjrt::Buffer>> PiecesUnderWay::assemble() {
  Buffers tiles(prepared_->tiles.size());
  for (std::size_t p = 0; p < tiles.size(); ++p) {
    const PreparedTransfer::Tile& tile = prepared_->tiles[p];
    if (tile.assemble) {
      MESHARD_RETURN_IF_ERROR(
          tile.assemble->launch_on_views(received_[p], std::span(&tiles[p], 1), where_));
      continue;
    }
    const PreparedTransfer::Piece& only = tile.pieces[0];
    tiles[p] =
        std::move(copies_[p].empty() ? pieces_[static_cast<std::size_t>(only.source)][only.number]
                                     : copies_[p][0]);
  }
  return tiles;
}

Tensor PiecesUnderWay::finish() {
  Result<Buffers> tiles = assemble();
  if (!tiles.ok()) throw tiles.error().at(where_);
  const TensorType& type = prepared_->type;
  return make_array(type, make_storage<DeviceArray>(platforms_, type, target_, *std::move(tiles)),
                    where_);
}

}  // namespace meshard
