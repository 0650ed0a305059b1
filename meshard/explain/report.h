// The report returned by explain().
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/logical.h"
#include "meshard/explain/cost/custom_call_use.h"
#include "meshard/explain/cost/memory_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/explain/cost/step_cost.h"
#include "meshard/explain/measured/measured_run.h"
#include "meshard/explain/process_map.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: how one argument, result or intermediate is sharded.
struct ValuePlacement {
  /// The name in the program: `params.w1`, `p['wq']`; for an intermediate, its op. Empty: no name.
  std::string name = {};
  /// The source line; empty if unknown.
  std::string place = {};
  TensorType type;
  /// The type in the compiled program: larger than `type` if the value is padded for its sharding.
  TensorType padded;
  /// The sharding in the compiled program; none on a single device without a mesh.
  std::optional<Sharding> sharding;
  /// True if the compiler chose the sharding, false if the program requested it.
  bool chosen_by_compiler = false;
  /// True if the argument's memory is reused for a result.
  bool donated = false;
  /// `pinned_host` if it is in the memory of the host. Empty: in the device's memory.
  std::string memory_kind = {};

  MESHARD_WRITTEN_FIELDS(name, place, type, padded, sharding, chosen_by_compiler, donated, shard(),
                         shard_bytes(), padding_bytes(), memory_kind)
  static constexpr FieldNotes kFieldNotes{.later = "memory_kind"};
  /// The type of one device's shard, including padding.
  TensorType shard() const;
  /// Bytes of one device's shard.
  std::int64_t shard_bytes() const { return shard().bytes(); }
  /// Bytes of padding over all devices, including replicas.
  std::int64_t padding_bytes() const;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`, `..., 1 KiB, in pinned_host memory`
  std::string to_string() const;
  friend bool operator==(const ValuePlacement&, const ValuePlacement&) = default;
};

/// Value type: the hardware that a program was compiled for.
struct TargetSummary {
  /// The target's name, `v6e:16x16`; for a plugin in this process, its platform, `cpu`.
  std::string name;
  /// The plugin's name of the devices, `TPU v6 lite`.
  std::string device_kind;
  std::int64_t devices = 1;
  /// The compiler's version text.
  std::string compiler;
  /// 0 if the program was compiled before.
  double compile_seconds = 0;

  MESHARD_FIELDS(name, device_kind, devices, compiler, compile_seconds)
  friend bool operator==(const TargetSummary&, const TargetSummary&) = default;
};

/// Options for printing a report.
struct ExplainOptions {
  /// Draws the mesh. Default: false. @error see picture(Mesh): too many devices.
  bool mesh_picture = false;
  /// Adds the part of each argument that each device receives; see argument_matrix(). Default:
  /// false.
  bool argument_matrix = false;
  /// Maximum number of lines for the collectives, for arguments and for results; reshards, buffers
  /// and notes get half as many. Omitted lines are counted. If there are more arguments or results,
  /// they are grouped by sharding. 0: print everything, one by one. Default: 8.
  std::size_t most_lines = 8;
};

/// Value type: what the compiler made of a program.
class ProgramReport {
 public:
  /// The contents of a report.
  struct Parts {
    /// The program's name.
    std::string name;
    /// The hardware that it was compiled for.
    TargetSummary target = {};
    /// The mesh that numbers the program's devices; none on a single device.
    std::optional<Mesh> mesh = std::nullopt;
    /// The processes of the mesh; none if they are not known, or there is one.
    std::optional<MeshProcesses> processes = std::nullopt;
    /// Device coordinates; none if the devices have no coordinates.
    std::optional<Topology> topology = std::nullopt;
    /// Parameters, then captured values.
    std::vector<ValuePlacement> arguments = {};
    /// Number of arguments that are captured values.
    std::size_t num_captured = 0;
    std::vector<ValuePlacement> results = {};
    /// Intermediate values whose sharding the compiler reported.
    std::vector<ValuePlacement> intermediates = {};
    /// The collective instructions, in module order.
    std::vector<Collective> collectives = {};
    /// The collectives that the instructions implement. If it is empty, the report merges the
    /// fragments of `collectives`.
    std::vector<LogicalCollective> logical_collectives = {};
    std::vector<Reshard> reshards = {};
    /// None if the plugin does not report it.
    std::optional<MemoryUse> memory = std::nullopt;
    /// Largest first; empty if the compiler did not report them.
    std::vector<BufferUse> largest_buffers = {};
    ProgramCost cost = {};
    /// None if the hardware's figures are unknown.
    std::optional<Roofline> roofline = std::nullopt;
    /// An estimate of the time. None if the hardware's figures are unknown.
    std::optional<Schedule> schedule = std::nullopt;
    std::vector<CustomCallUse> custom_calls = {};
    /// None if the program uses no host memory.
    std::optional<HostTransfers> host_transfers = std::nullopt;
    /// The steps of the module, in execution order.
    std::vector<TimelineEntry> timeline = {};
    /// Times of a trace; none if none is given.
    std::optional<MeasuredRun> measured = std::nullopt;
    /// Information needed to interpret the rest: rewrites by the compiler, missing data.
    std::vector<std::string> notes = {};
    /// The compiler's message if it refused the program for lack of memory. Then there is no
    /// compiled program, and only the inputs are reported. Empty: it compiled.
    std::string out_of_memory = {};

    MESHARD_WRITTEN_FIELDS(name, target, meshes(), mesh, topology, processes, arguments,
                           num_captured, results, intermediates, collectives, logical_collectives,
                           layers(), reshards, out_of_memory, fits(), memory, largest_buffers, cost,
                           roofline, schedule, custom_calls, host_transfers, measured, timeline,
                           notes)
    static constexpr FieldNotes kFieldNotes{
        .later =
            "processes logical_collectives layers() schedule custom_calls host_transfers "
            "measured"};
    /// All meshes that the report names, each once.
    std::vector<Mesh> meshes() const;
    /// The logical collectives by layer; empty if no layer is known.
    std::vector<LayerTraffic> layers() const { return layer_traffic(logical_collectives); }
    /// False if the program needs more memory than the device has. Also false if the compiler
    /// refused the program for lack of memory.
    bool fits() const;
  };
  explicit ProgramReport(Parts parts);

  const std::string& name() const { return parts_.name; }
  /// The mesh that numbers the program's devices; none on a single device.
  const std::optional<Mesh>& mesh() const { return parts_.mesh; }
  const std::vector<ValuePlacement>& arguments() const { return parts_.arguments; }
  std::size_t num_captured() const { return parts_.num_captured; }
  const std::vector<ValuePlacement>& results() const { return parts_.results; }
  const std::optional<MemoryUse>& memory() const { return parts_.memory; }
  bool fits() const { return parts_.fits(); }
  /// All contents.
  const Parts& parts() const { return parts_; }

  /// All collective instructions, in module order.
  const std::vector<Collective>& collectives() const { return parts_.collectives; }
  /// The collectives as the program has them: where a compiler writes one as several instructions
  /// (fragments in fusions, steps inside and between slices), they are one here. The counts of
  /// groups(), of the text, of expectations and of diff() are those.
  const std::vector<LogicalCollective>& logical_collectives() const {
    return parts_.logical_collectives;
  }
  /// The logical collectives grouped by group_collectives().
  const std::vector<CollectiveGroup>& groups() const { return groups_; }
  std::vector<LayerTraffic> layers() const { return parts_.layers(); }
  /// The collective instructions of one kind.
  std::vector<Collective> collectives(CollectiveKind kind) const;
  /// The collective instructions of one kind that run over exactly these axes, in mesh order.
  std::vector<Collective> collectives(CollectiveKind kind, const AxisList& axes) const;
  /// Sum of Collective::total_bytes() over all logical collectives.
  std::int64_t collective_bytes() const;

  /// The report on one screen. It shows mesh and target, whether the program fits, memory, time
  /// bounds, a line for each group of collectives (`1 all-reduce on axis "model", 64 KiB, from
  /// demo.cc:42 (exact), inserted`), a table of the layers if they are known, reshards with their
  /// causes, arguments, results, the largest buffers, and notes.
  std::string to_string(const ExplainOptions& options = {}) const;

 private:
  Parts parts_;
  std::vector<CollectiveGroup> groups_;
};

/// A text table with a row for each device and a column for each argument. Rows are labeled with
/// device ids, in the order of the program's logical devices. A cell shows the part of the argument
/// that the device receives: `0:4,0:8` is rows 0 to 3 and columns 0 to 7, `all` the whole argument,
/// `empty` no elements (only padding). Devices outside the mesh have no row, because they do not
/// run the program.
///
/// ```
/// device  0 w    1 x
/// 6       0:4    all
/// 4       4:8    all
/// ```
/// @param most_devices maximum number of rows; the number of omitted rows is printed; 0: no limit
std::string argument_matrix(const ProgramReport& report, std::size_t most_devices = 64);

}  // namespace meshard
