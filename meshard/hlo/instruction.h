// One instruction of a compiled module: the fields that explaining the module requires.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/hlo/replica_groups.h"
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
};

}  // namespace meshard
