#include "meshard/ops/composite/index.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
namespace {

// Collects the slice to take and the shape of the result.
struct Selection {
  const TensorType& type;
  SourceLocation where;
  Dimensions start = {}, stop = {}, stride = {}, result = {};
  Dimensions backward = {};  // dimensions with a negative stride

  std::int64_t dimension() const { return static_cast<std::int64_t>(start.size()); }

  void add(std::int64_t first, std::int64_t end, std::int64_t step) {
    start.push_back(first);
    stop.push_back(end);
    stride.push_back(step);
  }
  void keep() {
    std::int64_t size = type.shape[dimension()];
    result.push_back(size);
    add(0, size, 1);
  }
  void take(std::int64_t number) {
    std::int64_t d = dimension(), size = type.shape[d];
    if (number < -size || number >= size)
      throw Error(ErrorCode::kOutOfRange,
                  cat("[index] ", number, " is outside dimension ", d, " = ", size, " of ", type),
                  where);
    std::int64_t at = number < 0 ? number + size : number;
    add(at, at + 1, 1);
  }
  void cut(const Range& range) {
    std::int64_t d = dimension(), size = type.shape[d];
    if (range.stride == 0)
      throw_invalid(where, "[index] the stride of dimension ", d,
                    " is 0: use 1 or more, or -1 or less");
    if (range.stride < 0) return cut_backward(range);
    auto bound = [&](const RangeBound& end, std::int64_t otherwise) {
      std::int64_t number = end.value.value_or(otherwise);
      return std::clamp<std::int64_t>(number < 0 ? number + size : number, 0, size);
    };
    std::int64_t first = bound(range.start, 0);
    std::int64_t end = std::max(first, bound(range.stop, size));
    result.push_back((end - first + range.stride - 1) / range.stride);
    add(first, end, range.stride);
  }
  // Slices the same elements in ascending order; they are reversed afterward.
  void cut_backward(const Range& range) {
    std::int64_t d = dimension(), size = type.shape[d], step = -range.stride;
    auto bound = [&](const RangeBound& end, std::int64_t otherwise) {
      if (!end.value) return otherwise;
      std::int64_t number = *end.value;
      return std::clamp<std::int64_t>(number < 0 ? number + size : number, -1, size - 1);
    };
    std::int64_t first = bound(range.start, size - 1), before = bound(range.stop, -1);
    std::int64_t count = first <= before ? 0 : (first - before - 1) / step + 1;
    result.push_back(count);
    if (count == 0) return add(0, 0, 1);
    add(first - (count - 1) * step, first + 1, step);
    backward.push_back(d);
  }
};

}  // namespace

std::string Range::to_string() const {
  auto text = [](const RangeBound& end) { return end.value ? cat(*end.value) : std::string(); };
  return cat(text(start), ':', text(stop), stride == 1 ? "" : cat(':', stride));
}

Tensor index(In x, const std::vector<IndexItem>& items) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("index", x);
  int rank = operand.shape().rank(), named = 0, ellipses = 0;
  for (const IndexItem& item : items) {
    named += item.kind() == IndexItem::Kind::kNumber || item.kind() == IndexItem::Kind::kRange;
    ellipses += item.kind() == IndexItem::Kind::kEllipsis;
  }
  if (ellipses > 1)
    throw_invalid(where, "[index] ", ellipses, " ellipses are given; at most one is allowed");
  if (named > rank)
    throw_invalid(where, "[index] ", named, " dimensions are indexed, but ", operand.type(),
                  " has ", rank);
  Selection selection{operand.type(), where};
  for (const IndexItem& item : items) {
    switch (item.kind()) {
      case IndexItem::Kind::kNumber: selection.take(item.number()); break;
      case IndexItem::Kind::kRange: selection.cut(item.range()); break;
      case IndexItem::Kind::kNewAxis: selection.result.push_back(1); break;
      case IndexItem::Kind::kEllipsis:
        for (int d = named; d < rank; ++d) selection.keep();
        break;
    }
  }
  while (selection.dimension() < rank) selection.keep();
  bool all = true;
  for (int d = 0; d < rank; ++d) {
    auto i = static_cast<std::size_t>(d);
    all = all && selection.start[i] == 0 && selection.stop[i] == operand.shape()[d] &&
          selection.stride[i] == 1;
  }
  Shape result(std::move(selection.result));
  if (!all)
    operand = slice(operand, std::move(selection.start), std::move(selection.stop),
                    std::move(selection.stride));
  if (!selection.backward.empty()) operand = flip(operand, std::move(selection.backward));
  return reshape(operand, result);
}

Tensor Tensor::operator[](const IndexItems& items) const {
  return index(In(*this, items.where()), items.items());
}

}  // namespace meshard
