// Partitioning: a program for a whole mesh becomes the program of one device.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "meshard/base/result.h"
#include "meshard/partitioned/rewrite.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard {

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
