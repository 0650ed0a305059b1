// The structured attributes of StableHLO ops.
#pragma once
#include <cstdint>
#include <string>

#include "meshard/array/shape.h"

namespace meshard::stablehlo {

/// The batching and contracting dimensions of a dot_general. The lists for lhs and rhs correspond
/// element by element.
struct DotDimensionNumbers {
  Dimensions lhs_batching, rhs_batching;
  Dimensions lhs_contracting, rhs_contracting;
};

/// The dimension numbers of a gather, named as in the specification.
struct GatherDimensionNumbers {
  Dimensions offset_dims, collapsed_slice_dims;
  Dimensions operand_batching_dims, start_indices_batching_dims;
  Dimensions start_index_map;
  std::int64_t index_vector_dim = 0;
};

/// The dimension numbers of a scatter, named as in the specification.
struct ScatterDimensionNumbers {
  Dimensions update_window_dims, inserted_window_dims;
  Dimensions input_batching_dims, scatter_indices_batching_dims;
  Dimensions scatter_dims_to_operand_dims;
  std::int64_t index_vector_dim = 0;
};

/// The dimension numbers of a convolution's operands and result. The `*_spatial` lists are in the
/// order of the window dimensions.
struct ConvolutionDimensionNumbers {
  std::int64_t input_batch = 0, input_feature = 1;
  Dimensions input_spatial;
  std::int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dimensions kernel_spatial;
  std::int64_t output_batch = 0, output_feature = 1;
  Dimensions output_spatial;
};

/// Appends `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>` or the like. Empty lists are
/// omitted, as by StableHLO's own printer.
void append_attribute(std::string& out, const DotDimensionNumbers& numbers);
void append_attribute(std::string& out, const GatherDimensionNumbers& numbers);
void append_attribute(std::string& out, const ScatterDimensionNumbers& numbers);
/// Appends `#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`.
void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers);

}  // namespace meshard::stablehlo
