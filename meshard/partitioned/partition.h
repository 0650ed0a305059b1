// Partitioning: a program for a whole mesh becomes the program of one device, with its collectives
// as calls.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"
#include "meshard/hlo/program_identity.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard {

/// The fingerprint of a HLO module: of what it computes and communicates. Names, ids, source lines
/// and other metadata do not matter.
/// @error data loss if the bytes are damaged
Result<Fingerprint> module_fingerprint(std::string_view hlo);

/// Compares the modules from the entry on, entering the computations that an op calls before the op
/// itself. Nothing if their fingerprints are equal.
/// @error data loss if the bytes are damaged
Result<std::optional<ModuleDifference>> first_difference(std::string_view first,
                                                         std::string_view second);

/// Options of rewrite_collectives().
struct RewriteOptions {
  /// The number of partitions of the program.
  int partitions = 1;
  /// The rank in its communicator of the device that runs each partition, or of its process if each
  /// has one device; empty: rank i runs partition i.
  std::vector<int> ranks = {};
  /// The source line of an op, from the name in its metadata (such as `main/n17`). Used in errors;
  /// not set, or an empty answer: the line in the metadata, if there is one.
  std::function<std::string(std::string_view op_name)> source_of = {};
};

/// The program of each device of a mesh.
struct RewrittenModule {
  /// The bytes of a HloModuleProto for one device, the same for every device of the mesh.
  std::string hlo;
  /// Whether it has collectives. If so, its last parameter and its last result
  /// are the chain: an s32[] that orders the collectives of successive launches
  /// (collective_order.h).
  bool communicates = false;
  /// Number of collectives in its text, after combining.
  int calls = 0;
  /// Whether it has operations between replicas, of which the mesh has one. Several devices of a
  /// process, which run it as replicas, would compute something else.
  bool uses_replicas = false;
  /// Equal for processes that run the same program (module_identity.h).
  Fingerprint fingerprint;
};

/// Replaces each collective between partitions by a custom call with target kCollectiveTarget, in
/// conditionals, calls and loops too. The calls are ordered by a chain: each takes and gives one
/// more s32[], which also goes through loops, branches and calls. Small all-reduces that do not
/// depend on one another are combined. Collectives among replicas remain: there is one replica.
///
/// `module` is the bytes of a HloModuleProto of one replica, after the partitioner.
/// @error unimplemented, naming the op and its source line, for an operation between devices that
/// cannot be replaced; data loss if the module is damaged; invalid argument if `options.ranks` has
/// another length than the number of partitions, or a rank twice
Result<RewrittenModule> rewrite_collectives(std::string_view module, const RewriteOptions& options);

/// Compiles a StableHLO module for all devices of `options`, and returns the module that XLA's
/// partitioner makes of it: the bytes of a HloModuleProto that every device runs, with collectives
/// between them. The module is read from a dump of the compiler, in a temporary folder that is
/// removed in any case. Collectives that the compiler itself does not support are allowed.
///
/// `client` needs as many devices, which may be virtual ones.
/// @error invalid argument for fewer than two partitions, or several replicas; unimplemented,
/// naming the plugin, if what it dumps is not a module that was partitioned for these devices;
/// otherwise the compiler's error
Result<std::string> partitioned_module(const pjrt::Client& client, std::string_view module,
                                       const pjrt::CompileOptions& options);

/// partitioned_module() and rewrite_collectives(): the program that each device runs.
/// @param ranks, source_of as in RewriteOptions
/// @error theirs
Result<RewrittenModule> partition(
    const pjrt::Client& client, std::string_view module, const pjrt::CompileOptions& options,
    std::vector<int> ranks = {},
    std::function<std::string(std::string_view op_name)> source_of = {});

/// The options that a rewritten module is compiled and loaded with: each of the devices runs it, as
/// one replica.
/// @param options only the overrides are used
pjrt::CompileOptions options_for_part(std::span<const pjrt::Device* const> devices,
                                      const pjrt::CompileOptions& options = {});

/// Compiles a rewritten module for devices of this process. If it communicates, launch it with a
/// CollectiveOrder, in a process with a CollectiveService for each device.
/// @param options of the compiler: only the overrides are used
/// @error the compiler's; unimplemented for several devices if the module depends on the number of
/// replicas
Result<pjrt::LoadedExecutable> load_partitioned(const pjrt::Client& client,
                                                const RewrittenModule& module,
                                                std::span<const pjrt::Device* const> devices,
                                                const pjrt::CompileOptions& options = {});

}  // namespace meshard
