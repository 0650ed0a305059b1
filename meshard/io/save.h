// Writes tensors to safetensors files: one, or one for each process of a run.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/graph/tensor.h"

namespace meshard::io {

/// How a checkpoint is written.
struct SaveOptions {
  /// In a run of several processes: this process alone writes one file, and the others do not call
  /// the function. Every value must be whole in this process. Default: false, all processes save
  /// together.
  bool this_process_only = false;
};

namespace internal {
class SaveOutcome;
}  // namespace internal

/// A handle on a save that goes on in the background. Copies share it. Without wait(), an error is
/// reported when the process leaves the run or ends, with status 1.
class [[nodiscard]] Saving {
 public:
  /// Nothing to wait for.
  Saving() = default;
  explicit Saving(std::shared_ptr<const internal::SaveOutcome> outcome)
      : outcome_(std::move(outcome)) {}

  /// Whether wait() returns at once.
  bool done() const;
  /// Waits until the checkpoint is complete on the disk. May be called again.
  /// @error as io::save
  Result<void> wait() const;

 private:
  std::shared_ptr<const internal::SaveOutcome> outcome_;
};

/// Writes tensors, atomically replacing what is at `path`: after a crash at any time, the old or
/// the new checkpoint is there, complete. Recorded values are computed first, in one program. A
/// sharded tensor is never gathered.
///
/// One process writes one safetensors file, with each distinct shard copied from its device to its
/// positions.
///
/// In a run of several processes, all call the function with the same tensors, at the same place of
/// their programs. Each writes the shards of its own devices into a file of its own, and values
/// without a sharding are taken from process 0. Nothing is sent, and nothing is written twice: one
/// of the processes that have a replicated part writes it. `PATH.index.json` names the files.
/// io::load and io::restore accept `path` as before, in any number of processes. The outcome is the
/// same in all processes.
///
/// @param path a file; or a folder (one that exists, or with a `/` at the end, which is created):
/// then the file is `model.safetensors` in it
/// @error as write_safetensors_header and NewFile; errors of the computation; failed precondition
/// for a donated tensor, and if the processes save different tensors or do not share the file
/// system; deadline exceeded if another process does not save within MESHARD_PROCESS_WAIT_SECONDS
Result<void> save(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  const SaveOptions& options = {},
                  SourceLocation where = SourceLocation::current());

/// Like save(), while the program goes on. When it returns, the values have been computed and
/// copied to host memory, so the tensors may be donated. A thread in the background writes them,
/// using nothing but this memory, the files, and the store of the run. Waits first for an earlier
/// save_async(), so that host memory has to hold one copy only. Saves to the same path have the
/// order of the calls, and save(), load() and restore() wait for those before.
///
/// The end of the process waits for it (return from main, exit(0), Processes::finalize). A process
/// that is killed leaves the old checkpoint.
/// @code
/// Tensor w = ones({4});
/// std::string path = std::filesystem::temp_directory_path() / "w.safetensors";
/// io::Saving saving = io::save_async(path, {{"w", w}});
/// // ... the next steps
/// saving.wait().value();
/// @endcode
Saving save_async(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata = {},
                  const SaveOptions& options = {},
                  SourceLocation where = SourceLocation::current());

namespace internal {

/// A tensor to save, under one name; or one that stacks equal tensors along its first dimensions,
/// to save under their names (in row-major order), one after the other in the file.
struct NamedTensors {
  std::vector<std::string> names;
  Tensor tensor;
  /// The number of dimensions along which it stacks the named tensors.
  std::size_t stacked = 0;
};

/// Like io::save; tensors with elements of one size are written in the order of `tensors`.
Result<void> save_in_order(const std::string& path, std::span<const NamedTensors> tensors,
                           const std::map<std::string, std::string>& metadata,
                           const SaveOptions& options, SourceLocation where);
/// Like io::save_async, with the same order.
Saving save_in_order_async(const std::string& path, std::span<const NamedTensors> tensors,
                           const std::map<std::string, std::string>& metadata,
                           const SaveOptions& options, SourceLocation where);
/// Reports to the other processes that a save cannot begin in this one.
Saving save_failed(const std::string& path, Error error, const SaveOptions& options,
                   SourceLocation where);

}  // namespace internal
}  // namespace meshard::io
