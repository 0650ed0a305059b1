// Rewriting: the partitioned program of a mesh becomes the program of one device.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"

namespace meshard {

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

}  // namespace meshard
