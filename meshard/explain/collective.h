// One collective of a compiled program, as explain/ tells it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/saturating.h"
#include "meshard/mesh/axis_ref.h"

namespace meshard {

/// What a collective does. Sends and receives are told apart because a compiler may write them in
/// place of a permutation.
enum class CollectiveKind {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kAllToAll,
  kRaggedAllToAll,
  kCollectivePermute,
  kCollectiveBroadcast,
  kSend,
  kReceive,
};

/// HLO's name: `all-reduce`, `collective-permute`, `recv`.
std::string_view to_string(CollectiveKind kind);

/// A value: every device sends to the one `by` further along `axes` (taken as one axis, the last
/// the fastest). At the end it wraps, or stops where the pairs do not wrap.
struct AxisShift {
  AxisList axes;
  /// In (-n/2, n/2] for n places along the axes: +1 is the next device.
  std::int64_t by = 0;
  bool wraps = true;

  /// `"model" by +1`, `{"data", "model"} by -1 without wrapping`
  std::string to_string() const;
  friend bool operator==(const AxisShift&, const AxisShift&) = default;
};

/// How the place in the user's program was found.
enum class OriginCertainty {
  kUnknown,   ///< nothing leads to a place
  kExact,     ///< the instruction names the op
  kMerged,    ///< one collective for several ops that the compiler combined: all of them are listed
  kInferred,  ///< the instruction names no op; it is the nearest producer's, else user's
};

/// `exact`, `merged`, `inferred`, `unknown`
std::string_view to_string(OriginCertainty certainty);

/// A value: an op of the user's program that led to a collective.
struct OriginPlace {
  /// The op's number in the graph, if there is a graph and the module names one of its ops.
  std::optional<std::uint32_t> node;
  /// The op's name, `dot_general`; of a module from elsewhere its own name for it.
  std::string op;
  /// `demo.cc:42`; empty if not known.
  std::string place;
  /// The node, as Graph::find takes it: `7`, or `7.0.3` for one in a body of node 7.
  std::string path = {};

  /// The place, else the op.
  std::string to_string() const { return place.empty() ? op : place; }
  /// The path is another way to write the node.
  friend bool operator==(const OriginPlace& a, const OriginPlace& b) {
    return a.node == b.node && a.op == b.op && a.place == b.place;
  }
};

/// A value: the ops that a collective comes from.
struct CollectiveOrigin {
  OriginCertainty certainty = OriginCertainty::kUnknown;
  std::vector<OriginPlace> places;

  /// `demo.cc:42 (exact)`, `demo.cc:42, demo.cc:43 (merged)`, `an unknown place`
  std::string to_string() const;
  friend bool operator==(const CollectiveOrigin&, const CollectiveOrigin&) = default;
};

/// Who wanted a collective.
enum class CollectiveCause {
  kUnknown,
  kAsked,     ///< the user's program: its op is a collective or a sharding mark
  kInserted,  ///< the partitioner: its op is any other, and no mark follows it
};

/// `asked for`, `inserted`; empty if not known
std::string_view to_string(CollectiveCause cause);

/// How a compiler wrote a collective. Counts by kind are comparable only within one form.
enum class CollectiveForm {
  kPlain,
  kFused,           ///< inside a fusion, with computation around it
  kWindowedEinsum,  ///< a step of a loop that overlaps a gather or scatter with a matrix product
  kAcrossSlices,    ///< a send or receive of a collective that leaves the slice
};

/// `plain`, `fused`, `windowed einsum`, `across slices`
std::string_view to_string(CollectiveForm form);

/// A value: one collective instruction.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The instruction's name in the compiled module.
  std::string instruction;
  /// The mesh axes that it runs over, in mesh order; of a permutation those along which data moves.
  /// None if the groups are those of no axes, or there is no mesh. Empty: nothing leaves a device.
  std::optional<AxisList> axes = std::nullopt;
  /// Devices in a group; of a permutation 0.
  std::int64_t group_size = 0;
  /// How a permutation moves data, if that is the same for all devices.
  std::vector<AxisShift> shifts = {};
  /// Bytes that one device gives and gets, each time. A ragged all-to-all's are its buffers', an
  /// upper bound.
  std::int64_t bytes_in = 0;
  std::int64_t bytes_out = 0;
  /// 0: none
  std::int64_t channel = 0;
  /// In how many nested loops it stands.
  int loop_depth = 0;
  /// How often it runs in one run of the program: the trip counts of its loops, multiplied.
  std::int64_t executions = 1;
  /// False if a trip count is not known; that loop counts once.
  bool executions_known = true;
  /// It stands in a branch that may not be taken.
  bool conditional = false;
  /// How the compiler wrote it.
  CollectiveForm form = CollectiveForm::kPlain;
  /// It carries on the one of the same channel before it, of which the compiler spread the steps
  /// over several fusions. Its bytes are 0 here and counted there.
  bool continues = false;
  /// The value that it moves, as the user knows it: `w1 f32[1024,4096]`; empty if not known.
  std::string tensor = {};
  CollectiveOrigin origin = {};
  CollectiveCause cause = CollectiveCause::kUnknown;

  /// The larger of bytes_in and bytes_out: the whole of an all-gather's result or of a
  /// reduce-scatter's operand.
  std::int64_t bytes() const { return bytes_in > bytes_out ? bytes_in : bytes_out; }
  /// bytes() of all executions in one run of the program.
  std::int64_t total_bytes() const { return saturating_multiply(bytes(), executions); }
  /// `all-reduce on axis "model", 64 KiB, from demo.cc:42 (exact), inserted`
  std::string to_string() const;
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// A value: collectives that are alike but for their sizes and instruction names.
struct CollectiveGroup {
  /// One of them.
  Collective example;
  std::int64_t count = 0;
  /// Sums over the group, for one device, each once.
  std::int64_t bytes_in = 0;
  std::int64_t bytes_out = 0;
  /// Sum of Collective::bytes().
  std::int64_t bytes = 0;
  /// Sum of Collective::total_bytes(): with all executions.
  std::int64_t total_bytes = 0;

  /// `2 all-reduces on axis "model", 128 KiB, from demo.cc:42 (exact), inserted`
  std::string to_string() const;
};

/// Puts together collectives of one kind, axes, shifts, places, executions, form and cause, in
/// order of first appearance.
std::vector<CollectiveGroup> group_collectives(const std::vector<Collective>& collectives);

}  // namespace meshard
