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
#include "meshard/ops/concat.h"
#include "meshard/ops/pad.h"
#include "meshard/ops/sharding_constraint.h"
#include "meshard/ops/slice.h"
#include "meshard/runtime/internal/buffer_on.h"
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

std::shared_ptr<const PreparedTransfer> prepare(ProgramCache& programs, const pjrt::Client& client,
                                                const TensorType& type, const Sharding& source,
                                                const Sharding& target, SourceLocation where) {
  std::vector<LocalPosition> local = local_positions(client, target.mesh(), where);
  std::vector<std::int64_t> positions;
  for (const LocalPosition& at : local) positions.push_back(at.position);
  auto made = std::make_shared<PreparedTransfer>(
      PreparedTransfer{&client,
                       type,
                       source,
                       target,
                       std::move(local),
                       plan_transfer(source, target, type.shape, positions),
                       {},
                       {}});
  const TensorType from = shard_type_of(type, source), to = shard_type_of(type, target);
  for (std::size_t q = 0; q < made->plan.cuts.size(); ++q) {
    const std::vector<Box>& boxes = made->plan.cuts[q];
    bool is_whole = boxes.size() == 1 && box_shape(boxes[0]) == from.shape;
    made->cut.push_back(
        boxes.empty() || is_whole
            ? nullptr
            : program_on(programs, device_at(source.mesh(), static_cast<std::int64_t>(q)), "cut",
                         std::span(&from, 1), where, [&](const std::vector<Tensor>& shard) {
                           std::vector<Tensor> pieces;
                           for (const Box& box : boxes) pieces.push_back(cut(shard[0], box));
                           return pieces;
                         }));
  }
  for (std::size_t p = 0; p < made->plan.tiles.size(); ++p) {
    const TransferPlan::Tile& tile = made->plan.tiles[p];
    const std::int64_t position = positions[p];
    std::vector<TensorType> types;
    for (const TransferPlan::Piece& piece : tile.pieces)
      types.push_back(
          {type.dtype,
           box_shape(made->plan.cuts[static_cast<std::size_t>(piece.source)][piece.number])});
    bool is_tile = types.size() == 1 && types[0] == to;
    if (is_tile) {
      // A shard that stays on its device is copied by a program: it belongs to the source.
      const std::int64_t q = tile.pieces[0].source;
      is_tile = source.mesh().device_id(q) != target.mesh().device_id(position) ||
                made->cut[static_cast<std::size_t>(q)] != nullptr;
    }
    made->assemble.push_back(
        is_tile ? nullptr
                : program_on(programs, device_at(target.mesh(), position), "assemble", types, where,
                             [&](const std::vector<Tensor>& pieces) {
                               return std::vector{assembled(pieces, tile.grid, to)};
                             }));
  }
  return made;
}

}  // namespace

bool PreparedTransfer::is_current() const {
  for (const auto* programs : {&cut, &assemble})
    for (const auto& program : *programs)
      if (program && !program->is_current()) return false;
  return true;
}

std::shared_ptr<const PreparedTransfer> PreparedTransfers::get(
    ProgramCache& programs, const pjrt::Client& client, const TensorType& type,
    const Sharding& source, const Sharding& target, SourceLocation where) {
  {
    std::lock_guard lock(mutex_);
    auto found = std::find_if(known_.begin(), known_.end(), [&](const auto& each) {
      return each->is_for(client, type, source, target);
    });
    if (found != known_.end() && (*found)->is_current()) {
      std::rotate(found, found + 1, known_.end());
      return known_.back();
    }
    if (found != known_.end()) known_.erase(found);
  }
  std::shared_ptr<const PreparedTransfer> made =
      prepare(programs, client, type, source, target, where);
  std::lock_guard lock(mutex_);
  if (known_.size() >= kMost) known_.erase(known_.begin());
  known_.push_back(made);
  return made;
}

std::size_t PreparedTransfers::size() {
  std::lock_guard lock(mutex_);
  return known_.size();
}

Result<PiecesUnderWay> PiecesUnderWay::start(Runtime& runtime, const pjrt::Client& client,
                                             StoragePtr storage, const Sharding& from,
                                             const Sharding& target, SourceLocation where) {
  const auto& array = static_cast<const DeviceArray&>(*storage);
  PiecesUnderWay made;
  made.prepared_ =
      runtime.transfers.get(runtime.programs, client, array.type(), from, target, where);
  made.array_ = storage;
  const TransferPlan& plan = made.prepared_->plan;
  made.pieces_.resize(plan.cuts.size());
  for (std::size_t q = 0; q < plan.cuts.size(); ++q) {
    const auto& program = made.prepared_->cut[q];
    if (!program) continue;
    made.pieces_[q].resize(plan.cuts[q].size());
    const pjrt::BufferView shard = array.buffers()[q];
    MESHARD_RETURN_IF_ERROR(program->launch_on_views(std::span(&shard, 1), made.pieces_[q], where));
  }
  made.copies_.resize(plan.tiles.size());
  made.received_.resize(plan.tiles.size());
  for (std::size_t p = 0; p < plan.tiles.size(); ++p) {
    const pjrt::Device& device = *made.prepared_->positions[p].device;
    Buffers& copies = made.copies_[p];
    copies.reserve(plan.tiles[p].pieces.size());  // views refer to them
    for (const TransferPlan::Piece& piece : plan.tiles[p].pieces) {
      const auto q = static_cast<std::size_t>(piece.source);
      pjrt::BufferView view = array.buffers()[q];
      if (!made.pieces_[q].empty()) view = made.pieces_[q][piece.number];
      if (&view.device() != &device) {
        MESHARD_ASSIGN_OR_RETURN(pjrt::Buffer copy, buffer_on(client, view, device));
        copies.push_back(std::move(copy));
        view = copies.back();
      }
      made.received_[p].push_back(view);
    }
  }
  return made;
}

Result<std::vector<pjrt::Buffer>> PiecesUnderWay::assemble(SourceLocation where) {
  const TransferPlan& plan = prepared_->plan;
  std::vector<pjrt::Buffer> tiles(plan.tiles.size());
  for (std::size_t p = 0; p < plan.tiles.size(); ++p) {
    if (const auto& program = prepared_->assemble[p]) {
      MESHARD_RETURN_IF_ERROR(
          program->launch_on_views(received_[p], std::span(&tiles[p], 1), where));
      continue;
    }
    const TransferPlan::Piece& only = plan.tiles[p].pieces[0];
    tiles[p] =
        std::move(copies_[p].empty() ? pieces_[static_cast<std::size_t>(only.source)][only.number]
                                     : copies_[p][0]);
  }
  return tiles;
}

}  // namespace meshard
