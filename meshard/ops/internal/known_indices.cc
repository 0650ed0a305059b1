// Tested in meshard/ops/composite/take_test.cc.
#include "meshard/ops/internal/known_indices.h"

#include <algorithm>
#include <limits>

#include "meshard/base/cat.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/storage.h"
#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/where.h"

namespace meshard::internal {
namespace {

std::optional<HostArray> known_elements(Value value) {
  while (value) {
    const Storage* storage = value.storage();
    if (storage)
      return storage->kind() == Storage::Kind::kHost
                 ? std::optional(storage->to_host(SourceLocation{}))
                 : std::nullopt;
    const OpDef& op = value->op();
    if (&op == &constant_op) return value->attributes_as<ConstantAttributes>().value;
    if (&op != &reshape_op && !op.traits.repeats_elements) return std::nullopt;
    value = Value(value->operands()[0]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::pair<std::int64_t, std::int64_t>> known_range(const Tensor& integers) {
  if (!is_integer(integers.dtype()) || integers.size() == 0) return std::nullopt;
  std::optional<HostArray> known = known_elements(integers.value());
  if (!known || known->size() == 0) return std::nullopt;
  if (known->dtype() == DType::u64) {  // beyond i64 is out of range of any dimension
    auto [low, high] = std::ranges::minmax(known->data<std::uint64_t>());
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    return std::pair(static_cast<std::int64_t>(std::min(low, kMost)),
                     static_cast<std::int64_t>(std::min(high, kMost)));
  }
  const HostArray wide = known->astype(DType::i64);
  auto [low, high] = std::ranges::minmax(wide.data<std::int64_t>());
  return std::pair(low, high);
}

Tensor indices_from_start(const Tensor& indices, std::int64_t size, std::string_view op,
                          SourceLocation where) {
  if (!is_integer(indices.dtype())) return indices;  // the op refuses it
  if (std::optional<std::pair<std::int64_t, std::int64_t>> range = known_range(indices)) {
    const std::int64_t wrong = range->first < -size ? range->first : range->second;
    if (wrong < -size || wrong >= size)
      throw Error(ErrorCode::kOutOfRange,
                  cat("[", op, "] the index ", wrong, " is outside a dimension of size ", size,
                      ": indices are from ", -size, " to ", size - 1),
                  where);
    if (range->first >= 0) return indices;
  }
  if (!is_signed_integer(indices.dtype())) return indices;
  // In a narrow dtype, the sum may not fit.
  const bool is_large = size > std::numeric_limits<std::int32_t>::max();
  const DType least = is_large ? DType::i64 : DType::i32;
  Tensor wide =
      size_in_bytes(indices.dtype()) < size_in_bytes(least) ? astype(indices, least) : indices;
  return meshard::where(less(wide, 0), add(wide, size), wide);
}

}  // namespace meshard::internal
