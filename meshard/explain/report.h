// What explain() answers.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/collective.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// A value: bytes that one device needs for a program, as the compiler counts them.
struct MemoryUse {
  std::int64_t arguments = 0;
  std::int64_t outputs = 0;
  /// Of the outputs, what lies in donated arguments.
  std::int64_t aliased = 0;
  std::int64_t temporaries = 0;
  /// The program itself. 0 where the compiler does not say.
  std::int64_t code = 0;
  /// The most that is alive at once. 0 where the compiler does not say.
  std::int64_t peak = 0;

  /// arguments + outputs - aliased + temporaries + code: what must fit if nothing else does.
  std::int64_t total() const { return arguments + outputs - aliased + temporaries + code; }
  /// `memory per device: peak 3 KiB; arguments 2 KiB, outputs 1 KiB, temporaries 0 B, aliased 0 B,
  /// code 0 B`
  std::string to_string() const;
  friend bool operator==(const MemoryUse&, const MemoryUse&) = default;
};

/// A value: how one argument or result lies on the devices.
struct ValuePlacement {
  TensorType type;
  /// What the program takes or gives: larger than `type` if the sharding does not divide it.
  TensorType padded;
  /// What the compiled program uses; none on one device without a mesh.
  std::optional<Sharding> sharding;
  /// True if the compiler chose the sharding, false if the program asked for it.
  bool chosen_by_compiler = false;

  /// One device's part, with its padding.
  TensorType shard() const;
  /// Bytes of padding on all devices together, each copy counted.
  std::int64_t padding_bytes() const;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`
  std::string to_string() const;
};

/// How a report is printed.
struct ExplainOptions {
  /// Draws the mesh. @error see picture(Mesh): too many devices.
  bool mesh_picture = false;
  /// Most lines for arguments, for results and for collectives; what is left out is counted. 0:
  /// all.
  std::size_t most_lines = 12;
};

/// A value: what the compiler made of a program.
class ProgramReport {
 public:
  /// What a report is made of.
  struct Parts {
    std::string name;
    std::optional<Mesh> mesh = std::nullopt;
    /// Parameters, then captured values.
    std::vector<ValuePlacement> arguments = {};
    /// How many of the arguments are captured values.
    std::size_t num_captured = 0;
    std::vector<ValuePlacement> results = {};
    std::vector<Collective> collectives = {};
    /// None if the plugin does not tell.
    std::optional<MemoryUse> memory = std::nullopt;
  };
  explicit ProgramReport(Parts parts);

  const std::string& name() const { return parts_.name; }
  /// The mesh that numbers the program's devices; none on one device.
  const std::optional<Mesh>& mesh() const { return parts_.mesh; }
  const std::vector<ValuePlacement>& arguments() const { return parts_.arguments; }
  std::size_t num_captured() const { return parts_.num_captured; }
  const std::vector<ValuePlacement>& results() const { return parts_.results; }
  const std::optional<MemoryUse>& memory() const { return parts_.memory; }

  /// Every collective, in the module's order.
  const std::vector<Collective>& collectives() const { return parts_.collectives; }
  /// Those that are alike but for size, together.
  const std::vector<CollectiveGroup>& groups() const { return groups_; }
  /// Those of a kind.
  std::vector<Collective> collectives(CollectiveKind kind) const;
  /// Those of a kind that run over exactly these axes, in mesh order.
  std::vector<Collective> collectives(CollectiveKind kind, const AxisList& axes) const;
  /// Sum of Collective::bytes() over all; one in a loop counts once.
  std::int64_t collective_bytes() const;

  /// One screen: mesh, memory, arguments, results, and one line for collectives that are alike:
  /// `1 all-reduce on axis "model", 64 KiB, from demo.cc:42 (exact), inserted`.
  std::string to_string(const ExplainOptions& options = {}) const;

 private:
  Parts parts_;
  std::vector<CollectiveGroup> groups_;
};

}  // namespace meshard
