// What explain() answers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/explain/memory_use.h"
#include "meshard/explain/reshard.h"
#include "meshard/explain/roofline.h"
#include "meshard/explain/value_placement.h"
#include "meshard/mesh/mesh.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// A value: the hardware that a program was compiled for.
struct TargetSummary {
  /// `v6e:16x16`; of the plugin in this process its platform, `cpu`.
  std::string name;
  /// `TPU v6 lite`
  std::string device_kind;
  std::int64_t devices = 1;
  /// The compiler's own version text.
  std::string compiler;
  /// 0 if it was compiled before.
  double compile_seconds = 0;
  friend bool operator==(const TargetSummary&, const TargetSummary&) = default;
};

/// How a report is printed.
struct ExplainOptions {
  /// Draws the mesh. @error see picture(Mesh): too many devices.
  bool mesh_picture = false;
  /// Adds which part of which argument each device is given; see argument_matrix().
  bool argument_matrix = false;
  /// Most lines for the collectives, for arguments and for results; of reshards, buffers and notes
  /// half as many. What is left out is counted. More arguments or results are told by sharding. 0:
  /// all, one by one.
  std::size_t most_lines = 8;
};

/// A value: what the compiler made of a program.
class ProgramReport {
 public:
  /// What a report is made of.
  struct Parts {
    std::string name;
    TargetSummary target = {};
    std::optional<Mesh> mesh = std::nullopt;
    /// Where the devices sit; none if they have no places.
    std::optional<Topology> topology = std::nullopt;
    /// Parameters, then captured values.
    std::vector<ValuePlacement> arguments = {};
    /// How many of the arguments are captured values.
    std::size_t num_captured = 0;
    std::vector<ValuePlacement> results = {};
    /// Values inside whose sharding the compiler told.
    std::vector<ValuePlacement> intermediates = {};
    std::vector<Collective> collectives = {};
    std::vector<Reshard> reshards = {};
    /// None if the plugin does not tell.
    std::optional<MemoryUse> memory = std::nullopt;
    /// Largest first; empty if the compiler did not tell.
    std::vector<BufferUse> largest_buffers = {};
    ProgramCost cost = {};
    /// None if the hardware's figures are not known.
    std::optional<Roofline> roofline = std::nullopt;
    std::vector<TimelineEntry> timeline = {};
    /// What a reader must know to read the rest right: rewritings by the compiler, what is missing.
    std::vector<std::string> notes = {};
    /// The compiler's words if it refused the program for lack of memory: then there is no compiled
    /// program, and what is told of it is what it was given. Empty: it compiled.
    std::string out_of_memory = {};
  };
  explicit ProgramReport(Parts parts);

  const std::string& name() const { return parts_.name; }
  /// The mesh that numbers the program's devices; none on one device.
  const std::optional<Mesh>& mesh() const { return parts_.mesh; }
  const std::vector<ValuePlacement>& arguments() const { return parts_.arguments; }
  std::size_t num_captured() const { return parts_.num_captured; }
  const std::vector<ValuePlacement>& results() const { return parts_.results; }
  const std::optional<MemoryUse>& memory() const { return parts_.memory; }
  /// False if the compiler refused the program for lack of memory, or it needs more than the device
  /// has.
  bool fits() const;
  /// All of it.
  const Parts& parts() const { return parts_; }

  /// Every collective, in the module's order.
  const std::vector<Collective>& collectives() const { return parts_.collectives; }
  /// Those that are alike but for size, together.
  const std::vector<CollectiveGroup>& groups() const { return groups_; }
  /// Those of a kind.
  std::vector<Collective> collectives(CollectiveKind kind) const;
  /// Those of a kind that run over exactly these axes, in mesh order.
  std::vector<Collective> collectives(CollectiveKind kind, const AxisList& axes) const;
  /// Sum of Collective::bytes() over all, each as often as it runs.
  std::int64_t collective_bytes() const;

  /// One screen: mesh and target, whether it fits, memory, the bounds of its time, a line for
  /// collectives that are alike (`1 all-reduce on axis "model", 64 KiB, from demo.cc:42 (exact),
  /// inserted`), reshards with their causes, arguments, results, the largest buffers, notes.
  std::string to_string(const ExplainOptions& options = {}) const;

 private:
  Parts parts_;
  std::vector<CollectiveGroup> groups_;
};

}  // namespace meshard
