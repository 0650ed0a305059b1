// Tested in meshard/ops/reduce_window_test.cc.
#include "meshard/ops/internal/window.h"

#include <algorithm>
#include <array>
#include <limits>

#include "meshard/ops/internal/resized_dimension.h"

namespace meshard::internal {

std::int64_t Windows::count(std::size_t d, std::int64_t elements) const {
  std::int64_t room = padded(d, elements) - extent(d);
  return room < 0 ? 0 : room / stride[d] + 1;
}

Dimensions for_each_dimension(Dimensions list, std::size_t rank) {
  return list.size() == 1 ? Dimensions(rank, list[0]) : list;
}

WindowPadding for_each_dimension(WindowPadding padding, std::size_t rank) {
  if (!padding.is_listed() || padding.pairs().size() != 1) return padding;
  return WindowPadding::Pairs(rank, padding.pairs()[0]);
}

Dimensions one_each(Dimensions list, std::size_t rank, std::string_view op, std::string_view what,
                    SourceLocation where) {
  if (list.empty()) return Dimensions(rank, 1);
  if (list.size() != rank)
    throw_invalid(where, "[", op, "] ", what, " [", join(list, ", "), "] has ", list.size(),
                  " entries for ", rank, " window dimensions");
  return list;
}

void resolve_padding(Windows& windows, const WindowPadding& padding, const Dimensions& sizes,
                     std::string_view op, SourceLocation where) {
  std::size_t rank = windows.rank();
  windows.low.assign(rank, 0);
  windows.high.assign(rank, 0);
  if (padding.is_listed() && padding.pairs().size() != rank)
    throw_invalid(where, "[", op, "] padding has ", padding.pairs().size(), " pairs for ", rank,
                  " window dimensions");
  for (std::size_t d = 0; d < rank; ++d) {
    if (padding.is_listed()) {
      windows.low[d] = padding.pairs()[d].first;
      windows.high[d] = padding.pairs()[d].second;
    } else if (padding.rule() != Padding::kValid) {
      std::int64_t stride = std::max<std::int64_t>(windows.stride[d], 1);
      std::int64_t count = (sizes[d] + stride - 1) / stride;
      std::int64_t missing =
          std::max<std::int64_t>((count - 1) * stride + windows.extent(d) - sizes[d], 0);
      std::int64_t less = missing / 2, more = missing - less;
      windows.low[d] = padding.rule() == Padding::kSame ? less : more;
      windows.high[d] = padding.rule() == Padding::kSame ? more : less;
    }
  }
}

void check_windows(const OpCall& call, const Windows& windows, const Dimensions& sizes) {
  struct List {
    std::string_view name;
    const Dimensions& values;
    std::int64_t least;
  };
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::min();
  for (const auto& [name, values, least] :
       {List{"window", windows.size, 1}, List{"strides", windows.stride, 1},
        List{"low padding", windows.low, kAny}, List{"high padding", windows.high, kAny},
        List{"window dilation", windows.dilation, 1},
        List{"base dilation", windows.base_dilation, 1}}) {
    if (values.size() != sizes.size())
      call.fail(name, " has ", values.size(), " entries for ", sizes.size(), " dimensions");
    for (std::size_t d = 0; d < values.size(); ++d)
      if (values[d] < least)
        call.fail(name, " of dimension ", d, " is ", values[d], ", not ", least, " or more");
  }
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (windows.padded(d, sizes[d]) < 0)
      call.fail("padding ", windows.low[d], " and ", windows.high[d], " cuts off more than the ",
                dilated_size(sizes[d], windows.base_dilation[d]), " elements of window dimension ",
                d);
}

WindowFactors window_factors(ShardingRuleBuilder& builder, const Windows& windows, std::size_t d,
                             std::int64_t base, std::int64_t result) {
  if (windows.is_trivial(d)) {
    DimensionFactors same{builder.factor(base)};
    return {same, same};
  }
  auto factors = resized_dimension(builder, std::array{base, result});
  return {factors[0], factors[1]};
}

HostArray padding_array(const Windows& windows) {
  std::vector<std::int64_t> pairs;
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    pairs.push_back(windows.low[d]);
    pairs.push_back(windows.high[d]);
  }
  return HostArray::from_vector(std::move(pairs), {static_cast<std::int64_t>(windows.rank()), 2});
}

void transpose_padding(const Windows& windows, const Dimensions& sizes, const Dimensions& counts,
                       Dimensions& low, Dimensions& high) {
  low.assign(windows.rank(), 0);
  high.assign(windows.rank(), 0);
  for (std::size_t d = 0; d < windows.rank(); ++d) {
    // Element i of the operand, at low + i * base_dilation, is element k of window j if j * stride
    // + k * dilation is the same position. So the cotangent's windows begin extent - 1 earlier, and
    // there are as many as elements.
    std::int64_t extent = windows.extent(d);
    low[d] = extent - 1 - windows.low[d];
    high[d] = dilated_size(sizes[d], windows.base_dilation[d]) + extent - 1 -
              dilated_size(counts[d], windows.stride[d]) - low[d];
  }
}

}  // namespace meshard::internal
