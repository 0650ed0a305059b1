// The in-memory cache of compiled programs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"
#include "meshard/base/single_flight.h"
#include "meshard/runtime/disk_cache.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

/// Cache of compiled programs, keyed by what they compute. The lookup has two steps. The graph's
/// fingerprint, which includes the mesh with its device type and ids, finds a loaded program
/// without lowering. Otherwise the graph is lowered, and if the same text was compiled for other
/// devices of the same platform, that executable is loaded for these devices. Thread-safe: threads
/// compile concurrently, and a thread that requests a program that another thread is compiling
/// waits for it.
///
/// Programs whose compilation took long are also kept on disk, for later processes (disk_cache.h).
///
/// Holds MESHARD_MOST_PROGRAMS programs (default 1,000) and evicts the least recently used one; its
/// holders may continue to use it. Programs of clients that a restart of the runtime has replaced
/// are compiled again.
class ProgramCache {
 public:
  /// @pre `platforms` outlives the cache
  explicit ProgramCache(Platforms& platforms);
  /// @pre most > 0
  ProgramCache(Platforms& platforms, std::size_t most, DiskCache disk = {"", 0});

  /// The program, for the client of its mesh's platform, or for the default client without a mesh.
  /// @error the errors of lowering, Platforms::client and the compiler; invalid argument for an
  /// invalid MESHARD_MOST_PROGRAMS or MESHARD_PROGRAM_CACHE_MB; what a compile runner throws.
  std::shared_ptr<const LoadedProgram> get(const Program& program, SourceLocation where);
  /// A program that was not recorded here but read from a file, for the devices of its mesh.
  /// @error invalid argument if some of its devices belong to other processes; the errors of
  /// Platforms::client and the compiler; what a compile runner throws.
  std::shared_ptr<const LoadedProgram> get(const LoweredModule& lowered, SourceLocation where);
  std::size_t size() const { return by_graph_.size(); }

 private:
  struct Entry {
    Fingerprint key;
    std::shared_ptr<const LoadedProgram> program = {};
  };
  using Table = internal::SingleFlight<Entry>;

  ProgramCache(Platforms& platforms, Result<std::int64_t> most, Result<DiskCache> disk);
  template <class Make>
  static std::shared_ptr<const LoadedProgram> find_or_make(Table& table, const Fingerprint& key,
                                                           Make make);
  // get() of a recorded program, or of one from a file.
  template <class What>
  std::shared_ptr<const LoadedProgram> find_or_load(const What& what, const Fingerprint& key,
                                                    SourceLocation where);
  // The same, on this thread.
  template <class What>
  std::shared_ptr<const LoadedProgram> find_or_load_here(const What& what, const Fingerprint& key,
                                                         SourceLocation where);
  const DiskCache& disk_for(bool keep_on_disk) const;
  std::shared_ptr<const LoadedProgram> make(const Program& program, SourceLocation where);
  std::shared_ptr<const LoadedProgram> make(const LoweredModule& lowered, SourceLocation where);
  std::shared_ptr<const LoadedProgram> make_here(const pjrt::Client& client,
                                                 const LoweredModule& lowered, bool keep_on_disk,
                                                 const std::vector<int>& devices,
                                                 SourceLocation where);
  std::shared_ptr<const LoadedProgram> compile(const pjrt::Client& client,
                                               const LoweredModule& lowered, bool keep_on_disk,
                                               const std::vector<int>& devices,
                                               SourceLocation where);

  Platforms& platforms_;
  Result<std::int64_t> most_;  // an error is thrown by get()
  Result<DiskCache> disk_;     // likewise
  Table by_graph_, by_text_;
};

}  // namespace meshard
