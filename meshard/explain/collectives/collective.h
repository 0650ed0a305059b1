// Description of one collective of a compiled program.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/base/saturating.h"
#include "meshard/graph/program_phases.h"
#include "meshard/mesh/axis_ref.h"

namespace meshard {

template <>
struct EnumNames<ProgramPhase> {
  using enum ProgramPhase;
  static constexpr EnumName<ProgramPhase> kNames[] = {{kUnknown, "unknown"},
                                                      {kForward, "forward"},
                                                      {kBackward, "backward"},
                                                      {kOptimizer, "optimizer"}};
};

/// `forward`, `backward`, `optimizer`; empty if unknown
std::string_view to_string(ProgramPhase phase);

/// Appends a value that the list does not have.
template <class T>
void add_once(std::vector<T>& list, T value) {
  for (const auto& each : list)
    if (each == value) return;
  list.push_back(std::move(value));
}

/// The phase that an op_name of JAX states: `transpose(jvp())` marks the backward pass, `jvp()` the
/// forward pass of a function that is differentiated. Files of meshard's own modules have `jvp()/`,
/// `transpose(jvp())/` and `optimizer()/` before an op's name. Unknown for other names.
ProgramPhase phase_of_op(std::string_view op_name);

/// The name without the phase that a file of a meshard module has before it: `matmul` for
/// `transpose(jvp())/matmul`. Names of JAX begin with a function, and stay.
std::string_view without_phase(std::string_view op_name);

/// The named scopes in an op_name of JAX, which are the layers: `MLP/b0_up` for
/// `jit(step)/transpose(jvp(MLP))/b0_up/dot_general`. Names of functions, loops, checkpoints and
/// einsums are not scopes. Empty if there is none.
std::string op_scope(std::string_view op_name);

/// The scope that contains both: `MLP` for `MLP/b0` and `MLP/b1`.
std::string common_scope(std::string_view a, std::string_view b);

/// The op within its layer, the same for the forward and the backward pass: `attn/btd,dhk->bthk/
/// dot_general` for `jit(step)/transpose(jvp())/while/body/attn/btd,dhk->bthk/dot_general`. Empty
/// for a name that is not a path.
std::string op_in_layer(std::string_view op_name);

/// The keys of a value in a tree: `blocks`, `3` and `w1` for `params['blocks'][3]['w1']`. Empty for
/// a value outside every tree.
std::vector<std::string> tree_keys(std::string_view name);

/// The folder of a parameter in a tree: `blocks/3/mlp` for `params['blocks'][3]['mlp']['w1']`,
/// `b0_up` for `p['b0_up']['kernel']`. Empty if there is none.
std::string scope_of_parameter(std::string_view name);

/// What a collective moves or adds up.
enum class PurposeKind {
  kUnknown,
  kWeight,       ///< the value of arguments that the program also updates
  kArgument,     ///< the value of other arguments: a batch, a state, weights that stay as they are
  kGradient,     ///< the gradients of arguments: their sum over devices, or an exchange of them
  kUpdate,       ///< the new value of arguments, after the optimizer
  kResult,       ///< the sum of results of the program, such as the loss
  kActivations,  ///< values between layers, or partial sums of them
  kReshard,      ///< a value between layers whose sharding changes
  kUser,         ///< a collective that the program itself calls for a value that is none of these
};

template <>
struct EnumNames<PurposeKind> {
  using enum PurposeKind;
  static constexpr EnumName<PurposeKind> kNames[] = {
      {kUnknown, "unknown"},         {kWeight, "weight"},   {kArgument, "argument"},
      {kGradient, "gradient"},       {kUpdate, "update"},   {kResult, "result"},
      {kActivations, "activations"}, {kReshard, "reshard"}, {kUser, "user"}};
};

/// How a purpose was found.
enum class PurposeCertainty {
  kUnknown,
  kExact,     ///< the data flow of the compiled module shows it
  kInferred,  ///< some of it is concluded from the names of neighboring ops
};

template <>
struct EnumNames<PurposeCertainty> {
  using enum PurposeCertainty;
  static constexpr EnumName<PurposeCertainty> kNames[] = {
      {kUnknown, "unknown"}, {kExact, "exact"}, {kInferred, "inferred"}};
};

/// Value type: what a collective is for.
struct CollectivePurpose {
  PurposeKind kind = PurposeKind::kUnknown;
  PurposeCertainty certainty = PurposeCertainty::kUnknown;
  /// The arguments (for a result: the results) concerned, by name: `params['w1']`, or `argument 3`.
  std::vector<std::string> names = {};
  /// The layer: the op's scope `MLP/b0_up`, else the parameters' folder. A collective in a loop
  /// is in `loop` or `loop/attn`. Of a collective for several layers, their common part, `MLP`.
  /// Empty if unknown.
  std::string layer = {};
  ProgramPhase phase = ProgramPhase::kUnknown;
  /// For a reshard: the shardings before and after, `P("data", none)`; empty if unknown.
  std::string from = {}, to = {};

  MESHARD_FIELDS(kind, certainty, names, layer, phase, from, to)
  friend bool operator==(const CollectivePurpose&, const CollectivePurpose&) = default;
};

/// The arguments of a purpose in a line of text: ` of weight w1`, ` of weights (w1, w2, w3, ...)`,
/// ` of the gradients of (w1, w2)`. Empty for a purpose without names. `names` has those of all
/// collectives of a line.
std::string purpose_text(PurposeKind kind, const std::vector<std::string>& names);

/// The layers in a line of text: ` in b0_up`, ` in 6 layers (b0_up, b1_up, ...)`; empty if there
/// are none, or only `loop`.
std::string layers_text(const std::vector<std::string>& layers);

/// Kinds of collectives. Sends and receives are separate kinds, because a compiler may use them
/// instead of a permutation.
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

template <>
struct EnumNames<CollectiveKind> {
  using enum CollectiveKind;
  static constexpr EnumName<CollectiveKind> kNames[] = {
      {kAllReduce, "all-reduce"},
      {kAllGather, "all-gather"},
      {kReduceScatter, "reduce-scatter"},
      {kAllToAll, "all-to-all"},
      {kRaggedAllToAll, "ragged-all-to-all"},
      {kCollectivePermute, "collective-permute"},
      {kCollectiveBroadcast, "collective-broadcast"},
      {kSend, "send"},
      {kReceive, "recv"}};
};

/// True for the kinds that add up what devices have.
constexpr bool is_reduction(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}
/// True for the kinds in which each device sends a part to each other one.
constexpr bool is_exchange(CollectiveKind kind) {
  return kind == CollectiveKind::kAllToAll || kind == CollectiveKind::kRaggedAllToAll;
}
/// True for the kinds in which a device sends to one other device.
constexpr bool is_permutation(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectivePermute || kind == CollectiveKind::kSend ||
         kind == CollectiveKind::kReceive;
}

/// Value type: a shift in which every device sends to the device `by` positions further. Positions
/// count along `axes`, flattened into one axis whose last axis runs fastest. At the
/// end, the shift wraps around or stops.
struct AxisShift {
  AxisList axes;
  /// In (-n/2, n/2] for n positions along the axes: +1 is the next device.
  std::int64_t by = 0;
  bool wraps = true;

  MESHARD_FIELDS(axes, by, wraps)
  static constexpr FieldNotes kFieldNotes{.negative = "by"};
  /// `"model" by +1`, `{"data", "model"} by -1 without wrapping`
  std::string to_string() const;
  friend bool operator==(const AxisShift&, const AxisShift&) = default;
};

/// How the source location of a collective was found.
enum class OriginCertainty {
  kUnknown,   ///< no location found
  kExact,     ///< the instruction names the op
  kMerged,    ///< the compiler combined the collectives of several ops; all are listed
  kInferred,  ///< the instruction names no op: the nearest producer's, else the nearest user's
};

template <>
struct EnumNames<OriginCertainty> {
  using enum OriginCertainty;
  static constexpr EnumName<OriginCertainty> kNames[] = {
      {kUnknown, "unknown"}, {kExact, "exact"}, {kMerged, "merged"}, {kInferred, "inferred"}};
};

/// Value type: an op of the user's program that a collective originates from.
struct OriginPlace {
  /// The op's number in the graph; none without a graph, or if the module names no op of it.
  std::optional<std::uint32_t> node;
  /// The op's name, `dot_general`; for a module from elsewhere, that module's name for the op.
  std::string op;
  /// The source line, `demo.cc:42`; empty if unknown.
  std::string place;
  /// The node, as Graph::find takes it: `7`, or `7.0.3` for one in a body of node 7. Without a
  /// graph, the module's own name for the op, if it says more than `op`.
  std::string path = {};
  /// The line of a library's function between the user's line and the op, `linear.py:287`; empty
  /// if there is none.
  std::string via = {};

  MESHARD_FIELDS(node, op, place, via, path)
  static constexpr FieldNotes kFieldNotes{.later = "via", .local = "path"};
  /// The place; if empty, the op.
  std::string to_string() const { return place.empty() ? op : place; }
  /// The path of a node is not compared: it identifies the same node as `node`.
  friend bool operator==(const OriginPlace& a, const OriginPlace& b) {
    return a.node == b.node && a.op == b.op && a.place == b.place && a.via == b.via &&
           (a.node || a.path == b.path);
  }
};

/// Value type: the ops that a collective originates from.
struct CollectiveOrigin {
  OriginCertainty certainty = OriginCertainty::kUnknown;
  std::vector<OriginPlace> places;

  MESHARD_FIELDS(certainty, places)
  /// `demo.cc:42 (exact)`, `demo.cc:42, demo.cc:43 (merged)`, `train.py:88, via linear.py:287
  /// (exact)`, `an unknown place`
  std::string to_string() const;
  friend bool operator==(const CollectiveOrigin&, const CollectiveOrigin&) = default;
};

/// Who requested a collective.
enum class CollectiveCause {
  kUnknown,
  /// Requested by the program: its op is a collective or, in a graph of meshard, a sharding mark.
  kAsked,
  /// Inserted by the partitioner: its op is any other op, not followed by a mark; or, in a module
  /// of another framework, the partitioner marked the instruction as its own.
  kInserted,
};

template <>
struct EnumNames<CollectiveCause> {
  using enum CollectiveCause;
  static constexpr EnumName<CollectiveCause> kNames[] = {
      {kUnknown, "unknown"}, {kAsked, "asked for"}, {kInserted, "inserted"}};
};

/// `asked for`, `inserted`; empty if unknown
std::string_view to_string(CollectiveCause cause);

/// How the compiler wrote a collective. Counts by kind are comparable only within one form.
enum class CollectiveForm {
  kPlain,
  kFused,           ///< inside a fusion, with computation around it
  kWindowedEinsum,  ///< a step of a loop that overlaps a gather or scatter with a matrix product
  kAcrossSlices,    ///< a send or receive of a collective between slices
};

template <>
struct EnumNames<CollectiveForm> {
  using enum CollectiveForm;
  static constexpr EnumName<CollectiveForm> kNames[] = {{kPlain, "plain"},
                                                        {kFused, "fused"},
                                                        {kWindowedEinsum, "windowed einsum"},
                                                        {kAcrossSlices, "across slices"}};
};

/// ` x 12`, ` per iteration of a loop of unknown length`, ` if its branch is taken`, or several of
/// them. Empty for a single execution.
std::string repetition_text(std::int64_t executions, bool executions_known, bool conditional);

/// Value type: one collective instruction.
struct Collective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The instruction's name in the compiled module.
  std::string instruction;
  /// The mesh axes that the collective runs over, in mesh order; for a permutation, the axes along
  /// which data moves. None if the groups match no axes, or there is no mesh. Empty: no data leaves
  /// a device.
  std::optional<AxisList> axes = std::nullopt;
  /// Number of devices in a group; 0 for a permutation.
  std::int64_t group_size = 0;
  /// How a permutation moves data, if all devices move it alike.
  std::vector<AxisShift> shifts = {};
  /// Bytes that one device sends in one execution. For a ragged all-to-all, the buffer's size,
  /// which is an upper bound.
  std::int64_t bytes_in = 0;
  /// Bytes that one device receives in one execution.
  std::int64_t bytes_out = 0;
  /// Channel id; 0: none.
  std::int64_t channel = 0;
  /// Number of nested loops that contain the instruction.
  int loop_depth = 0;
  /// Number of executions in one run of the program: the product of the enclosing trip counts.
  std::int64_t executions = 1;
  /// False if a trip count is unknown; such a loop counts as one iteration.
  bool executions_known = true;
  /// True if the instruction is in a conditional branch, which may not be taken.
  bool conditional = false;
  /// How the compiler wrote the collective.
  CollectiveForm form = CollectiveForm::kPlain;
  /// True if this instruction continues an earlier one of the same channel: the compiler spread the
  /// steps of one collective over several fusions. The bytes are counted there and are 0 here.
  bool continues = false;
  /// True if data goes from one process to another. Always false if the processes are not known.
  bool across_processes = false;
  /// The value that is moved, in the user's terms: `w1 f32[1024,4096]`; empty if unknown.
  std::string tensor = {};
  CollectiveOrigin origin = {};
  CollectiveCause cause = CollectiveCause::kUnknown;
  /// What it is for.
  CollectivePurpose purpose = {};

  MESHARD_FIELDS(kind, instruction, axes, group_size, shifts, bytes_in, bytes_out, channel,
                 loop_depth, executions, executions_known, conditional, form, continues,
                 across_processes, tensor, origin, cause, purpose)
  static constexpr FieldNotes kFieldNotes{.later = "across_processes purpose"};
  /// The larger of bytes_in and bytes_out: the result of an all-gather, or the operand of a
  /// reduce-scatter.
  std::int64_t bytes() const { return bytes_in > bytes_out ? bytes_in : bytes_out; }
  /// bytes() over all executions in one run of the program.
  std::int64_t total_bytes() const { return saturating_multiply(bytes(), executions); }
  /// `all-reduce on axis "model", 64 KiB, from demo.cc:42 (exact), inserted`
  std::string to_string() const;
  friend bool operator==(const Collective&, const Collective&) = default;
};

/// Value type: collectives that differ only in size, instruction name, and the names and layer of
/// their purpose.
struct CollectiveGroup {
  /// One collective of the group.
  Collective example;
  std::int64_t count = 0;
  /// Sums over the group for one device, one execution each.
  std::int64_t bytes_in = 0;
  std::int64_t bytes_out = 0;
  /// Sum of Collective::bytes().
  std::int64_t bytes = 0;
  /// Sum of Collective::total_bytes(), over all executions.
  std::int64_t total_bytes = 0;
  /// The names and the layers of the purposes of all, in order of first appearance.
  std::vector<std::string> names = {}, layers = {};

  /// `2 all-reduces on axis "model", 128 KiB, from demo.cc:42 (exact), inserted`
  std::string to_string() const;
};

/// Groups collectives with the same kind, axes, shifts, places, executions, form, cause, phase and
/// kind of purpose. Groups are in order of first appearance.
std::vector<CollectiveGroup> group_collectives(const std::vector<Collective>& collectives);

/// How a value changes its sharding.
enum class ReshardKind {
  kGather,             ///< a dimension becomes whole: an all-gather
  kExchange,           ///< sharding moves to another dimension or axis: all-to-all, permutation
  kFullRematerialize,  ///< every device materializes the whole value, then slices it
};

template <>
struct EnumNames<ReshardKind> {
  using enum ReshardKind;
  static constexpr EnumName<ReshardKind> kNames[] = {
      {kGather, "gather"}, {kExchange, "exchange"}, {kFullRematerialize, "full rematerialization"}};
};

/// Value type: one reshard in the compiled program.
struct Reshard {
  ReshardKind kind = ReshardKind::kGather;
  /// The instruction in the compiled module: the collective, or the copy.
  std::string instruction = {};
  /// The value's global type, `f32[4096,4096]`; empty if unknown.
  std::string type = {};
  /// Shardings before and after, as text; empty if unknown.
  std::string from = {}, to = {};
  /// Bytes that one device receives in one execution.
  std::int64_t bytes = 0;
  /// Number of executions in one run.
  std::int64_t executions = 1;
  CollectiveOrigin origin = {};
  /// Who requested it.
  CollectiveCause who = CollectiveCause::kUnknown;
  /// The reason: `matmul at gpt.cc:42 needs all of dimension 1, which is split by "model"`.
  std::string cause = {};

  MESHARD_FIELDS(kind, instruction, type, from, to, bytes, executions, origin, who, cause)
  std::string to_string() const;
  friend bool operator==(const Reshard&, const Reshard&) = default;
};

}  // namespace meshard
