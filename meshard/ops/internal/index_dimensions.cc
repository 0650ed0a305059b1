// Tested in meshard/ops/gather_test.cc.
#include "meshard/ops/internal/index_dimensions.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard::internal {
namespace {

void check_list(const OpCall& call, std::string_view what, const Dimensions& list,
                std::int64_t bound, bool ascending) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0 || list[i] >= bound)
      call.fail(what, " [", join(list, ", "), "]: ", list[i], " is outside 0..", bound - 1);
    if (ascending && i > 0 && list[i] <= list[i - 1])
      call.fail(what, " [", join(list, ", "), "] are not ascending");
    for (std::size_t j = 0; j < i; ++j)
      if (list[j] == list[i]) call.fail(what, " [", join(list, ", "), "] name ", list[i], " twice");
  }
}

void check_apart(const OpCall& call, std::string_view one, const Dimensions& a,
                 std::string_view other, const Dimensions& b) {
  for (std::int64_t d : a)
    if (holds(b, d)) call.fail("dimension ", d, " is in both ", one, " and ", other);
}

}  // namespace

void check_index_dimensions(const OpCall& call, const IndexDimensions& dims,
                            const TensorType& operand, const TensorType& indices,
                            int windows_rank) {
  if (!is_integer(indices.dtype)) call.fail("indices must be integers, not ", indices);
  if (dims.index_vector_dim < 0 || dims.index_vector_dim > indices.rank())
    call.fail("index_vector_dim ", dims.index_vector_dim, " is outside 0..", indices.rank(), " of ",
              indices);
  check_list(call, "window dimensions", dims.window_dims, windows_rank, true);
  check_list(call, "collapsed or inserted dimensions", dims.dropped_dims, operand.rank(), true);
  check_list(call, "the operand's batching dimensions", dims.operand_batch, operand.rank(), true);
  check_list(call, "the indices' batching dimensions", dims.indices_batch, indices.rank(), false);
  check_list(call, "the index map", dims.index_map, operand.rank(), false);
  check_apart(call, "the collapsed or inserted", dims.dropped_dims, "the batching dimensions",
              dims.operand_batch);
  check_apart(call, "the index map", dims.index_map, "the batching dimensions", dims.operand_batch);
  if (holds(dims.indices_batch, dims.index_vector_dim))
    call.fail("index_vector_dim ", dims.index_vector_dim,
              " is a batching dimension of the indices");
  if (dims.operand_batch.size() != dims.indices_batch.size())
    call.fail("the operand has ", dims.operand_batch.size(),
              " batching dimensions, but the indices have ", dims.indices_batch.size());
  for (std::size_t i = 0; i < dims.operand_batch.size(); ++i) {
    std::int64_t a = operand.shape[dims.operand_batch[i]], b = indices.shape[dims.indices_batch[i]];
    if (a != b)
      call.fail("batching sizes differ: operand dimension ", dims.operand_batch[i], " = ", a,
                ", indices dimension ", dims.indices_batch[i], " = ", b);
  }
  std::int64_t components =
      dims.index_vector_dim == indices.rank() ? 1 : indices.shape[dims.index_vector_dim];
  if (components != static_cast<std::int64_t>(dims.index_map.size()))
    call.fail("an index of ", indices, " has ", components, " components along dimension ",
              dims.index_vector_dim, ", but the index map names ", dims.index_map.size());
  std::size_t whole =
      dims.window_dims.size() + dims.dropped_dims.size() + dims.operand_batch.size();
  if (whole != static_cast<std::size_t>(operand.rank()))
    call.fail("window (", dims.window_dims.size(), "), collapsed or inserted (",
              dims.dropped_dims.size(), ") and batching dimensions (", dims.operand_batch.size(),
              ") do not add up to the operand's rank ", operand.rank());
}

Dimensions window_operand_dimensions(const IndexDimensions& dims, int operand_rank) {
  Dimensions out;
  for (int d = 0; d < operand_rank; ++d)
    if (!holds(dims.dropped_dims, d) && !holds(dims.operand_batch, d)) out.push_back(d);
  return out;
}

Dimensions batch_index_dimensions(const IndexDimensions& dims, int indices_rank) {
  Dimensions out;
  for (int d = 0; d < indices_rank; ++d)
    if (d != dims.index_vector_dim) out.push_back(d);
  return out;
}

ShardingRule indexing_rule(const IndexDimensions& dims, const Shape& operand, const Shape& indices,
                           const Shape& windows, bool scatter, FactorKind of_updates) {
  ShardingRuleBuilder builder;
  auto size_of = [](const Shape& shape) { return static_cast<std::size_t>(shape.rank()); };
  InlineVector<int, 6> of_operand(size_of(operand)), of_indices(size_of(indices)),
      of_windows(size_of(windows));
  auto at = [](InlineVector<int, 6>& factors, std::int64_t d) -> int& {
    return factors[static_cast<std::size_t>(d)];
  };
  // The dimensions of the indices match those of the windows that are not inside a window. Each
  // shard of a scatter adds only its own updates, so that the results have to be summed.
  Dimensions index_dims = batch_index_dimensions(dims, indices.rank());
  std::size_t next = 0;
  for (int d = 0; d < windows.rank(); ++d) {
    if (holds(dims.window_dims, d)) continue;
    std::int64_t index_dim = index_dims[next++];
    auto batch = std::find(dims.indices_batch.begin(), dims.indices_batch.end(), index_dim);
    bool is_batch = batch != dims.indices_batch.end();
    int factor =
        builder.factor(windows[d], scatter && !is_batch ? of_updates : FactorKind::kPassThrough);
    at(of_windows, d) = at(of_indices, index_dim) = factor;
    if (is_batch)
      at(of_operand,
         dims.operand_batch[static_cast<std::size_t>(batch - dims.indices_batch.begin())]) = factor;
  }
  // A window that covers a whole dimension passes it through; if it is smaller it may begin
  // anywhere, so the dimension must be whole.
  Dimensions window_dims = window_operand_dimensions(dims, operand.rank());
  for (std::size_t i = 0; i < window_dims.size(); ++i) {
    std::int64_t d = window_dims[i], w = dims.window_dims[i];
    if (operand[d] == windows[w]) {
      at(of_operand, d) = at(of_windows, w) = builder.factor(operand[d]);
    } else {
      at(of_operand, d) = builder.factor(operand[d], FactorKind::kNeedReplication);
      at(of_windows, w) = builder.factor(windows[w], FactorKind::kNeedReplication);
    }
  }
  for (std::int64_t d : dims.dropped_dims)
    at(of_operand, d) = builder.factor(operand[d], FactorKind::kNeedReplication);
  if (dims.index_vector_dim < indices.rank())
    at(of_indices, dims.index_vector_dim) =
        builder.factor(indices[dims.index_vector_dim], FactorKind::kNeedReplication);
  builder.operand(one_factor_each(of_operand)).operand(one_factor_each(of_indices));
  if (scatter)
    builder.operand(one_factor_each(of_windows)).result(one_factor_each(of_operand));
  else
    builder.result(one_factor_each(of_windows));
  return builder.build();
}

Tensor clamp_indices(const Tensor& indices, const IndexDimensions& dims, const Shape& operand,
                     const Dimensions& window_sizes) {
  // Narrow integers cannot represent the size of every dimension.
  Tensor wide = size_in_bytes(indices.dtype()) < 4 ? astype(indices, DType::i32) : indices;
  std::vector<std::int64_t> last;
  for (std::int64_t d : dims.index_map)
    last.push_back(operand[d] - window_sizes[static_cast<std::size_t>(d)]);
  HostArray bounds = HostArray::from_vector<std::int64_t>(std::move(last)).astype(wide.dtype());
  Tensor limits =
      dims.index_vector_dim < wide.rank()
          ? broadcast_in_dim(constant(std::move(bounds)), wide.shape(), {dims.index_vector_dim})
          : broadcast_to(constant(bounds.reshaped(Shape{})), wide.shape());
  return minimum(maximum(wide, 0), limits);
}

TensorType written_index_type(const TensorType& indices, QuirkSet quirks) {
  bool widened = size_in_bytes(indices.dtype) < 4 && quirks.has(Quirk::kNarrowIndices);
  return {widened ? DType::i32 : indices.dtype, indices.shape};
}

stablehlo::Value written_indices(OpEmission& out, const TensorType& type) {
  const stablehlo::Typed& given = out.operands[1];
  if (given.type->dtype == type.dtype) return given.value;
  stablehlo::Value converted = out.writer.temporary();
  out.writer.op("stablehlo.convert", {{converted, type}}, {given}, out.location).done();
  return converted;
}

std::vector<Tensor> start_tensors(const OpDef& op, const std::vector<In>& starts) {
  // Tensors determine the dtype; XLA requires the same dtype for all starts.
  DType dtype = DType::i32;
  bool first = true;
  for (const In& start : starts) {
    if (!start.tensor && start.scalar.kind != ScalarKind::kInteger)
      throw_invalid(effective_source(start.where), "[", op.name,
                    "] a start must be an integer, not ", start.scalar);
    if (start.tensor) {
      DType own = operand_tensor(op, start).dtype();
      dtype = first ? own : promote(dtype, own, start.where);
      first = false;
    }
  }
  std::vector<Tensor> tensors;
  for (const In& start : starts)
    tensors.push_back(start.tensor ? astype(start, dtype) : element_wise::to_tensor(start, dtype));
  return tensors;
}

void check_numbers(const OpDef& op, const std::vector<In>& starts, const Shape& whole,
                   const Dimensions& window, SourceLocation where) {
  const std::size_t rank = whole.sizes().size();
  if (starts.size() != rank || window.size() != rank) return;  // infer refuses it
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t most = whole.sizes()[d] - window[d], start = starts[d].scalar.integer;
    if (starts[d].tensor || most < 0 || (start >= 0 && start <= most)) continue;
    throw Error(ErrorCode::kOutOfRange,
                cat("[", op.name, "] the start ", start, " of dimension ", d, " of ", whole,
                    " is out of range: a window of ", window[d], " elements begins at 0 to ", most),
                effective_source(where));
  }
}

void check_starts(const OpCall& call, const TensorType& operand, std::size_t first) {
  check_one_each(call, "starts", call.operands.size() - first, operand);
  for (std::size_t i = first; i < call.operands.size(); ++i) {
    const TensorType& start = call.operand(i);
    if (!is_integer(start.dtype) || start.rank() != 0)
      call.fail("the start of dimension ", i - first, " must be an integer of rank 0, not ", start);
    if (start.dtype != call.operand(first).dtype)
      call.fail("starts must have the same dtype, not ", call.operand(first), " and ", start);
  }
}

bool starts_are_batched(const BatchCall& call, std::size_t first) {
  return std::any_of(call.batched.begin() + static_cast<std::ptrdiff_t>(first), call.batched.end(),
                     [](bool batched) { return batched; });
}

std::vector<In> starts_behind_batch(const BatchCall& call, std::size_t first) {
  std::vector<In> starts{In(0, call.node.where())};
  for (const Tensor& start : call.operands.subspan(first))
    starts.emplace_back(start, call.node.where());
  return starts;
}

Tensor batched_starts(const BatchCall& call, std::size_t first) {
  std::vector<Tensor> columns;
  for (std::size_t i = first; i < call.operands.size(); ++i)
    columns.push_back(reshape(batched_operand(call, i), {call.size, 1}));
  return concat(columns, 1);
}

InlineVector<stablehlo::Typed, 4> with_written_starts(OpEmission& out, std::size_t first) {
  InlineVector<stablehlo::Typed, 4> operands;
  for (std::size_t i = 0; i < first; ++i) operands.push_back(out.operands[i]);
  static const TensorType kWide{DType::i32, {}};
  const Shape& whole = out.operands[0].type->shape;
  const Shape& window = (first == 1 ? out.results[0] : out.operands[1]).type->shape;
  for (std::size_t i = first; i < out.operands.size(); ++i) {
    stablehlo::Typed start = out.operands[i];
    if (size_in_bytes(start.type->dtype) < 4 && out.quirks.has(Quirk::kNarrowIndices)) {
      stablehlo::Typed converted{out.writer.temporary(), kWide};
      out.writer.op("stablehlo.convert", {converted}, {start}, out.location).done();
      start = converted;
    }
    if (out.partitioned && out.quirks.has(Quirk::kUnclampedStarts)) {
      int d = static_cast<int>(i - first);
      stablehlo::Typed clamped{out.writer.temporary(), *start.type};
      stablehlo::Typed low{out.writer.scalar(start.type->dtype, 0), *start.type};
      stablehlo::Typed high{
          out.writer.scalar(start.type->dtype, static_cast<double>(whole[d] - window[d])),
          *start.type};
      out.writer.op("stablehlo.clamp", {clamped}, {low, start, high}, out.location).done();
      start = clamped;
    }
    operands.push_back(start);
  }
  return operands;
}

}  // namespace meshard::internal
