#include "meshard/lowering/module_rules.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include "meshard/graph/op_def.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/convolution.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/dot_general.h"
#include "meshard/ops/fft.h"
#include "meshard/ops/gather.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reduce_window.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/rng_bit_generator.h"
#include "meshard/ops/scatter.h"
#include "meshard/ops/slicing.h"
#include "meshard/ops/sort.h"
#include "meshard/ops/triangular_solve.h"

namespace meshard {
namespace {

using stablehlo::integers_of;

// One op, with what its readers need.
struct OpText {
  const stablehlo::Module& module;
  const stablehlo::ModuleOp& op;
  std::span<const TensorType> operands, results;

  /// The value of the first attribute that is there; empty if none is.
  std::string_view attribute(std::initializer_list<std::string_view> names) const {
    for (std::string_view name : names)
      for (const stablehlo::ModuleAttribute& one : op.attributes)
        if (one.name == name) return module.resolve(one.value);
    return {};
  }
  Dimensions list(std::initializer_list<std::string_view> names) const {
    std::vector<std::int64_t> found = integers_of(attribute(names));
    return Dimensions(found.begin(), found.end());
  }
  /// A list with `count` entries; all are `otherwise` if it is absent.
  Dimensions list_of(std::initializer_list<std::string_view> names, std::size_t count,
                     std::int64_t otherwise) const {
    Dimensions found = list(names);
    Dimensions filled;
    for (std::size_t i = 0; i < count; ++i)
      filled.push_back(found.size() == 1 ? found[0] : i < found.size() ? found[i] : otherwise);
    return filled;
  }
  std::int64_t number(std::initializer_list<std::string_view> names, std::int64_t otherwise) const {
    Dimensions found = list(names);
    return found.empty() ? otherwise : found[0];
  }
};

// The list behind `name = [` in the text of an attribute; empty if it is not there.
Dimensions list_in(std::string_view text, std::string_view name) {
  Dimensions out;
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    std::size_t begin = text.find('[', at), end = text.find(']', at);
    bool whole = at == 0 || text[at - 1] == ' ' || text[at - 1] == '<' || text[at - 1] == '{';
    if (!whole || begin == std::string_view::npos || end < begin) continue;
    std::size_t close = end;
    while (close + 1 < text.size() && text.substr(begin, 2) == "[[" && text[close + 1] != ']')
      close = std::min(text.find(']', close + 1), text.size() - 1);
    for (std::int64_t number : integers_of(text.substr(begin, close + 1 - begin)))
      out.push_back(number);
    return out;
  }
  return out;
}

std::int64_t number_in(std::string_view text, std::string_view name) {
  std::size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  std::int64_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

using AttributesPointer = std::unique_ptr<const Attributes>;

AttributesPointer no_attributes(const OpText&) { return nullptr; }

AttributesPointer read_dot(const OpText& text) {
  DotGeneralAttributes dims;
  dims.result_dtype = DType::f32;
  std::string_view numbers = text.attribute({"dot_dimension_numbers"});
  if (!numbers.empty()) {
    dims.lhs_batch = list_in(numbers, "lhs_batching_dimensions");
    dims.rhs_batch = list_in(numbers, "rhs_batching_dimensions");
    dims.lhs_contracting = list_in(numbers, "lhs_contracting_dimensions");
    dims.rhs_contracting = list_in(numbers, "rhs_contracting_dimensions");
  } else {  // `[0] x [0]`
    auto halves = [&](std::string_view name, Dimensions& left, Dimensions& right) {
      std::string_view both = text.attribute({name});
      std::size_t middle = both.find("] x [");
      if (middle == std::string_view::npos) return;
      for (std::int64_t d : integers_of(both.substr(0, middle + 1))) left.push_back(d);
      for (std::int64_t d : integers_of(both.substr(middle + 4))) right.push_back(d);
    };
    halves("batching_dims", dims.lhs_batch, dims.rhs_batch);
    halves("contracting_dims", dims.lhs_contracting, dims.rhs_contracting);
  }
  return make_attributes(std::move(dims));
}

AttributesPointer read_transpose(const OpText& text) {
  return make_attributes(PermuteDimsAttributes{text.list({"dims", "permutation"})});
}
AttributesPointer read_broadcast(const OpText& text) {
  return make_attributes(
      BroadcastInDimAttributes{text.results[0].shape, text.list({"dims", "broadcast_dimensions"})});
}
AttributesPointer read_reshape(const OpText& text) {
  return make_attributes(ReshapeAttributes{text.results[0].shape});
}

AttributesPointer read_slice(const OpText& text) {
  auto rank = static_cast<std::size_t>(text.operands[0].rank());
  if (std::string_view ranges = text.attribute({""}); !ranges.empty()) {  // `[0:16:2, 3:4]`
    SliceAttributes slice;
    std::size_t at = 0;
    while (at < ranges.size() && slice.start.size() < rank) {
      std::size_t comma = std::min(ranges.find(',', at), ranges.size());
      std::vector<std::int64_t> numbers = integers_of(ranges.substr(at, comma - at));
      if (numbers.size() < 2) break;
      slice.start.push_back(numbers[0]);
      slice.stop.push_back(numbers[1]);
      slice.stride.push_back(numbers.size() > 2 ? numbers[2] : 1);
      at = comma + 1;
    }
    return make_attributes(std::move(slice));
  }
  return make_attributes(SliceAttributes{text.list({"start_indices"}), text.list({"limit_indices"}),
                                         text.list({"strides"})});
}

AttributesPointer read_dynamic_slice(const OpText& text) {
  return make_attributes(DynamicSliceAttributes{text.list({"sizes", "slice_sizes"})});
}
AttributesPointer read_concat(const OpText& text) {
  return make_attributes(ConcatAttributes{text.number({"dim", "dimension"}, 0)});
}
AttributesPointer read_pad(const OpText& text) {
  return make_attributes(PadAttributes{text.list({"low", "edge_padding_low"}),
                                       text.list({"high", "edge_padding_high"}),
                                       text.list({"interior", "interior_padding"})});
}
AttributesPointer read_reduce(const OpText& text) {
  Dimensions dimensions = text.list({"dimensions"});
  std::sort(dimensions.begin(), dimensions.end());
  return make_attributes(ReductionAttributes{std::move(dimensions)});
}
AttributesPointer read_sort(const OpText& text) {
  return make_attributes(SortAttributes{text.number({"dimension"}, text.operands[0].rank() - 1)});
}
AttributesPointer read_reverse(const OpText& text) {
  return make_attributes(FlipAttributes{text.list({"dims", "dimensions"})});
}
AttributesPointer read_bitcast(const OpText& text) {
  return make_attributes(BitcastConvertAttributes{text.results[0].dtype});
}
AttributesPointer read_rng(const OpText& text) {
  const TensorType& bits = text.results[1];
  return make_attributes(RngBitGeneratorAttributes{RngAlgorithm::kDefault, bits.dtype, bits.shape});
}

AttributesPointer read_gather(const OpText& text) {
  std::string_view numbers = text.attribute({"dimension_numbers"});
  return make_attributes(GatherAttributes{
      {list_in(numbers, "offset_dims"), list_in(numbers, "collapsed_slice_dims"),
       list_in(numbers, "operand_batching_dims"), list_in(numbers, "start_indices_batching_dims"),
       list_in(numbers, "start_index_map"), number_in(numbers, "index_vector_dim")},
      text.list({"slice_sizes"})});
}

AttributesPointer read_scatter(const OpText& text) {
  std::string_view numbers = text.attribute({"scatter_dimension_numbers"});
  return make_attributes(ScatterAttributes{
      {list_in(numbers, "update_window_dims"), list_in(numbers, "inserted_window_dims"),
       list_in(numbers, "input_batching_dims"), list_in(numbers, "scatter_indices_batching_dims"),
       list_in(numbers, "scatter_dims_to_operand_dims"), number_in(numbers, "index_vector_dim")}});
}

// Distributes `[[low, high], ...]`.
void set_padding(const Dimensions& pairs, std::size_t rank, Dimensions& low, Dimensions& high) {
  low.assign(rank, pairs.size() == 1 ? pairs[0] : 0);
  high = low;
  for (std::size_t d = 0; 2 * d + 1 < pairs.size() && d < rank; ++d) {
    low[d] = pairs[2 * d];
    high[d] = pairs[2 * d + 1];
  }
}

AttributesPointer read_windows(const OpText& text) {
  auto rank = static_cast<std::size_t>(text.operands[0].rank());
  ReduceWindowAttributes windows;
  windows.window = text.list_of({"window_dimensions"}, rank, 1);
  windows.strides = text.list_of({"window_strides"}, rank, 1);
  windows.base_dilation = text.list_of({"base_dilations"}, rank, 1);
  windows.window_dilation = text.list_of({"window_dilations"}, rank, 1);
  set_padding(text.list({"padding"}), rank, windows.low, windows.high);
  return make_attributes(std::move(windows));
}

AttributesPointer read_select_and_scatter(const OpText& text) {
  auto rank = static_cast<std::size_t>(text.operands[0].rank());
  SelectAndScatterAddAttributes windows;
  windows.window = text.list_of({"window_dimensions"}, rank, 1);
  windows.strides = text.list_of({"window_strides"}, rank, 1);
  set_padding(text.list({"padding"}), rank, windows.low, windows.high);
  return make_attributes(std::move(windows));
}

// Reads one layout of `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: the positions of `first` and
// `second`, then those of the spatial dimensions.
Dimensions read_layout(std::string_view list, char first, char second, std::size_t rank) {
  Dimensions places(rank, -1);
  std::int64_t position = 0;
  for (char c : list) {
    if (c == ',') ++position;
    std::size_t entry = c == first ? 0 : c == second ? 1 : rank;
    if (c >= '0' && c <= '9') entry = static_cast<std::size_t>(c - '0') + 2;
    if (entry < rank) places[entry] = position;
  }
  return places;
}

AttributesPointer read_convolution(const OpText& text) {
  auto rank = static_cast<std::size_t>(text.operands[0].rank());
  std::string_view numbers = text.attribute({"dim_numbers", "dimension_numbers"});
  std::string_view window = text.attribute({"window"});
  std::size_t kernel = numbers.find("]x["), result = numbers.find("]->[");
  if (rank < 2 || kernel == std::string_view::npos || result == std::string_view::npos)
    return nullptr;
  ConvolutionAttributes a;
  a.input = read_layout(numbers.substr(0, kernel), 'b', 'f', rank);
  a.kernel = read_layout(numbers.substr(kernel, result - kernel), 'o', 'i', rank);
  a.result = read_layout(numbers.substr(result), 'b', 'f', rank);
  std::size_t spatial = rank - 2;
  auto list = [&](std::string_view pretty, std::string_view generic) {
    Dimensions found = list_in(window, pretty);
    return found.size() == spatial && spatial > 0 ? found : text.list_of({generic}, spatial, 1);
  };
  a.strides = list("stride", "window_strides");
  a.input_dilation = list("lhs_dilate", "lhs_dilation");
  a.kernel_dilation = list("rhs_dilate", "rhs_dilation");
  Dimensions padding = list_in(window, "pad");
  set_padding(padding.empty() ? text.list({"padding"}) : padding, spatial, a.low, a.high);
  a.feature_groups = text.number({"feature_group_count"}, 1);
  a.batch_groups = text.number({"batch_group_count"}, 1);
  return make_attributes(std::move(a));
}

AttributesPointer read_fft(const OpText& text) {
  std::string_view kind = text.attribute({"type", "fft_type"});
  FftKind found = kind.find("IRFFT") != std::string_view::npos  ? FftKind::kIrfft
                  : kind.find("RFFT") != std::string_view::npos ? FftKind::kRfft
                  : kind.find("IFFT") != std::string_view::npos ? FftKind::kIfft
                                                                : FftKind::kFft;
  return make_attributes(FftAttributes{found, text.list({"length", "fft_length"})});
}

AttributesPointer read_triangular_solve(const OpText& text) {
  return make_attributes(
      TriangularSolveOptions{.left_side = text.attribute({"left_side"}) != "false"});
}

enum class RuleDtypes : std::uint8_t {
  kAsWritten,
  kAsFloats,  // the rule depends on the shapes alone, and the primitive takes fewer dtypes
};

// A mnemonic whose rule is that of a primitive.
struct MnemonicRule {
  std::string_view mnemonic;
  const OpDef* primitive;
  AttributesPointer (*attributes)(const OpText&);
  RuleDtypes typed = RuleDtypes::kAsFloats;
  /// The primitive takes only the first operands and the first result; the text repeats them, and
  /// appends initial values.
  std::size_t own_operands = 0;
};

constexpr MnemonicRule kRules[] = {
    {"stablehlo.bitcast_convert", &bitcast_convert_op, read_bitcast, RuleDtypes::kAsWritten},
    {"stablehlo.broadcast_in_dim", &broadcast_in_dim_op, read_broadcast},
    {"stablehlo.cholesky", &cholesky_op, no_attributes},
    {"stablehlo.concatenate", &concat_op, read_concat},
    {"stablehlo.convolution", &convolution_op, read_convolution},
    {"stablehlo.dot_general", &dot_general_op, read_dot},
    {"stablehlo.dynamic_slice", &dynamic_slice_op, read_dynamic_slice, RuleDtypes::kAsWritten},
    {"stablehlo.dynamic_update_slice", &dynamic_update_slice_op, no_attributes,
     RuleDtypes::kAsWritten},
    {"stablehlo.fft", &fft_op, read_fft, RuleDtypes::kAsWritten},
    {"stablehlo.gather", &gather_op, read_gather, RuleDtypes::kAsWritten},
    {"stablehlo.optimization_barrier", &optimization_barrier_op, no_attributes},
    {"stablehlo.pad", &pad_op, read_pad},
    {"stablehlo.reduce", &sum_op, read_reduce, RuleDtypes::kAsFloats, 1},
    {"stablehlo.reduce_window", &reduce_window_sum_op, read_windows, RuleDtypes::kAsFloats, 1},
    {"stablehlo.reshape", &reshape_op, read_reshape},
    {"stablehlo.reverse", &flip_op, read_reverse},
    {"stablehlo.rng_bit_generator", &rng_bit_generator_op, read_rng, RuleDtypes::kAsWritten},
    {"stablehlo.scatter", &scatter_set_op, read_scatter, RuleDtypes::kAsWritten},
    {"stablehlo.select_and_scatter", &select_and_scatter_add_op, read_select_and_scatter,
     RuleDtypes::kAsFloats, 2},
    {"stablehlo.slice", &slice_op, read_slice},
    {"stablehlo.sort", &sort_op, read_sort},
    {"stablehlo.transpose", &permute_dims_op, read_transpose},
    {"stablehlo.triangular_solve", &triangular_solve_op, read_triangular_solve},
};

// The rest of the table: what element-wise primitives are written as.
const std::vector<std::string_view>& element_wise_mnemonics() {
  static const std::vector<std::string_view> all = [] {
    std::set<std::string_view> names;
    for (const OpDef* op : all_ops())
      if (op->sharding_rule == element_wise::rule && !op->mnemonic.empty() &&
          !op->mnemonic.starts_with("chlo."))
        names.insert(op->mnemonic);
    return std::vector<std::string_view>(names.begin(), names.end());
  }();
  return all;
}

const OpDef& primitive_of(const MnemonicRule& entry, const stablehlo::ModuleOp& op) {
  // Only the shards of a scatter that adds can be combined, by summing.
  if (entry.primitive == &scatter_set_op && op.regions.size() == 1)
    for (const stablehlo::ModuleOp& inside : op.regions[0].ops)
      if (inside.mnemonic == "stablehlo.add") return scatter_add_op;
  return *entry.primitive;
}

// Whether a primitive takes this many operands: `a, b`, or `a, b...` for one or more.
bool takes(const OpDef& primitive, std::size_t count) {
  auto names = static_cast<std::size_t>(
      std::count(primitive.operands.begin(), primitive.operands.end(), ',') + 1);
  return primitive.operands.ends_with("...") ? count + 1 >= names : count == names;
}

// The rule for operands that repeat the primitive's, results that repeat its result, and initial
// values.
std::optional<ShardingRule> widened(const ShardingRule& rule, std::size_t own, const OpText& text) {
  ShardingRuleBuilder builder;
  for (const Factor& factor : rule.factors()) builder.factor(factor.size, factor.kind);
  std::size_t copies = text.results.size(), initial = text.operands.size() - own * copies;
  for (std::size_t o = 0; o < own; ++o)
    for (std::size_t i = 0; i < copies; ++i) builder.operand(rule.operands()[o]);
  for (std::size_t i = 0; i < initial; ++i) builder.operand({});
  for (std::size_t i = 0; i < copies; ++i) builder.result(rule.results()[0]);
  return builder.build();
}

std::optional<ShardingRule> rule_by_primitive(const MnemonicRule& entry, const OpText& text) {
  const OpDef& primitive = primitive_of(entry, text.op);
  AttributesPointer attributes = entry.attributes(text);
  if (!attributes && entry.attributes != no_attributes) return std::nullopt;
  std::size_t own = entry.own_operands ? entry.own_operands : text.operands.size();
  if (!takes(primitive, own)) return std::nullopt;
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < own; ++i) types.push_back(text.operands[i]);
  for (std::size_t i = 0; i < (entry.own_operands ? 1 : text.results.size()); ++i)
    types.push_back(text.results[i]);
  if (entry.typed == RuleDtypes::kAsFloats)
    for (TensorType& type : types) type.dtype = DType::f32;
  OpCall call{.op = primitive, .attributes = attributes.get(), .operands = {}, .results = {}};
  for (std::size_t i = 0; i < own; ++i) call.operands.push_back(&types[i]);
  ResultTypes inferred;
  primitive.infer(call, inferred);
  if (inferred.size() != types.size() - own) return std::nullopt;
  for (std::size_t i = own; i < types.size(); ++i) {
    if (inferred[i - own].shape != types[i].shape) return std::nullopt;
    call.results.push_back(&types[i]);
  }
  ShardingRule rule = primitive.sharding_rule(call);
  return entry.own_operands ? widened(rule, own, text) : rule;
}

bool fits_text(const ShardingRule& rule, const OpText& text) {
  auto sizes = [](std::span<const TensorType> types) {
    std::vector<IntVector> out;
    for (const TensorType& type : types) out.emplace_back(type.shape.begin(), type.shape.end());
    return out;
  };
  return rule.validate(sizes(text.operands), sizes(text.results)).ok();
}

// A custom call states its own rule; GSPMD's sharding annotations are custom calls too.
std::optional<ShardingRule> custom_call_rule(const OpText& text) {
  if (text.op.symbol == "Sharding") return element_wise_rule(text.operands, text.results);
  std::string_view written = text.attribute({"sdy.sharding_rule"});
  std::size_t begin = written.find('<'), end = written.rfind('>');
  if (begin == std::string_view::npos || end < begin) return std::nullopt;
  written = written.substr(begin + 1, end - begin - 1);
  if (written.ends_with(", custom")) written.remove_suffix(8);
  Result<ShardingRule> rule = ShardingRule::parse(written);
  return rule.ok() && fits_text(*rule, text) ? std::optional(*rule) : std::nullopt;
}

}  // namespace

std::span<const std::string_view> ruled_mnemonics() {
  static const std::vector<std::string_view> all = [] {
    std::vector<std::string_view> names = element_wise_mnemonics();
    for (const MnemonicRule& rule : kRules) names.push_back(rule.mnemonic);
    std::sort(names.begin(), names.end());
    return names;
  }();
  return all;
}

std::optional<ShardingRule> element_wise_rule(std::span<const TensorType> operands,
                                              std::span<const TensorType> results) {
  if (results.empty()) return std::nullopt;
  OpCall call{.op = add_op, .operands = {}, .results = {}};
  for (const TensorType& result : results) {
    if (result.shape != results[0].shape) return std::nullopt;
    call.results.push_back(&result);
  }
  ShardingRule of_results = element_wise::rule(call);
  ShardingRuleBuilder builder;
  for (const Factor& factor : of_results.factors()) builder.factor(factor.size, factor.kind);
  for (const TensorType& operand : operands) {
    if (operand.shape != results[0].shape && operand.rank() != 0) return std::nullopt;
    builder.operand(operand.rank() == 0 ? TensorFactors() : of_results.results()[0]);
  }
  for (const TensorFactors& result : of_results.results()) builder.result(result);
  return builder.build();
}

std::optional<ShardingRule> rule_of_module_op(const stablehlo::Module& module,
                                              const stablehlo::ModuleOp& op,
                                              std::span<const TensorType> operands,
                                              std::span<const TensorType> results) {
  OpText text{module, op, operands, results};
  if (results.empty() || operands.empty()) return std::nullopt;
  // CHLO's functions are element-wise; the shapes of its few other ops differ.
  const std::vector<std::string_view>& names = element_wise_mnemonics();
  if (op.mnemonic.starts_with("chlo.") ||
      std::binary_search(names.begin(), names.end(), op.mnemonic))
    return element_wise_rule(operands, results);
  try {
    if (op.mnemonic == "stablehlo.custom_call") return custom_call_rule(text);
    for (const MnemonicRule& entry : kRules) {
      if (entry.mnemonic != op.mnemonic) continue;
      if (entry.own_operands && operands.size() < entry.own_operands * results.size())
        return std::nullopt;
      if (entry.attributes == read_rng && results.size() != 2) return std::nullopt;
      std::optional<ShardingRule> rule = rule_by_primitive(entry, text);
      if (rule && !fits_text(*rule, text)) return std::nullopt;
      return rule;
    }
  } catch (const Error&) {
    // The primitive refuses these operands or attributes.
  }
  return std::nullopt;
}

}  // namespace meshard
