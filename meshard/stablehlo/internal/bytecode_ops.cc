// Tested in meshard/stablehlo/module_as_text_test.cc.
#include "meshard/stablehlo/internal/bytecode_ops.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard::stablehlo {
namespace {

// Ops with the same properties, whose names are in order, since bytecode stores them so; `?` marks
// those that are optional. From VhloOps.td, StablehloOps.td and ChloOps.td of StableHLO 1.20, and
// ops.td of Shardy.
struct PropertyNames {
  std::string_view ops, properties;
};
constexpr PropertyNames kPropertyNames[] = {
    {"func.func", "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?"},
    {"builtin.module", "sym_name? sym_visibility?"},
    {"vhlo.abs_v1 vhlo.add_v1 vhlo.after_all_v1 vhlo.and_v1 vhlo.async_done_v1 "
     "vhlo.async_start_v1 vhlo.atan2_v1 vhlo.bitcast_convert_v1 vhlo.case_v1 "
     "vhlo.cbrt_v1 vhlo.ceil_v1 vhlo.clamp_v1 vhlo.complex_v1 vhlo.convert_v1 "
     "vhlo.cosine_v1 vhlo.count_leading_zeros_v1 vhlo.create_token_v1 vhlo.divide_v1 "
     "vhlo.dynamic_pad_v1 vhlo.dynamic_reshape_v1 vhlo.dynamic_update_slice_v1 "
     "vhlo.exponential_minus_one_v1 vhlo.exponential_v1 vhlo.floor_v1 vhlo.if_v1 "
     "vhlo.imag_v1 vhlo.is_finite_v1 vhlo.log_plus_one_v1 vhlo.log_v1 vhlo.logistic_v1 "
     "vhlo.maximum_v1 vhlo.minimum_v1 vhlo.multiply_v1 vhlo.negate_v1 vhlo.not_v1 "
     "vhlo.optimization_barrier_v1 vhlo.or_v1 vhlo.partition_id_v1 vhlo.popcnt_v1 "
     "vhlo.power_v1 vhlo.real_dynamic_slice_v1 vhlo.real_v1 vhlo.remainder_v1 "
     "vhlo.replica_id_v1 vhlo.reshape_v1 vhlo.return_v1 vhlo.round_nearest_afz_v1 "
     "vhlo.round_nearest_even_v1 vhlo.rsqrt_v1 vhlo.select_v1 vhlo.shift_left_v1 "
     "vhlo.shift_right_arithmetic_v1 vhlo.shift_right_logical_v1 vhlo.sign_v1 "
     "vhlo.sine_v1 vhlo.sqrt_v1 vhlo.subtract_v1 vhlo.tan_v1 vhlo.tanh_v1 vhlo.tuple_v1 "
     "vhlo.uniform_dequantize_v1 vhlo.uniform_quantize_v1 vhlo.while_v1 vhlo.xor_v1",
     ""},
    {"vhlo.all_gather_v1 vhlo.all_gather_v2",
     "all_gather_dim channel_id replica_groups use_global_device_ids"},
    {"vhlo.all_reduce_v1 vhlo.all_reduce_v2", "channel_id replica_groups use_global_device_ids"},
    {"vhlo.all_to_all_v1 vhlo.all_to_all_v2",
     "channel_id concat_dimension replica_groups split_count split_dimension"},
    {"vhlo.batch_norm_grad_v1 vhlo.batch_norm_inference_v1 vhlo.batch_norm_training_v1",
     "epsilon feature_index"},
    {"vhlo.broadcast_in_dim_v1", "broadcast_dimensions"},
    {"vhlo.broadcast_v1", "broadcast_sizes"},
    {"vhlo.call_v1", "callee"},
    {"vhlo.cbrt_v2 vhlo.cosine_v2 vhlo.exponential_minus_one_v2 vhlo.exponential_v2 "
     "vhlo.log_plus_one_v2 vhlo.log_v2 vhlo.logistic_v2 vhlo.rsqrt_v2 vhlo.sine_v2 "
     "vhlo.sqrt_v2 vhlo.tan_v2 vhlo.tanh_v2",
     "result_accuracy"},
    {"vhlo.cholesky_v1", "lower"},
    {"vhlo.collective_broadcast_v1", "channel_id replica_groups"},
    {"vhlo.collective_broadcast_v2", "channel_id has_dynamic_root replica_groups"},
    {"vhlo.collective_permute_v1", "channel_id source_target_pairs"},
    {"vhlo.collective_reduce_v1",
     "channel_id has_dynamic_root replica_groups use_global_device_ids"},
    {"vhlo.compare_v1", "compare_type comparison_direction"},
    {"vhlo.composite_v1 vhlo.composite_v2", "composite_attributes decomposition name version"},
    {"vhlo.concatenate_v1 vhlo.get_dimension_size_v1 vhlo.set_dimension_size_v1", "dimension"},
    {"vhlo.constant_v1", "value"},
    {"vhlo.convolution_v1",
     "batch_group_count feature_group_count input_batch_dimension "
     "input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension "
     "kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation "
     "output_batch_dimension output_feature_dimension output_spatial_dimensions padding "
     "precision_config rhs_dilation window_reversal window_strides"},
    {"vhlo.custom_call_v1",
     "api_version backend_config call_target_name called_computations has_side_effect "
     "operand_layouts output_operand_aliases result_layouts"},
    {"vhlo.custom_call_v2",
     "api_version backend_config call_target_name called_computations has_side_effect "
     "operand_layouts output_operand_aliases result_layouts result_tilings"},
    {"vhlo.dot_general_v1",
     "lhs_batching_dimensions lhs_contracting_dimensions precision_config "
     "rhs_batching_dimensions rhs_contracting_dimensions"},
    {"vhlo.dot_general_v2",
     "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions "
     "lhs_component_count lhs_contracting_dimensions lhs_precision_type "
     "num_primitive_operations precision_config rhs_batching_dimensions "
     "rhs_component_count rhs_contracting_dimensions rhs_precision_type"},
    {"vhlo.dot_v1", "precision_config"},
    {"vhlo.dynamic_broadcast_in_dim_v1",
     "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"},
    {"vhlo.dynamic_conv_v2",
     "batch_group_count feature_group_count input_batch_dimension "
     "input_feature_dimension input_spatial_dimensions kernel_input_feature_dimension "
     "kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation "
     "output_batch_dimension output_feature_dimension output_spatial_dimensions "
     "precision_config rhs_dilation window_reversal window_strides"},
    {"vhlo.dynamic_gather_v1",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "start_index_map"},
    {"vhlo.dynamic_gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims start_index_map start_indices_batching_dims"},
    {"vhlo.dynamic_iota_v1 vhlo.iota_v1", "iota_dimension"},
    {"vhlo.dynamic_slice_v1", "slice_sizes"},
    {"vhlo.einsum_v1 vhlo.unary_einsum_v1", "einsum_config"},
    {"vhlo.fft_v1", "fft_length fft_type"},
    {"vhlo.func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"},
    {"vhlo.gather_v1",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes "
     "start_index_map"},
    {"vhlo.gather_v2",
     "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims "
     "operand_batching_dims slice_sizes start_index_map start_indices_batching_dims"},
    {"vhlo.get_tuple_element_v1", "index"},
    {"vhlo.infeed_v1", "infeed_config layout"},
    {"vhlo.map_v1 vhlo.reduce_v1 vhlo.reverse_v1", "dimensions"},
    {"vhlo.outfeed_v1", "outfeed_config"},
    {"vhlo.pad_v1", "edge_padding_high edge_padding_low interior_padding"},
    {"vhlo.recv_v1 vhlo.send_v1", "channel_id channel_type is_host_transfer"},
    {"vhlo.recv_v2 vhlo.send_v2", "channel_id channel_type is_host_transfer source_target_pairs"},
    {"vhlo.reduce_precision_v1", "exponent_bits mantissa_bits"},
    {"vhlo.reduce_scatter_v1", "channel_id replica_groups scatter_dimension use_global_device_ids"},
    {"vhlo.reduce_window_v1",
     "base_dilations padding window_dilations window_dimensions window_strides"},
    {"vhlo.rng_bit_generator_v1", "rng_algorithm"},
    {"vhlo.rng_v1", "rng_distribution"},
    {"vhlo.scatter_v1",
     "index_vector_dim indices_are_sorted inserted_window_dims "
     "scatter_dims_to_operand_dims unique_indices update_window_dims"},
    {"vhlo.scatter_v2",
     "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims "
     "scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices "
     "update_window_dims"},
    {"vhlo.select_and_scatter_v1", "padding window_dimensions window_strides"},
    {"vhlo.slice_v1", "limit_indices start_indices strides"},
    {"vhlo.sort_v1", "dimension is_stable"},
    {"vhlo.torch_index_select_v1", "batch_dims dim"},
    {"vhlo.transpose_v1", "permutation"},
    {"vhlo.triangular_solve_v1", "left_side lower transpose_a unit_diagonal"},
    {"stablehlo.all_gather",
     "all_gather_dim channel_handle? replica_groups use_global_device_ids?"},
    {"stablehlo.all_reduce", "channel_handle? replica_groups use_global_device_ids?"},
    {"stablehlo.all_to_all",
     "channel_handle? concat_dimension replica_groups split_count split_dimension"},
    {"stablehlo.batch_norm_grad stablehlo.batch_norm_inference "
     "stablehlo.batch_norm_training",
     "epsilon feature_index"},
    {"stablehlo.broadcast", "broadcast_sizes"},
    {"stablehlo.broadcast_in_dim", "broadcast_dimensions"},
    {"stablehlo.cbrt stablehlo.cosine stablehlo.exponential "
     "stablehlo.exponential_minus_one stablehlo.log stablehlo.log_plus_one "
     "stablehlo.logistic stablehlo.rsqrt stablehlo.sine stablehlo.sqrt stablehlo.tan "
     "stablehlo.tanh",
     "result_accuracy?"},
    {"stablehlo.cholesky", "lower?"},
    {"stablehlo.collective_broadcast", "channel_handle? has_dynamic_root? replica_groups"},
    {"stablehlo.collective_permute", "channel_handle? source_target_pairs"},
    {"stablehlo.collective_reduce",
     "channel_handle? has_dynamic_root? replica_groups use_global_device_ids?"},
    {"stablehlo.compare", "compare_type? comparison_direction"},
    {"stablehlo.composite", "composite_attributes? decomposition name version?"},
    {"stablehlo.concatenate stablehlo.get_dimension_size stablehlo.set_dimension_size",
     "dimension"},
    {"stablehlo.constant", "value"},
    {"stablehlo.convolution",
     "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? "
     "precision_config? rhs_dilation? window_reversal? window_strides?"},
    {"stablehlo.custom_call",
     "api_version? backend_config? call_target_name called_computations? "
     "has_side_effect? operand_layouts? output_operand_aliases? result_layouts? "
     "result_tilings?"},
    {"stablehlo.dot", "precision_config?"},
    {"stablehlo.dot_general", "algorithm? dot_dimension_numbers precision_config?"},
    {"stablehlo.dynamic_broadcast_in_dim",
     "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?"},
    {"stablehlo.dynamic_conv",
     "batch_group_count dimension_numbers feature_group_count lhs_dilation? "
     "precision_config? rhs_dilation? window_reversal? window_strides?"},
    {"stablehlo.dynamic_gather", "dimension_numbers indices_are_sorted?"},
    {"stablehlo.dynamic_iota stablehlo.iota", "iota_dimension"},
    {"stablehlo.dynamic_slice", "slice_sizes"},
    {"stablehlo.einsum stablehlo.unary_einsum", "einsum_config"},
    {"stablehlo.fft", "fft_length fft_type"},
    {"stablehlo.gather", "dimension_numbers indices_are_sorted? slice_sizes"},
    {"stablehlo.get_tuple_element", "index"},
    {"stablehlo.infeed", "infeed_config? layout?"},
    {"stablehlo.map stablehlo.reduce stablehlo.reverse", "dimensions"},
    {"stablehlo.outfeed", "outfeed_config?"},
    {"stablehlo.pad", "edge_padding_high edge_padding_low interior_padding"},
    {"stablehlo.recv stablehlo.send", "channel_handle is_host_transfer? source_target_pairs?"},
    {"stablehlo.reduce_precision", "exponent_bits mantissa_bits"},
    {"stablehlo.reduce_scatter",
     "channel_handle? replica_groups scatter_dimension use_global_device_ids?"},
    {"stablehlo.reduce_window",
     "base_dilations? padding? window_dilations? window_dimensions window_strides?"},
    {"stablehlo.rng", "rng_distribution"},
    {"stablehlo.rng_bit_generator", "rng_algorithm"},
    {"stablehlo.scatter", "indices_are_sorted? scatter_dimension_numbers unique_indices?"},
    {"stablehlo.select_and_scatter", "padding? window_dimensions? window_strides?"},
    {"stablehlo.slice", "limit_indices start_indices strides"},
    {"stablehlo.sort", "dimension? is_stable?"},
    {"stablehlo.torch_index_select", "batch_dims dim"},
    {"stablehlo.transpose", "permutation"},
    {"stablehlo.triangular_solve", "left_side lower transpose_a unit_diagonal"},
    {"chlo.broadcast_add chlo.broadcast_and chlo.broadcast_atan2 chlo.broadcast_complex "
     "chlo.broadcast_divide chlo.broadcast_maximum chlo.broadcast_minimum "
     "chlo.broadcast_multiply chlo.broadcast_next_after chlo.broadcast_or "
     "chlo.broadcast_polygamma chlo.broadcast_power chlo.broadcast_remainder "
     "chlo.broadcast_shift_left chlo.broadcast_shift_right_arithmetic "
     "chlo.broadcast_shift_right_logical chlo.broadcast_subtract chlo.broadcast_xor "
     "chlo.broadcast_zeta",
     "broadcast_dimensions?"},
    {"chlo.broadcast_compare", "broadcast_dimensions? compare_type? comparison_direction"},
    {"chlo.constant chlo.constant_like", "value"},
    {"chlo.ragged_dot", "precision_config? ragged_dot_dimension_numbers"},
    {"chlo.scan", "dimension is_associative? is_reverse? scan_dim_size?"},
    {"chlo.top_k", "is_stable? k"},
    {"sdy.all_gather", "gathering_axes out_sharding"},
    {"sdy.all_reduce", "out_sharding reduction_axes reduction_op?"},
    {"sdy.all_slice", "out_sharding slicing_axes"},
    {"sdy.all_to_all", "out_sharding params"},
    {"sdy.collective_permute", "out_sharding"},
    {"sdy.constant", "value"},
    {"sdy.data_flow_edge", "sharding?"},
    {"sdy.manual_computation", "in_shardings manual_axes out_shardings"},
    {"sdy.mesh", "mesh sym_name"},
    {"sdy.named_computation", "in_shardings? name out_shardings?"},
    {"sdy.propagation_barrier", "allowed_direction"},
    {"sdy.reduce_scatter", "out_sharding reduce_scatter_axes reduction_op?"},
    {"sdy.replicated_to_unreduced sdy.sharded_to_unreduced", "axes out_sharding"},
    {"sdy.reshard sdy.sharding_constraint", "sharding"},
    {"sdy.sharding_group", "group_id"},
};

// Calls `visit` with each word.
void for_each_word(std::string_view words, FunctionRef<bool(std::string_view)> visit) {
  while (!words.empty()) {
    std::size_t end = std::min(words.find(' '), words.size());
    if (!visit(words.substr(0, end))) return;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

bool has_word(std::string_view words, std::string_view word) {
  bool found = false;
  for_each_word(words, [&](std::string_view each) {
    found = each == word;
    return !found;
  });
  return found;
}

// Calls got properties for the attributes of their operands and results later than the others.
std::string_view call_properties(const BytecodeOp& op) {
  ByteCursor cursor(op.properties);
  std::size_t count = 0;
  for (; !cursor.at_end(); ++count) cursor.number();
  return count > 2 ? "arg_attrs? callee no_inline? res_attrs?" : "callee no_inline?";
}

std::string_view property_names(const BytecodeOp& op) {
  if (op.name == "func.call") return call_properties(op);
  for (const PropertyNames& each : kPropertyNames)
    if (has_word(each.ops, op.name)) return each.properties;
  if (!op.properties.empty() || op.name.starts_with("vhlo."))
    fail_bytecode(cat("the op `", op.name, "` is not known"));
  return "";
}

}  // namespace

std::vector<OpProperty> properties_of(const BytecodeOp& op) {
  std::vector<OpProperty> properties;
  for_each_word(property_names(op), [&](std::string_view name) {
    bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    properties.push_back({name, optional});
    return true;
  });
  return properties;
}

}  // namespace meshard::stablehlo
