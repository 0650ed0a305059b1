// The attributes of StableHLO that are more than a number.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/array/shape.h"

namespace meshard::stablehlo {

/// Which dimensions a dot_general contracts, and which it only walks along. Lists of equal place
/// belong together.
struct DotDimensionNumbers {
  Dimensions lhs_batching, rhs_batching;
  Dimensions lhs_contracting, rhs_contracting;
};

/// The dimensions of a gather, with the specification's names.
struct GatherDimensionNumbers {
  Dimensions offset_dims, collapsed_slice_dims;
  Dimensions operand_batching_dims, start_indices_batching_dims;
  Dimensions start_index_map;
  std::int64_t index_vector_dim = 0;
};

/// The dimensions of a scatter, with the specification's names.
struct ScatterDimensionNumbers {
  Dimensions update_window_dims, inserted_window_dims;
  Dimensions input_batching_dims, scatter_indices_batching_dims;
  Dimensions scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;
};

/// Where a convolution's operands and result keep their dimensions; `*_spatial` in the order of the
/// window.
struct ConvolutionDimensionNumbers {
  std::int64_t input_batch = 0, input_feature = 1;
  Dimensions input_spatial;
  std::int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dimensions kernel_spatial;
  std::int64_t output_batch = 0, output_feature = 1;
  Dimensions output_spatial;
};

/// `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>`. Empty lists are left out, as in
/// StableHLO's own printer.
void append_attribute(std::string& out, const DotDimensionNumbers& numbers);
void append_attribute(std::string& out, const GatherDimensionNumbers& numbers);
void append_attribute(std::string& out, const ScatterDimensionNumbers& numbers);
/// `#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`
void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers);

}  // namespace meshard::stablehlo
