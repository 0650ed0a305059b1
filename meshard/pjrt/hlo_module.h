// A compiled program as the plugin tells it: what is needed to explain it, read from its bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/element_type.h"
#include "meshard/pjrt/hlo_sharding.h"

namespace meshard::pjrt {

/// The type of an HLO value: an array, a tuple, or a token.
struct HloShape {
  ElementType element = ElementType::kInvalid;  // of an array; kToken of a token
  std::vector<std::int64_t> dimensions;
  bool is_tuple = false;
  std::vector<HloShape> tuple;

  /// Bytes of a dense value; a tuple's is the sum of its parts. Elements of less than a byte are
  /// packed.
  std::int64_t byte_size() const;
  /// `f32[2,3]`, `(f32[2], s32[])`
  std::string to_string() const;
  friend bool operator==(const HloShape&, const HloShape&) = default;
};

/// Where an instruction came from.
struct HloMetadata {
  std::string op_name;
  std::string source_file;
  std::int64_t source_line = 0;
};

/// One instruction. Ids are the module's own; they name operands and computations.
struct HloInstruction {
  std::int64_t id = 0;
  std::string name;
  std::string opcode;
  HloShape shape;
  HloMetadata metadata;
  std::int64_t parameter_number = 0;
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> operands;
  std::vector<std::int64_t> called_computations;
  std::string custom_call_target;
  /// Of a collective. 0: none.
  std::int64_t channel_id = 0;
  bool use_global_device_ids = false;
  ReplicaGroups groups;
  std::vector<std::pair<std::int64_t, std::int64_t>> source_target_pairs;
  std::optional<OpSharding> sharding;
};

struct HloComputation {
  std::int64_t id = 0;
  std::string name;
  std::int64_t root = 0;  // id of an instruction
  std::vector<HloInstruction> instructions;

  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t instruction) const;
};

/// An output that lies in the memory of a parameter.
struct HloAlias {
  std::vector<std::int64_t> output_index;
  std::int64_t parameter = 0;
  std::vector<std::int64_t> parameter_index;
  bool must_alias = false;
};

/// A module: its computations, and what the partitioner decided about its boundary.
struct HloModule {
  std::string name;
  std::string entry_name;
  std::int64_t entry_id = 0;
  std::vector<HloComputation> computations;
  /// What one device takes and gives: shard shapes.
  std::vector<HloShape> parameters;
  HloShape result;
  std::vector<HloAlias> aliases;
  /// What the compiler chose; empty if the module does not say.
  std::optional<OpSharding> output_sharding;
  std::vector<OpSharding> parameter_shardings;
  /// Device ids by replica and partition: [partition][replica]. Empty if not given.
  std::vector<std::vector<std::int64_t>> device_assignment;

  /// Reads the bytes of Executable::optimized_program().
  /// @error data loss if they are damaged
  static Result<HloModule> from_bytes(std::string_view module_with_config);

  const HloComputation* find(std::int64_t computation) const;
  /// The computation that runs first. @pre the module has one, which from_bytes made sure of
  const HloComputation& entry() const;
};

}  // namespace meshard::pjrt
