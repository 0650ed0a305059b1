// Tested in meshard/ops/reduce_window_test.cc.
#include "meshard/ops/internal/window.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

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

namespace {

// The positions inside a window, in row-major order.
std::vector<Dimensions> places_of(const Windows& windows) {
  std::vector<Dimensions> places;
  Dimensions place(windows.rank(), 0);
  for (;;) {
    places.push_back(place);
    std::size_t d = windows.rank();
    while (d > 0 && ++place[d - 1] == windows.size[d - 1]) place[--d] = 0;
    if (d == 0) return places;
  }
}

Dimensions interior_of(const Dimensions& dilation) {
  Dimensions interior = dilation;
  for (std::int64_t& n : interior) --n;
  return interior;
}

}  // namespace

Tensor padded_for_windows(const Tensor& x, double padding, const Windows& windows) {
  return pad(x, filled({x.dtype(), {}}, padding), windows.low, windows.high,
             interior_of(windows.base_dilation));
}

std::vector<Tensor> window_elements(const Tensor& padded, const Windows& windows,
                                    const Dimensions& counts) {
  std::vector<Tensor> elements;
  for (const Dimensions& place : places_of(windows)) {
    Dimensions start, stop;
    for (std::size_t d = 0; d < place.size(); ++d) {
      start.push_back(place[d] * windows.dilation[d]);
      stop.push_back(start[d] + dilated_size(counts[d], windows.stride[d]));
    }
    elements.push_back(slice(padded, std::move(start), std::move(stop), windows.stride));
  }
  return elements;
}

std::vector<Tensor> window_members(const Shape& shape, const Windows& windows,
                                   const Dimensions& counts) {
  return window_elements(padded_for_windows(filled({DType::bool_, shape}, 1), 0, windows), windows,
                         counts);
}

Tensor chosen_places(const std::vector<Tensor>& elements, const std::vector<Tensor>& members,
                     bool greatest) {
  Tensor best = elements[0], found = members[0];
  Tensor chosen = filled({DType::i32, best.shape()}, 0);
  for (std::size_t k = 1; k < elements.size(); ++k) {
    Tensor keep = greatest ? greater_equal(best, elements[k]) : less_equal(best, elements[k]);
    // The padding may equal a member that is infinite, but must never be chosen before it.
    keep = logical_or(logical_and(keep, found), logical_not(members[k]));
    best = where(keep, best, elements[k]);
    chosen = where(keep, chosen, static_cast<std::int64_t>(k));
    found = logical_or(found, members[k]);
  }
  return chosen;
}

Tensor scattered_to_windows(const Tensor& values, const Tensor& chosen, const Windows& windows,
                            const Shape& shape) {
  Tensor sum;
  std::int64_t k = 0;
  for (const Dimensions& place : places_of(windows)) {
    Dimensions low, high;
    for (std::size_t d = 0; d < place.size(); ++d) {
      low.push_back(place[d] * windows.dilation[d]);
      high.push_back(windows.padded(d, shape.sizes()[d]) - low[d] -
                     dilated_size(values.shape().sizes()[d], windows.stride[d]));
    }
    Tensor part = pad(where(equal(chosen, k++), values, 0), 0, std::move(low), std::move(high),
                      interior_of(windows.stride));
    sum = sum.defined() ? add(sum, part) : part;
  }
  // Removes the padding, then the gaps.
  Dimensions low = windows.low, high = windows.high, start(windows.rank(), 0);
  for (std::int64_t& n : low) n = -n;
  for (std::int64_t& n : high) n = -n;
  Tensor inner = pad(sum, 0, std::move(low), std::move(high));
  return slice(inner, std::move(start), inner.shape().sizes(), windows.base_dilation);
}

std::vector<DimensionFactors> resized_dimension(ShardingRuleBuilder& builder,
                                                std::span<const std::int64_t> sizes) {
  std::vector<DimensionFactors> factors(sizes.size());
  bool empty = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  std::int64_t common = 0;
  for (std::int64_t size : sizes) common = std::gcd(common, size);
  if (empty) common = 1;
  int shared = common == 1 ? 0 : builder.factor(common, FactorKind::kPermutation);
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    if (common != 1) factors[t].push_back(shared);
    if (common == 1 || sizes[t] != common)
      factors[t].push_back(builder.factor(sizes[t] / common, FactorKind::kNeedReplication));
  }
  return factors;
}

BoxFactors box_factors(ShardingRuleBuilder& builder, const Shape& whole, const Shape& box) {
  BoxFactors out;
  for (int d = 0; d < whole.rank(); ++d) {
    if (whole[d] == box[d]) {
      out.whole.push_back({builder.factor(whole[d])});
      out.box.push_back(out.whole.back());
    } else {
      auto factors = resized_dimension(builder, std::array{whole[d], box[d]});
      out.whole.push_back(factors[0]);
      out.box.push_back(factors[1]);
    }
  }
  return out;
}

}  // namespace meshard::internal
