// Maps instructions of a compiled module back to source lines.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/graph/graph.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/program_phases.h"
#include "meshard/hlo/module.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard {

/// True for a file that belongs to an installed package, to Python's own library, or to the
/// interpreter (`<frozen runpy>`): a user did not write it.
bool is_library_file(std::string_view path);

/// Value type: where an instruction comes from.
struct SourcePlace {
  /// The user's line, `train.py:88`; empty if unknown.
  std::string place;
  /// The line of a library's function that the user's line called, `linear.py:287`, if that is
  /// where the op was recorded; else empty.
  std::string via;
  friend bool operator==(const SourcePlace&, const SourcePlace&) = default;
};

/// Finds the source lines of a module's instructions. Files are named by as much of their path as
/// distinguishes them from the module's other files: `train.py`, or `model/layers.py` if there is
/// another `layers.py`.
class SourcePlaces {
 public:
  /// Independent of modules: files are named without their folders.
  SourcePlaces() = default;
  explicit SourcePlaces(const HloModule& module);

  /// The innermost line of the instruction's call stack that is not in a library file. If there is
  /// none, the innermost line.
  /// @pre the module outlives this object
  SourcePlace of(const HloMetadata& metadata) const;

 private:
  std::string line(const std::string& file, std::int64_t number) const;
  const HloModule* module_ = nullptr;
  std::unordered_map<std::string, std::string> short_names_;
};

/// Names the instructions that have no name of an op but a line of the module's own text, in the
/// file `-`: MLIR's parser gives ops without a location this place. An instruction with XLA's own
/// name, `call.1/all-reduce.1`, gets the line of the op if the text has one such op.
/// @param names the names of the ops, by line
void name_by_lines(const std::map<std::int64_t, std::string>& names, HloModule& module);

/// The node that an op_name refers to, as Graph::find takes it; empty if none. Lowering locates op
/// number 17 of the graph as `n17`, op number 3 of its first body as `n17.0.3`; compilers prepend
/// the names of enclosing calls: `call.1/n17`, `jit_main/n17`.
std::string_view node_path_in_op_name(std::string_view op_name);
/// The node's number in the graph; for an op in a body, that of the enclosing op.
std::optional<std::uint32_t> node_in_op_name(std::string_view op_name);

/// The op in an op_name that XLA made of an instruction, because the program gave it none:
/// `all_reduce` for `call.1/all-reduce.1`.
std::string op_of_instruction(std::string_view op_name);

/// True if an op_name ends with a collective that a program calls itself: `psum` of JAX,
/// `all_reduce` of StableHLO, or XLA's name for an instruction that was made of it.
bool names_called_collective(std::string_view op_name);

/// The last component of an op_name: `dot_general` for `jit(step)/while/body/dot_general`.
std::string_view last_part(std::string_view op_name);

/// True if the last part of an op_name begins or ends with the name of a primitive that has the
/// trait. JAX's primitives with these traits have the same names.
bool names_op_with(bool OpTraits::*trait, std::string_view op_name);

/// The names in an op_name, each with its prefix of enclosing calls. Compilers from PJRT API 0.106
/// on join the names of instructions that they combine: `main/(n3:n4)` is main/n3 and main/n4.
std::vector<std::string> names_in_op_name(std::string_view op_name);

/// The instruction (a loop, an async-start) whose body is being examined, and its computation.
struct EnclosingInstruction {
  const InstructionIndex* index = nullptr;
  const HloInstruction* instruction = nullptr;  // null: none
};

/// The op with this name in a module without a graph.
OriginPlace foreign_place(std::string_view op_name, SourcePlace place);

/// Finds the ops that instructions originate from.
class OriginFinder {
 public:
  /// With a graph, op numbers are looked up in it; without, the module's own names and lines are
  /// used. Keeps a handle on the graph.
  /// @param module the module whose call stacks tell the user's line; null: only the line of each
  /// instruction is used. @pre it outlives this object
  explicit OriginFinder(const Graph* graph, const HloModule* module = nullptr);

  /// Finds the ops of a collective, in this order:
  /// 1. The ops that the instruction names. A combined collective with several operands may name
  ///    only its first op: the others are named by the get-tuple-elements of its result, else by
  ///    the operands' producers.
  /// 2. If it names none, or only an argument: the nearest producer that names an op, else the
  ///    nearest user, else the op that `enclosing` names, else its neighbors, else the argument.
  CollectiveOrigin find(const InstructionIndex& index, const HloInstruction& instruction,
                        CollectiveKind kind, const EnclosingInstruction& enclosing = {}) const;

  /// The op that the instruction itself names; none if it names no op, or several.
  std::optional<OriginPlace> named(const HloInstruction& instruction) const;

  /// Who requested a collective of this origin; unknown without a graph. Also unknown if a reshard
  /// names an op whose result is marked, because it may belong to the op or to the mark. A mark
  /// that shards its own value over the gathered axes did not request the gather; its consumer did.
  CollectiveCause cause(const CollectiveOrigin& origin, CollectiveKind kind,
                        const std::optional<AxisList>& axes = std::nullopt) const;

  /// The same for a module of another framework. XLA's partitioner marks what it inserts with the
  /// frontend attribute `is_spmd_generated`, or `from-cross-replica-sharding`. A compiler may lose
  /// the mark; then the ops decide: collectives of an op that is one itself (`psum`, `ppermute`)
  /// were requested by the program, all others were not. If the ops are not certain, it is unknown,
  /// unless the program calls no collective at all, or its text has no locations: each of its ops
  /// then has the line of the text, so that an instruction without one is the compiler's, which
  /// names it after the op that needs it.
  /// @param calls_collectives whether some op of the module is a collective that the program calls
  /// @param names further names of such ops, and of ops without a location
  static CollectiveCause foreign_cause(const HloInstruction& instruction,
                                       const CollectiveOrigin& origin, bool calls_collectives,
                                       const stablehlo::ModuleOpNames& names = {});

 private:
  using Instructions = std::vector<const HloInstruction*>;
  // True for the name of an argument or of an instruction that the compiler made: a nearby op of
  // the program is more informative.
  bool is_weak(const OriginPlace& place) const;
  std::optional<OriginPlace> named(const HloMetadata& metadata, std::string_view op_name) const;
  bool splits_by(std::uint32_t number, const AxisList& axes) const;
  std::optional<OriginPlace> neighbor(const InstructionIndex& index,
                                      const HloInstruction& of) const;
  Instructions nearest(const InstructionIndex& index, const HloInstruction& from,
                       bool to_users) const;
  void add_merged(const InstructionIndex& index, const HloInstruction& instruction,
                  CollectiveOrigin& origin) const;

  std::optional<Graph> graph_;
  SourcePlaces places_;
  // Without a graph, by op_name: an instruction with a line. Compilers drop the lines of
  // instructions that they combine, and keep the names.
  std::map<std::string_view, const HloMetadata*> lines_;
  std::vector<bool> marked_;  // by node number: true if a sharding mark uses the node
};

/// Finds the phase of an op by its name in a compiled module: with a graph, the phase of the node
/// that it names; without one, the phase in the name (phase_of_op).
class ProgramPhases {
 public:
  /// For modules of JAX, and files of modules that meshard lowered.
  ProgramPhases() = default;
  explicit ProgramPhases(const Graph& graph) : graph_(graph) {}

  ProgramPhase of_op(std::string_view op_name) const;

 private:
  std::optional<GraphPhases> graph_;
};

}  // namespace meshard
