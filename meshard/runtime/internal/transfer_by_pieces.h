// Transfers between devices without the host: views, copies, and programs that cut and assemble.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/program_cache.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/transfer.h"

namespace meshard {

struct Runtime;

/// Returns a buffer on `device` with the data of `source`. It is a copy between devices or, if
/// `source` is already on `device`, a view, whose data remains unchanged even if `source` is
/// donated or deleted.
/// @error unimplemented if the plugin does not support it, or if `source` belongs to another
/// client.
Result<pjrt::Buffer> buffer_on(const pjrt::Client& client, const pjrt::BufferView& source,
                               const pjrt::Device& device);

/// A transfer of values of one type from one sharding to another: its moves (move_plan.h) as work
/// of the devices of this process.
struct PreparedTransfer {
  /// Box number `number` of those that source position `source` cuts.
  struct Piece {
    std::int64_t source = 0;
    std::size_t number = 0;
  };
  /// The tile of one position of the target.
  struct Tile {
    /// The number of pieces along each dimension.
    IntVector grid = {};
    /// In row-major order of the grid; none if the tile has no elements.
    std::vector<Piece> pieces = {};
    /// Assembles the tile from the pieces; null if the only piece is the tile, and comes from
    /// elsewhere, was cut, or may be a view.
    std::shared_ptr<const LoadedProgram> assemble = {};
  };
  /// The piece that one position of the source cuts from its shard.
  struct Cuts {
    std::vector<Box> boxes = {};  // all different
    /// Null if there are none, or the only one is the whole shard.
    std::shared_ptr<const LoadedProgram> program = {};
  };

  const pjrt::Client* client;
  TensorType type;
  Sharding source, target;
  /// Whether a tile that is on its device already is viewed there, and not copied.
  bool views;
  /// The parts of the target in this process.
  std::vector<LocalPosition> positions;
  std::vector<Cuts> cuts = {};   // by position of the source
  std::vector<Tile> tiles = {};  // by `positions`

  bool is_for(const pjrt::Client& on, const TensorType& of, const Sharding& from,
              const Sharding& to, bool with_views) const {
    return client == &on && type == of && target == to && source == from && views == with_views;
  }
  /// False after a restart of the runtime.
  bool is_current() const;
};

/// The transfers of a runtime that were prepared last. Thread-safe.
class PreparedTransfers {
 public:
  /// @error errors of the compiler; not found if the client lacks a device
  std::shared_ptr<const PreparedTransfer> get(ProgramCache& programs, const pjrt::Client& client,
                                              const TensorType& type, const Sharding& source,
                                              const Sharding& target, bool views,
                                              SourceLocation where);
  std::size_t size();

 private:
  // More than the sends of a large pipeline, and few enough to search.
  static constexpr std::size_t kMost = 256;

  std::mutex mutex_;
  std::vector<std::shared_ptr<const PreparedTransfer>> known_;  // the last one was used last
};

/// A transfer of which the copies have been launched. Equal tiles are copied or viewed as they are.
/// Otherwise, each device of the source cuts the pieces of its shard that others need, each piece
/// is copied to the devices that need it, and these assemble their tiles. All of this is launched,
/// and nothing is waited for.
///
/// Every launch is of a program for one device, so that the devices do not wait for each other.
/// The receiving devices have a part of their own: their programs wait for the pieces, and
/// everything launched on them later waits, too.
class PiecesUnderWay final : public StartedTransfer::Rest {
 public:
  /// Launches the cuts and the copies.
  /// @param array kept alive until the pieces are assembled
  /// @param from the sharding of `array`; of one without a sharding, one over its device
  /// @param views whether tiles that are on their devices are viewed there; only for equal tiles
  /// @return the value, if no device has to assemble anything
  /// @pre all devices belong to the client, and those of the source to this process, unless all
  /// tiles are in place; neither sharding has unreduced axes; the value has elements
  /// @error unimplemented if the plugin cannot copy between devices, or has no views; the plugin's
  /// errors. Thrown: the compiler's.
  static Result<StartedTransfer> start(Runtime& runtime, const pjrt::Client& client,
                                       StoragePtr array, const Sharding& from,
                                       const Sharding& target, bool views, SourceLocation where);
  /// Launches the programs of the receiving devices.
  /// @error thrown: the plugin's errors
  Tensor finish() override;

 private:
  using Buffers = std::vector<pjrt::Buffer>;
  PiecesUnderWay(const Platforms& platforms, StoragePtr array, Sharding target,
                 SourceLocation where)
      : platforms_(platforms),
        array_(std::move(array)),
        target_(std::move(target)),
        where_(where) {}
  Result<void> start_copies(const pjrt::Client& client);
  // The buffers of this process, in the order of the target's mesh.
  Result<Buffers> assemble();

  const Platforms& platforms_;
  StoragePtr array_;
  Sharding target_;
  SourceLocation where_;
  std::shared_ptr<const PreparedTransfer> prepared_;
  std::vector<Buffers> pieces_;  // by position of the source; empty: not cut
  std::vector<Buffers> copies_;  // by position of the target in this process
  std::vector<std::vector<pjrt::BufferView>> received_;  // likewise; they refer to the above
};

}  // namespace meshard
