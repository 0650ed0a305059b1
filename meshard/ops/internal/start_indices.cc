// Tested in meshard/ops/slicing_test.cc.
#include "meshard/ops/internal/start_indices.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/definition/batch_rule.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reshape.h"

namespace meshard::internal {

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
