// Transfers between any two shardings without the host: cut, copy, assemble.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "meshard/pjrt/buffer.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/program_cache.h"
#include "meshard/runtime/internal/transfer_plan.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

struct Runtime;

/// A transfer of values of one type from one sharding to another, with its programs for the devices
/// of this process.
struct PreparedTransfer {
  const pjrt::Client* client;
  TensorType type;
  Sharding source, target;
  /// Those of the target in this process.
  std::vector<LocalPosition> positions;
  TransferPlan plan;  // for these
  /// For each position of the source, the program that cuts its pieces; null if it has none, or
  /// sends its whole shard.
  std::vector<std::shared_ptr<const LoadedProgram>> cut;
  /// For each of `positions`, the program that assembles its tile; null if the only piece
  /// is the tile, and comes from elsewhere or was cut.
  std::vector<std::shared_ptr<const LoadedProgram>> assemble;

  bool is_for(const pjrt::Client& on, const TensorType& of, const Sharding& from,
              const Sharding& to) const {
    return client == &on && type == of && target == to && source == from;
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
                                              const Sharding& target, SourceLocation where);
  std::size_t size();

 private:
  // More than the sends of a large pipeline, and few enough to search.
  static constexpr std::size_t kMost = 256;

  std::mutex mutex_;
  std::vector<std::shared_ptr<const PreparedTransfer>> known_;  // the last one was used last
};

/// A transfer of which the copies have been launched. Each device of the source cuts the pieces of
/// its shard that others need, each piece is copied to the devices that need it, and these assemble
/// their tiles. All of this is launched, and nothing is waited for.
///
/// Every launch is of a program for one device, so that the devices do not wait for each other.
/// What the receiving devices do is a part of its own: their programs wait for the pieces, and so
/// does everything that they are given later.
class PiecesUnderWay {
 public:
  /// Launches the cuts and the copies.
  /// @param array kept alive until the pieces are assembled
  /// @param from the sharding of `array`; of one without a sharding, one over its device
  /// @pre all devices belong to the client, and those of the source to this process; neither
  /// sharding has unreduced axes; the value has elements
  /// @error unimplemented if the plugin cannot copy between devices; the plugin's errors. Thrown:
  /// the compiler's.
  static Result<PiecesUnderWay> start(Runtime& runtime, const pjrt::Client& client,
                                      StoragePtr array, const Sharding& from,
                                      const Sharding& target, SourceLocation where);
  /// Launches the programs of the receiving devices. Call it once.
  /// @return the buffers of this process, in the order of the target's mesh
  /// @error the plugin's errors
  Result<std::vector<pjrt::Buffer>> assemble(SourceLocation where);

 private:
  using Buffers = std::vector<pjrt::Buffer>;
  std::shared_ptr<const PreparedTransfer> prepared_;
  StoragePtr array_;
  std::vector<Buffers> pieces_;  // by position of the source; empty: not cut
  std::vector<Buffers> copies_;  // by position of the target in this process
  std::vector<std::vector<pjrt::BufferView>> received_;  // likewise; they refer to the above
};

}  // namespace meshard
