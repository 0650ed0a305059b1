// Tested in meshard/stablehlo/module_as_text_test.cc.
#include "meshard/stablehlo/internal/versioned_ops.h"

#include <algorithm>
#include <optional>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {
namespace {

// Attributes that StableHLO has in one.
struct Joined {
  std::string_view ops, name, head;
  std::vector<std::string_view> members;
};

const std::vector<Joined>& joined_attributes() {
  static const std::vector<Joined> kJoined = {
      {"dot_general",
       "dot_dimension_numbers",
       "#stablehlo.dot<",
       {"lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions",
        "rhs_contracting_dimensions"}},
      {"dot_general",
       "algorithm",
       "#stablehlo.dot_algorithm<",
       {"lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
        "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation"}},
      {"gather dynamic_gather",
       "dimension_numbers",
       "#stablehlo.gather<",
       {"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
        "start_indices_batching_dims", "start_index_map", "index_vector_dim"}},
      {"scatter",
       "scatter_dimension_numbers",
       "#stablehlo.scatter<",
       {"update_window_dims", "inserted_window_dims", "input_batching_dims",
        "scatter_indices_batching_dims", "scatter_dims_to_operand_dims", "index_vector_dim"}},
      {"convolution dynamic_conv",
       "dimension_numbers",
       "#stablehlo.conv<raw ",
       {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
        "kernel_input_feature_dimension", "kernel_output_feature_dimension",
        "kernel_spatial_dimensions", "output_batch_dimension", "output_feature_dimension",
        "output_spatial_dimensions"}},
      {"send recv", "channel_handle", "#stablehlo.channel_handle<", {"channel_id", "channel_type"}},
  };
  return kJoined;
}

// Tensors that are arrays in StableHLO.
constexpr std::string_view kArrays[] = {"base_dilations",
                                        "broadcast_dimensions",
                                        "broadcast_sizes",
                                        "dimensions",
                                        "edge_padding_high",
                                        "edge_padding_low",
                                        "fft_length",
                                        "interior_padding",
                                        "known_expanding_dimensions",
                                        "known_nonexpanding_dimensions",
                                        "lhs_dilation",
                                        "limit_indices",
                                        "permutation",
                                        "rhs_dilation",
                                        "slice_sizes",
                                        "start_indices",
                                        "strides",
                                        "window_dilations",
                                        "window_dimensions",
                                        "window_strides"};

// Attributes that StableHLO has only where they are not these. Older plugins do not know all.
constexpr std::string_view kDefaults[][2] = {
    {"api_version", "1 : i32"},
    {"called_computations", "[]"},
    {"channel_id", "0 : i64"},
    {"compare_type", "#stablehlo<comparison_type NOTYPE>"},
    {"composite_attributes", "{}"},
    {"has_dynamic_root", "false"},
    {"has_side_effect", "false"},
    {"infeed_config", "\"\""},
    {"layout", "[]"},
    {"operand_layouts", "[]"},
    {"output_operand_aliases", "[]"},
    {"backend_config", "\"\""},
    {"backend_config", "{}"},
    {"result_accuracy",
     "#stablehlo.result_accuracy<mode = #stablehlo.result_accuracy_mode<DEFAULT>>"},
    {"result_layouts", "[]"},
    {"result_tilings", "[]"},
    {"use_global_device_ids", "false"},
};

bool has_name(std::string_view words, std::string_view name) {
  return cat(" ", words, " ").find(cat(" ", name, " ")) != std::string::npos;
}

std::string integers_text(const std::vector<std::int64_t>& numbers) {
  std::string out;
  for (std::int64_t number : numbers) append(out, cat(out.empty() ? "" : ", ", number));
  return out;
}

std::string symbol_text(std::string_view name) {
  std::string out;
  append_symbol(out, name);
  return out;
}

// `3` of `3 : i64`.
std::string_view without_type(std::string_view value) { return value.substr(0, value.find(" : ")); }

class PropertyConverter {
 public:
  PropertyConverter(std::string_view op, const BytecodeValues::Dictionary& given,
                    BytecodeValues& values)
      : op_(op), given_(given), values_(values) {}

  std::string run() {
    for (const Joined& joined : joined_attributes())
      if (has_name(joined.ops, op_)) join_attributes(joined);
    for (const auto& [name, attribute] : given_)
      if (std::ranges::find(joined_, name) == joined_.end()) convert(name, attribute);
    return std::move(out_);
  }

 private:
  std::optional<std::uint64_t> find(std::string_view name) const {
    for (const auto& [key, attribute] : given_)
      if (key == name) return attribute;
    return std::nullopt;
  }

  void add(std::string_view name, std::string_view value) {
    append(out_, cat(out_.empty() ? "" : ", ", name, value.empty() ? "" : " = ", value));
  }

  void join_attributes(const Joined& joined) {
    std::string out;
    bool is_given = false;
    for (std::string_view member : joined.members) {
      std::optional<std::uint64_t> attribute = find(member);
      if (!attribute) continue;
      joined_.push_back(member);
      std::string value = values_.attribute_text(*attribute);
      is_given = value != "none";
      if (!is_given) continue;
      if (value.starts_with("dense<"))
        value = cat("[", integers_text(values_.integers(*attribute)), "]");
      if (value == "[]") continue;
      std::string_view key = member == "channel_id"     ? "handle"
                             : member == "channel_type" ? "type"
                                                        : member;
      append(out, cat(out.empty() ? "" : ", ", key, " = ", without_type(value)));
    }
    if (is_given) add(joined.name, cat(joined.head, out, ">"));
  }

  void convert(std::string_view name, std::uint64_t attribute) {
    if (name == "callee" || name == "decomposition") {
      add(name, symbol_text(values_.text(attribute)));
      return;
    }
    std::string text = values_.attribute_text(attribute);
    for (const auto& [default_name, value] : kDefaults)
      if (default_name == name && value == text) return;
    const bool is_empty = text.starts_with("dense<> ");
    if (is_empty && (name.starts_with("known_") || name == "source_target_pairs")) return;
    if (name == "channel_id") {
      add("channel_handle",
          cat("#stablehlo.channel_handle<handle = ", without_type(text), ", type = 0>"));
    } else if (name == "use_global_device_ids" || name == "has_dynamic_root") {
      add(name, "");
    } else if (name == "called_computations") {
      std::string symbols;
      for (std::uint64_t called : values_.array(attribute))
        append(symbols, cat(symbols.empty() ? "" : ", ", symbol_text(values_.text(called))));
      add(name, cat("[", symbols, "]"));
    } else if (name == "window_reversal") {
      std::string flags;
      for (std::int64_t flag : values_.integers(attribute))
        append(flags, cat(flags.empty() ? ": " : ", ", flag ? "true" : "false"));
      add(name, cat("array<i1", flags, ">"));
    } else if (std::ranges::find(kArrays, name) != std::end(kArrays)) {
      std::string numbers = integers_text(values_.integers(attribute));
      add(name, cat("array<i64", numbers.empty() ? "" : ": ", numbers, ">"));
    } else {
      add(name, text);
    }
  }

  std::string_view op_;
  const BytecodeValues::Dictionary& given_;
  BytecodeValues& values_;
  std::vector<std::string_view> joined_;
  std::string out_;
};

}  // namespace

std::string_view unversioned_name(std::string_view op) {
  op.remove_prefix(std::min(op.find('.') + 1, op.size()));
  std::size_t version = op.rfind("_v");
  if (version != std::string_view::npos && version + 2 < op.size() &&
      op.find_first_not_of("0123456789", version + 2) == std::string_view::npos)
    op = op.substr(0, version);
  return op;
}

std::string versioned_properties(std::string_view name, const BytecodeValues::Dictionary& given,
                                 BytecodeValues& values) {
  return PropertyConverter(name, given, values).run();
}

}  // namespace meshard::stablehlo
