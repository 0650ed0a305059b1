#include "meshard/lowering/internal/partitioner_needs.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

// Indices into the dimension lists of ConvolutionAttributes; spatial dimensions start at kSpatial.
constexpr std::size_t kIn = 1, kSpatial = 2;

bool is_in(const Dimensions& list, std::int64_t dimension) {
  return std::find(list.begin(), list.end(), dimension) != list.end();
}

std::optional<Sharding> closed_at(const Dimensions& closed, int rank, const Mesh& mesh) {
  if (closed.empty()) return std::nullopt;
  std::vector<DimensionSpec> dimensions;
  for (int d = 0; d < rank; ++d) {
    dimensions.push_back(is_in(closed, d) ? DimensionSpec(none) : DimensionSpec(unconstrained));
  }
  return Sharding(mesh, PartitionSpec(std::move(dimensions)));
}

// The transformed dimensions are the last ones.
Dimensions closed_for_fft(const FftAttributes& fft, int rank) {
  Dimensions closed;
  for (std::size_t i = 0; i < fft.lengths.size(); ++i)
    closed.push_back(rank - 1 - static_cast<int>(i));
  return closed;
}

// The sharding that the program specified for the value, or for a value that it is computed from
// element by element. Empty if it specified none: the compiler may choose one.
std::optional<Sharding> nearest_specified_sharding(Value value) {
  for (int steps = 0; steps < 32; ++steps) {
    if (std::optional<Sharding> marked = marked_sharding(value)) return marked;
    if (const Sharding* stored = leaf_sharding(value)) return *stored;
    if (value->operands().empty() || value->operands()[0].type().shape != value.type().shape)
      return std::nullopt;
    value = value->operands()[0];
  }
  return std::nullopt;
}

// Whether a specified sharding splits one of these dimensions.
std::optional<bool> is_specified_split(const Value& value,
                                       std::span<const std::int64_t> dimensions) {
  std::optional<Sharding> said = nearest_specified_sharding(value);
  if (!said) return std::nullopt;
  return std::any_of(dimensions.begin(), dimensions.end(), [&](std::int64_t d) {
    return said->num_tiles(static_cast<std::size_t>(d)) > 1;
  });
}

// The second operand of gather and scatter contains indices.
constexpr std::size_t kIndexOperand = 1;

// The components of one index, and uneven dimensions that an axis may split as it splits the
// operand.
Dimensions closed_for_indices(const Node& node, const Mesh& mesh) {
  const Shape& shape = node.operands()[kIndexOperand].type().shape;
  std::int64_t rank = shape.rank(), components = rank;
  if (const auto* gather = attributes_if<GatherAttributes>(node))
    components = gather->index_vector_dim;
  else if (const auto* scatter = attributes_if<ScatterAttributes>(node))
    components = scatter->index_vector_dim;
  else
    return {};
  const Value& operand = node.operands()[0];
  Dimensions all(static_cast<std::size_t>(operand.type().rank())), closed;
  std::iota(all.begin(), all.end(), std::int64_t{0});
  bool may_be_split = is_specified_split(operand, std::span(all.begin(), all.end())).value_or(true);
  for (std::int64_t d = 0; d < rank; ++d) {
    bool is_uneven = std::any_of(mesh.axes().begin(), mesh.axes().end(), [&](const MeshAxis& axis) {
      return shape[static_cast<int>(d)] % axis.size != 0;
    });
    if (d == components || (is_uneven && may_be_split)) closed.push_back(d);
  }
  return closed;
}

// Dimensions of a scatter's indices and updates, one for each update: closed unless the number of
// devices divides the size; then any choice of axes divides it.
void close_uneven(const Node& node, const ScatterAttributes& scatter, std::size_t operand,
                  const Mesh& mesh, Dimensions& closed) {
  const Shape& shape = node.operands()[operand].type().shape;
  for (int d = 0; d < shape.rank(); ++d) {
    bool is_of_indices = operand == kIndexOperand ? d != scatter.index_vector_dim
                                                  : !is_in(scatter.update_window_dims, d);
    if (is_of_indices && shape[d] % mesh.size() != 0) closed.push_back(d);
  }
}

// The result of a gather is split as its indices are, where the program specified that. What uses
// the result reshards it.
std::optional<Sharding> as_indices(const Node& node, const GatherAttributes& gather,
                                   const Mesh& mesh) {
  const Value& indices = node.operands()[kIndexOperand];
  std::optional<Sharding> said = nearest_specified_sharding(indices);
  if (!said || !said->mesh().same_devices(mesh)) return std::nullopt;
  Dimensions closed = closed_for_indices(node, mesh);
  std::vector<DimensionSpec> dimensions;
  bool is_split = false;
  std::int64_t from = 0;
  for (std::int64_t d = 0; d < node.type().rank(); ++d) {
    dimensions.push_back(unconstrained);
    if (is_in(gather.offset_dims, d)) continue;
    if (from == gather.index_vector_dim) ++from;
    auto i = static_cast<std::size_t>(from++);
    if (is_in(closed, static_cast<std::int64_t>(i)) || said->num_tiles(i) == 1) continue;
    dimensions.back() = said->spec().dimensions()[i];
    is_split = true;
  }
  if (!is_split) return std::nullopt;
  return Sharding(said->mesh(), PartitionSpec(std::move(dimensions)));
}

Dimensions closed_for_pad(const PadAttributes& pad) {
  Dimensions closed;
  for (std::size_t d = 0; d < pad.interior.size(); ++d)
    if (pad.interior[d] > 0) closed.push_back(static_cast<std::int64_t>(d));
  return closed;
}

Dimensions padded_dimensions(const PadAttributes& pad) {
  Dimensions padded;
  for (std::size_t d = 0; d < pad.low.size(); ++d)
    if (pad.low[d] != 0 || pad.high[d] != 0 || (!pad.interior.empty() && pad.interior[d] > 0))
      padded.push_back(static_cast<std::int64_t>(d));
  return padded;
}

Dimensions closed_for_select(const SelectAndScatterAddAttributes& windows) {
  Dimensions closed;
  for (std::size_t d = 0; d < windows.window.size(); ++d)
    if (windows.window[d] > windows.strides[d]) closed.push_back(static_cast<std::int64_t>(d));
  return closed;
}

enum class Part { kInput, kKernel, kResult };

// A convolution on a mesh. The closed dimensions were found with random convolutions: split along
// them, convolutions gave wrong results or terminated the process.
class SplitConvolution {
 public:
  SplitConvolution(const Node& node, const ConvolutionAttributes& a, const Mesh& mesh)
      : a_(a),
        input_(node.operands()[0].type().shape),
        kernel_(node.operands()[1].type().shape),
        result_(node.type().shape),
        devices_(mesh.size()),
        several_axes_(std::count_if(mesh.axes().begin(), mesh.axes().end(),
                                    [](const MeshAxis& axis) { return axis.size > 1; }) > 1),
        space_is_said_(
            is_specified_split(node.operands()[0],
                               std::span(a.input.begin(), a.input.end()).subspan(kSpatial))
                .value_or(false)) {}

  Dimensions closed(Part part) const {
    const Dimensions& layout = part == Part::kInput    ? a_.input
                               : part == Part::kKernel ? a_.kernel
                                                       : a_.result;
    if (groups_are_cut()) return layout;
    // With spatial dimensions split along one axis and the kernel's features along another, XLA
    // sums partial results over devices that hold copies. Spatial dimensions take precedence if the
    // program split them.
    if (several_axes_ && space_is_said_ && part == Part::kKernel) return layout;
    Dimensions out;
    for (std::size_t d = kSpatial; d < layout.size(); ++d)
      if (is_closed(part, d)) out.push_back(layout[d]);
    return out;
  }

 private:
  bool divides(std::int64_t size) const { return size % devices_ == 0; }

  // Padding of uneven groups, or of the features in a group, would move elements between groups.
  bool groups_are_cut() const {
    std::int64_t groups = std::max(a_.feature_groups, a_.batch_groups);
    if (groups == 1) return false;
    return !divides(groups) || (a_.feature_groups > 1 && kernel_[a_.kernel[kIn]] > 1);
  }

  bool is_closed(Part part, std::size_t d) const {
    std::size_t window = d - kSpatial;
    if (several_axes_ && !space_is_said_ && part != Part::kKernel) return true;
    if (a_.input_dilation[window] > 1) return true;
    bool steps = a_.strides[window] > 1 || a_.kernel_dilation[window] > 1;
    // Evenly split kernels occur in derivatives with respect to a kernel: there the cotangent is
    // the kernel.
    if (part == Part::kKernel) return steps || !divides(kernel_[a_.kernel[d]]);
    return steps && !(divides(input_[a_.input[d]]) && divides(result_[a_.result[d]]));
  }

  const ConvolutionAttributes& a_;
  const Shape &input_, &kernel_, &result_;
  std::int64_t devices_;
  bool several_axes_, space_is_said_;
};

struct KeptRange {
  std::int64_t begin, end;
};

// The range of dimension `d` of its operand that a slice, or a pad with negative edges, keeps.
KeptRange kept_range(const Node& node, std::size_t d) {
  if (&node.op() == &slice_op) {
    const auto& kept = node.attributes_as<SliceAttributes>();
    return {kept.start[d], kept.stop[d]};
  }
  const auto& cut = node.attributes_as<PadAttributes>();
  std::int64_t size = node.operands()[0].type().shape[static_cast<int>(d)];
  KeptElements kept =
      kept_elements(size, cut.low[d], cut.high[d], cut.interior.empty() ? 0 : cut.interior[d]);
  return {kept.start, kept.stop};
}

// The range of dimension `d` of the result that holds the operand's elements.
KeptRange padded_range(const Node& node, std::size_t d) {
  const auto& added = node.attributes_as<PadAttributes>();
  std::int64_t step = 1 + (added.interior.empty() ? 0 : added.interior[d]);
  std::int64_t size = node.operands()[0].type().shape[static_cast<int>(d)];
  return {added.low[d], added.low[d] + (size - 1) * step + 1};
}

// Whether the op, or one in its bodies, is a permutation between devices.
bool permutes(const Node& node) {
  if (&node.op() == &collective_permute_op) return true;
  std::span<const Body> bodies = bodies_of(node);
  return std::any_of(bodies.begin(), bodies.end(), [](const Body& body) {
    std::span<const Node* const> nodes = body.graph().nodes();
    return std::any_of(nodes.begin(), nodes.end(),
                       [](const Node* each) { return permutes(*each); });
  });
}

// Whether devices may take different branches, or leave the loop at different turns.
bool predicate_varies(const Node& node) {
  auto varies = [](const Value& predicate) {
    const ManualAxes* place = manual_axes(predicate);
    return place && !place->varying.empty();
  };
  if (&node.op() == &switch_case_op) return varies(node.operands()[0]);
  if (&node.op() == &while_loop_op) return varies(bodies_of(node)[0].graph().results()[0]);
  return false;
}

// The number of devices along the axes that are not manual.
std::int64_t automatic_size(const ManualAxes& place) {
  std::int64_t size = place.mesh.size();
  for (std::size_t a = 0; a < place.mesh.rank(); ++a)
    if (place.axes.contains(a)) size /= place.mesh.axes()[a].size;
  return size;
}

}  // namespace

std::optional<Sharding> whole_operand(const Node& node, std::size_t operand, const Mesh& mesh,
                                      QuirkSet quirks) {
  int rank = node.operands()[operand].type().rank();
  if (const auto* fft = attributes_if<FftAttributes>(node)) {
    if (quirks.has(Quirk::kWholeTransforms))
      return closed_at(closed_for_fft(*fft, rank), rank, mesh);
  } else if (const auto* conv = attributes_if<ConvolutionAttributes>(node)) {
    Part part = operand == 0 ? Part::kInput : Part::kKernel;
    if (quirks.has(Quirk::kWholeConvolutions))
      return closed_at(SplitConvolution(node, *conv, mesh).closed(part), rank, mesh);
  } else if (const auto* pad = attributes_if<PadAttributes>(node); pad && operand == 0) {
    if (quirks.has(Quirk::kWholePads)) return closed_at(closed_for_pad(*pad), rank, mesh);
  } else if (const auto* select = attributes_if<SelectAndScatterAddAttributes>(node)) {
    if (quirks.has(Quirk::kWholeSelections))
      return closed_at(closed_for_select(*select), rank, mesh);
  } else {
    Dimensions closed;
    if (operand == kIndexOperand && quirks.has(Quirk::kWholeIndices))
      closed = closed_for_indices(node, mesh);
    const auto* scatter = attributes_if<ScatterAttributes>(node);
    if (scatter && operand > 0 && quirks.has(Quirk::kUnevenScatters))
      close_uneven(node, *scatter, operand, mesh, closed);
    return closed_at(closed, rank, mesh);
  }
  return std::nullopt;
}

std::optional<Sharding> whole_result(const Node& node, const Mesh& mesh, QuirkSet quirks) {
  int rank = node.type().rank();
  if (const auto* pad = attributes_if<PadAttributes>(node)) {
    if (quirks.has(Quirk::kWholePads)) return closed_at(closed_for_pad(*pad), rank, mesh);
  } else if (const auto* select = attributes_if<SelectAndScatterAddAttributes>(node)) {
    if (quirks.has(Quirk::kWholeSelections))
      return closed_at(closed_for_select(*select), rank, mesh);
  } else if (const auto* gather = attributes_if<GatherAttributes>(node)) {
    if (quirks.has(Quirk::kGathersAsIndices)) return as_indices(node, *gather, mesh);
  } else if (const auto* conv = attributes_if<ConvolutionAttributes>(node)) {
    if (quirks.has(Quirk::kWholeConvolutions))
      return closed_at(SplitConvolution(node, *conv, mesh).closed(Part::kResult), rank, mesh);
  }
  return std::nullopt;
}

bool keeps_only_padding(const Node& node) {
  if (&node.op() != &slice_op && &node.op() != &pad_op) return false;
  const Value& operand = node.operands()[0];
  const Node& padded = *operand.node();
  // A computed value is an argument of the program, and its node no longer has operands.
  if (&padded.op() != &pad_op || operand.storage()) return false;
  for (int d = 0; d < node.type().rank(); ++d) {
    KeptRange kept = kept_range(node, static_cast<std::size_t>(d));
    KeptRange elements = padded_range(padded, static_cast<std::size_t>(d));
    if (kept.end <= elements.begin || elements.end <= kept.begin) return true;
  }
  return false;
}

std::optional<Sharding> gathered_in_region(const Node& node, int rank, const ManualAxes& place,
                                           QuirkSet quirks) {
  if (rank == 0 || automatic_size(place) == 1) return std::nullopt;
  std::span<const QuirkRow> rows = quirk_table();
  auto row = std::ranges::find_if(
      rows, [&](const QuirkRow& each) { return each.gathers(node.op().name); });
  if (row == rows.end() || !quirks.has(row->quirk)) return std::nullopt;
  if (const auto* pad = attributes_if<PadAttributes>(node))
    return closed_at(padded_dimensions(*pad), rank, place.mesh);
  return Sharding::replicated(place.mesh, static_cast<std::size_t>(rank));
}

bool runs_on_all_devices(const Node& node, const ManualAxes& place, QuirkSet quirks) {
  return quirks.has(Quirk::kDifferentBranches) && predicate_varies(node) &&
         (automatic_size(place) > 1 || permutes(node));
}

namespace {

// Of a pad: equal constants are one value, anything else is its own.
std::string fill_of_pad(const Value& fill) {
  const Node& node = *fill.node();
  bool is_constant = node.attributes() && node.attributes()->type() == typeid(ConstantAttributes);
  if (!is_constant) return cat("value ", node.id(), '.', fill.index());
  const HostArray& value = node.attributes_as<ConstantAttributes>().value;
  bool is_zero = value.same_bits(HostArray::zeros(value.type()));
  return is_zero ? kZeroFill : value.to_string();
}

}  // namespace

std::string window_fill(const Node& node, std::size_t operand) {
  if (operand != 0 || !node.attributes()) return {};
  const std::type_info& type = node.attributes()->type();
  if (type == typeid(PadAttributes)) return fill_of_pad(node.operands()[1]);
  if (type == typeid(ConvolutionAttributes)) return kZeroFill;
  bool reduces = type == typeid(ReduceWindowAttributes) || type == typeid(CumulativeAttributes) ||
                 type == typeid(SelectAndScatterAddAttributes);
  return reduces ? std::string(node.op().name) : std::string();
}

TensorType windowed_type(const Node& node) {
  TensorType type = node.operands()[0].type();
  if (!node.attributes() || node.attributes()->type() != typeid(PadAttributes)) return type;
  const auto& pad = node.attributes_as<PadAttributes>();
  for (int d = 0; d < type.rank(); ++d) {
    auto at = static_cast<std::size_t>(d);
    KeptElements kept = kept_elements(type.shape[d], pad.low[at], pad.high[at],
                                      pad.interior.empty() ? 0 : pad.interior[at]);
    type.shape = type.shape.with(d, std::max<std::int64_t>(kept.stop - kept.start, 0));
  }
  return type;
}

std::size_t WindowFills::group(const TensorType& operand, const std::string& fill) {
  std::vector<std::string>& known = fills_[operand];
  auto found = std::find(known.begin(), known.end(), fill);
  auto group = static_cast<std::size_t>(found - known.begin());
  if (found == known.end()) known.push_back(fill);
  return group;
}

}  // namespace meshard
