// A compiled program, parsed from the plugin's bytes: the parts that explaining it requires, and
// where they are.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/hlo/shape.h"
#include "meshard/hlo/sharding.h"

namespace meshard {

/// Where an instruction came from.
struct HloMetadata {
  std::string op_name;
  /// From the instruction itself, otherwise from the innermost frame of its call stack.
  std::string source_file;
  std::int64_t source_line = 0;
  /// Index of a frame in the module's table of call stacks, from 1. 0: none.
  std::int64_t stack_frame = 0;
};

/// The contracting and batch dimensions of a dot.
struct HloDotDimensions {
  std::vector<std::int64_t> lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
  friend bool operator==(const HloDotDimensions&, const HloDotDimensions&) = default;
};

/// The dimension numbers of a convolution.
struct HloConvolutionDimensions {
  std::int64_t input_batch = 0, input_feature = 0;
  std::int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  std::int64_t output_batch = 0, output_feature = 0;
  std::vector<std::int64_t> input_spatial, kernel_spatial, output_spatial;
  friend bool operator==(const HloConvolutionDimensions&,
                         const HloConvolutionDimensions&) = default;
};

/// One dimension of a window that moves over an array.
struct HloWindowDimension {
  std::int64_t size = 1, stride = 1, padding_low = 0, padding_high = 0;
  std::int64_t window_dilation = 1, base_dilation = 1;
  friend bool operator==(const HloWindowDimension&, const HloWindowDimension&) = default;
};

/// One instruction. Ids are the module's own; operands and computations are referred to by id.
struct HloInstruction {
  std::int64_t id = 0;
  std::string name;
  std::string opcode;
  HloShape shape;
  HloMetadata metadata;
  std::int64_t parameter_number = 0;
  /// For a get-tuple-element.
  std::int64_t tuple_index = 0;
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> operands;
  std::vector<std::int64_t> called_computations;
  std::string custom_call_target;
  /// Text in a format that only the plugin's compiler defines, often JSON.
  std::string backend_config;
  /// For a fusion: `kLoop`, `kOutput`, `kCustom`, ...
  std::string fusion_kind;
  /// For a comparison: `LT`, `GE`, ...
  std::string comparison_direction;
  /// For a constant that is a single integer or bool.
  std::optional<std::int64_t> literal;
  std::optional<HloDotDimensions> dot;
  std::optional<HloConvolutionDimensions> convolution;
  std::vector<HloWindowDimension> window;
  std::int64_t feature_groups = 1, batch_groups = 1;
  std::vector<std::pair<std::string, std::string>> frontend_attributes;
  /// For a collective. 0: none.
  std::int64_t channel_id = 0;
  bool use_global_device_ids = false;
  ReplicaGroups groups;
  std::vector<std::pair<std::int64_t, std::int64_t>> source_target_pairs;
  std::optional<HloSharding> sharding;

  /// The value of a frontend attribute; empty if there is none.
  std::string_view frontend_attribute(std::string_view key) const;
  /// `all-reduce jit(f)/psum f32[8] (train.py:42)`: with the name in its metadata, if there is one.
  std::string to_string() const;
};

/// What the partitioner decided about the inputs and outputs of a module.
struct HloInterface {
  /// The parameters and result of one device: shard shapes.
  std::vector<HloShape> parameters;
  HloShape result;
  /// The compiler's choice; empty if the module does not record it.
  std::optional<HloSharding> output_sharding;
  std::vector<HloSharding> parameter_shardings;

  /// Reads the bytes of Executable::optimized_program() or of pjrt::interface_bytes(), and skips
  /// everything else in them.
  /// @error data loss if they are damaged
  static Result<HloInterface> from_bytes(std::string_view module_with_config);
};

/// A computation: the instructions of a function, a loop body, or a fusion.
struct HloComputation {
  std::int64_t id = 0;
  std::string name;
  std::int64_t root = 0;  // id of an instruction
  std::vector<HloInstruction> instructions;
  /// Ids in execution order; empty if the module has no schedule.
  std::vector<std::int64_t> schedule;

  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t instruction) const;
};

/// An output that aliases a parameter's memory.
struct HloAlias {
  std::vector<std::int64_t> output_index;
  std::int64_t parameter = 0;
  std::vector<std::int64_t> parameter_index;
  bool must_alias = false;
};

/// One frame of a call stack.
struct HloFrame {
  std::string file;
  std::string function;
  std::int64_t line = 0;
  /// The caller: an index in HloModule::frames, from 1. 0: none.
  std::int64_t parent = 0;
  friend bool operator==(const HloFrame&, const HloFrame&) = default;
};

/// A module: its computations, and what the partitioner decided about its inputs and outputs.
struct HloModule : HloInterface {
  std::string name;
  std::string entry_name;
  std::int64_t entry_id = 0;
  std::vector<HloComputation> computations;
  std::vector<HloAlias> aliases;
  /// The frames of the call stacks; HloMetadata::stack_frame is an index in this list, from 1. A
  /// frame that the module refers to but does not describe is empty.
  std::vector<HloFrame> frames;
  /// Device ids by partition and replica: [partition][replica]. Empty if not present.
  std::vector<std::vector<std::int64_t>> device_assignment;

  /// Reads the bytes of Executable::optimized_program(). Instructions that refer to a frame of a
  /// call stack get the innermost frame's file and line.
  /// @error data loss if they are damaged
  static Result<HloModule> from_bytes(std::string_view module_with_config);

  const HloComputation* find(std::int64_t computation) const;
  /// The entry computation. @pre the module has one, which from_bytes ensures
  const HloComputation& entry() const;
};

/// A view of one computation for looking up instructions by id, and their users.
class InstructionIndex {
 public:
  /// @pre the computation outlives the index
  explicit InstructionIndex(const HloComputation& computation);

  const HloComputation& computation() const { return *computation_; }
  /// The instruction with this id, or null.
  const HloInstruction* find(std::int64_t id) const;
  /// Operand `number` of an instruction, or null.
  const HloInstruction* operand(const HloInstruction& instruction, std::size_t number) const;
  std::vector<const HloInstruction*> operands(const HloInstruction& instruction) const;
  /// The instructions that use the result, in module order.
  std::vector<const HloInstruction*> users(const HloInstruction& instruction) const;
  /// The computation's result, or null.
  const HloInstruction* root() const { return find(computation_->root); }
  /// The instructions in execution order: the schedule's if it lists each exactly once, else the
  /// module's.
  std::vector<const HloInstruction*> in_run_order() const;

 private:
  const HloComputation* computation_;
  std::unordered_map<std::int64_t, std::size_t> position_;
  // Positions of users by position; built lazily. Not thread-safe.
  mutable std::vector<std::vector<std::size_t>> users_;
};

/// A view of a module for looking up computations by id.
class ModuleIndex {
 public:
  /// @pre the module outlives the index
  explicit ModuleIndex(const HloModule& module);

  const HloModule& module() const { return *module_; }
  /// The computation with this id, or null. If ids repeat, the first one.
  const InstructionIndex* find(std::int64_t computation) const;
  /// @pre the module has an entry computation; HloModule::from_bytes checks this
  const InstructionIndex& entry() const { return *find(module_->entry_id); }
  /// The computation of an instruction's call number `number`, or null.
  const InstructionIndex* called(const HloInstruction& instruction, std::size_t number = 0) const;

 private:
  const HloModule* module_;
  std::unordered_map<std::int64_t, std::unique_ptr<const InstructionIndex>> computations_;
};

}  // namespace meshard
