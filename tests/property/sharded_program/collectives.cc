// Collectives of manual functions. Every value of such a function varies over the axes that split
// it, so the parts of a result are those of a whole value, which is computed without a mesh.
#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

#include "tests/property/sharded_program/collective_tools.inc"

using Known = Draw::Known;

bool is_real(const Known& value) { return is_floating(value.type().dtype); }

// lists[0]: the blocks; lists[1]: the axis.
template <bool kMustSplit>
bool draw_along(Draw& draw, Step& step) {
  return draw.in_region() && draw.take(step, is_real) &&
         draw.along_axis(step, draw.operand(step, 0).type().shape, kMustSplit);
}
bool draw_shift(Draw& draw, Step& step) {
  if (!draw_along<true>(draw, step)) return false;
  step.lists.push_back({draw.between(-2, 2)});
  return true;
}
bool draw_reversed(Draw& draw, Step& step) {
  if (!draw_along<true>(draw, step)) return false;
  std::optional<int> by_way_of =
      draw.other_dimension(step, draw.operand(step, 0).type().shape, step.lists[0][2]);
  std::int64_t form = draw.between(0, by_way_of ? 2 : 1);
  step.lists[0].push_back(form);
  step.lists[0].push_back(form == 2 ? *by_way_of : 0);
  return true;
}
bool draw_minus_mean(Draw& draw, Step& step) {
  return draw.in_region() && draw.take(step, is_real) &&
         draw.along_all_axes(step, draw.operand(step, 0).type().shape);
}

const Mesh* mesh_of(const Arguments& args) {
  return args.meshes ? &args.meshes->at(static_cast<std::size_t>(args.step.placement.mesh))
                     : nullptr;
}

// ---- Bounds.

double members(const Arguments& args) { return static_cast<double>(args.list(0)[2]); }
Bounds times(const Arguments& args, const TensorType& result, double factor, double roundings) {
  return rounded(result, factor * args.bounds[0].size, factor * args.bounds[0].error, roundings);
}
Bounds reduced_bounds(const Arguments& args, const TensorType& result) {
  return times(args, result, members(args), members(args) + 4);
}
Bounds plus_sum_bounds(const Arguments& args, const TensorType& result) {
  return times(args, result, members(args) + 1, members(args) + 4);
}
Bounds minus_mean_bounds(const Arguments& args, const TensorType& result) {
  // The sum has that many roundings, each of a number that is as much larger.
  auto count = static_cast<double>(args.number(1));
  return times(args, result, 2, count * count + 4);
}
Bounds plus_index_bounds(const Arguments& args, const TensorType& result) {
  return rounded(result, args.bounds[0].size + members(args), args.bounds[0].error);
}

// ---- On the host.

// Where an element is along the split dimension.
struct BlockPlace {
  std::int64_t group, member, block, element;
};
// Each element, of its place and of the other elements that differ from it only in the member and
// the element.
using Read = std::function<double(std::int64_t member, std::int64_t element)>;
HostValue of_blocks(const HostArguments& args,
                    const std::function<double(const BlockPlace&, const Read&)>& f) {
  const std::vector<std::int64_t>& in = args.list(0);
  auto d = static_cast<std::size_t>(in[0]);
  return host::make(args[0].shape, [&](const Dimensions& at) {
    std::int64_t c = at[d];
    BlockPlace place{c / (in[4] * in[3] * in[2]), c / (in[4] * in[3]) % in[2], c / in[4] % in[3],
                     c % in[4]};
    return f(place, [&](std::int64_t member, std::int64_t element) {
      Dimensions from = at;
      from[d] = ((place.group * in[2] + member) * in[3] + place.block) * in[4] + element;
      return host::at(args[0], from);
    });
  });
}
HostValue scaled(HostValue value, double factor) {
  for (double& x : value.values) x *= factor;
  return value;
}
HostValue reduced_on_host(const HostArguments& args) {
  std::int64_t count = args.list(0)[2];
  if (args.list(0)[0] < 0) return scaled(args[0], static_cast<double>(count));
  return of_blocks(args, [&](const BlockPlace& place, const Read& read) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += read(i, place.element);
    return sum;
  });
}
HostValue largest_on_host(const HostArguments& args) {
  if (args.list(0)[0] < 0) return args[0];
  return of_blocks(args, [&](const BlockPlace& place, const Read& read) {
    double largest = read(0, place.element);
    for (std::int64_t i = 1; i < args.list(0)[2]; ++i)
      largest = std::max(largest, read(i, place.element));
    return largest;
  });
}
HostValue plus_sum_on_host(const HostArguments& args) {
  return host::add(args[0], reduced_on_host(args), 1);
}
HostValue minus_mean_on_host(const HostArguments& args) {
  HostValue result = args[0];
  double mean = std::accumulate(result.values.begin(), result.values.end(), 0.0) /
                static_cast<double>(result.values.size());
  for (double& x : result.values) x -= mean;
  return result;
}
HostValue plus_index_on_host(const HostArguments& args) {
  return of_blocks(args, [](const BlockPlace& place, const Read& read) {
    return read(place.member, place.element) + static_cast<double>(place.member);
  });
}
HostValue shifted_on_host(const HostArguments& args) {
  std::int64_t count = args.list(0)[2], by = args.number(2);
  return of_blocks(args, [&](const BlockPlace& place, const Read& read) {
    return read((((place.member - by) % count) + count) % count, place.element);
  });
}
HostValue scattered_on_host(const HostArguments& args) {
  return scaled(args[0], static_cast<double>(args.list(0)[2]));
}
HostValue reversed_on_host(const HostArguments& args) {
  const std::vector<std::int64_t>& in = args.list(0);
  return of_blocks(args, [&](const BlockPlace& place, const Read& read) {
    return read(in[2] - 1 - place.member, in[4] - 1 - place.element);
  });
}

/// W in the code: the mesh, or nullptr.
#define MESHARD_COLLECTIVE(...) \
#__VA_ARGS__, [](const Arguments& args) -> Tensor { \
    const Mesh* W = mesh_of(args);                                    \
    auto A = [&](int i) -> const Tensor& { return args.operands[i]; }; \
    auto L = [&](int i) { return args.list(i); };                     \
    auto N = [&](int i) { return args.number(i); };                   \
    return __VA_ARGS__;                                               \
  }

const Operation kCollectives[] = {
    {"all_reduce", MESHARD_COLLECTIVE(reduced_over(W, L(0), N(1), ReduceKind::kSum, A(0))),
     draw_along<false>, reduced_bounds, true, 2, reduced_on_host, true},
    {"all_reduce of maxima",
     MESHARD_COLLECTIVE(reduced_over(W, L(0), N(1), ReduceKind::kMax, A(0))), draw_along<false>,
     moved, false, 2, largest_on_host, true},
    {"plus all_reduce", MESHARD_COLLECTIVE(plus_sum_over(W, L(0), N(1), A(0))), draw_along<true>,
     plus_sum_bounds, true, 2, plus_sum_on_host, true},
    {"minus mean of all", MESHARD_COLLECTIVE(minus_mean(W, L(0), N(1), A(0))), draw_minus_mean,
     minus_mean_bounds, true, 2, minus_mean_on_host, true},
    {"plus axis_index", MESHARD_COLLECTIVE(plus_index(W, L(0), N(1), A(0))), draw_along<true>,
     plus_index_bounds, true, 2, plus_index_on_host, true},
    {"ring_shift", MESHARD_COLLECTIVE(shifted(W, L(0), N(1), N(2), A(0))), draw_shift, moved, true,
     2, shifted_on_host, true},
    {"reduce_scatter of all_gather", MESHARD_COLLECTIVE(scattered_sum(W, L(0), N(1), A(0))),
     draw_along<true>, reduced_bounds, true, 2, scattered_on_host, true},
    {"reversed along an axis", MESHARD_COLLECTIVE(reversed(W, L(0), N(1), A(0))), draw_reversed,
     moved, true, 3, reversed_on_host, true},
};

}  // namespace

std::span<const Operation> collective_operations() { return kCollectives; }

}  // namespace meshard::property
