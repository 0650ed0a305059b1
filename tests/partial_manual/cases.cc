#include "tests/partial_manual/cases.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "meshard/meshard.h"

namespace meshard::partial_manual {
namespace {

using Tensors = std::vector<Tensor>;

// The assignment of automatic axes to dimensions as one number: a digit for each axis, in base
// rank + 1, where the last digit value means that the axis splits nothing.
PartitionSpec spec_of(std::size_t code, int rank, const Place& place) {
  auto base = static_cast<std::size_t>(rank) + 1;
  std::vector<std::vector<AxisRef>> axes(static_cast<std::size_t>(rank));
  for (const AxisRef& axis : place.automatic) {
    std::size_t d = code % base;
    code /= base;
    if (d < axes.size()) axes[d].push_back(axis);
  }
  std::vector<DimensionSpec> dimensions;
  for (std::vector<AxisRef>& each : axes) {
    AxisList list;
    for (AxisRef& axis : each) list.push_back(std::move(axis));
    dimensions.push_back(list.empty() ? DimensionSpec(none) : DimensionSpec(std::move(list)));
  }
  return PartitionSpec(std::move(dimensions));
}

std::size_t codes_of(int rank, const Place& place) {
  std::size_t count = 1;
  for (std::size_t i = 0; i < place.automatic.size(); ++i)
    count *= static_cast<std::size_t>(rank) + 1;
  return count;
}

PartitionSpec whole(int rank, const Place& place) {
  return spec_of(codes_of(rank, place) - 1, rank, place);
}

Tensor constrained(const Tensor& value, const Mesh& mesh, const PartitionSpec& spec) {
  auto rank = spec.dimensions().size();
  if (rank == 0 || static_cast<int>(rank) != value.rank()) return value;
  return sharding_constraint(value, Sharding(mesh, spec));
}

// Both devices' inputs along a new first dimension.
std::vector<HostArray> stacked(const Subject& subject) {
  std::vector<HostArray> all;
  for (std::size_t i = 0; i < subject.inputs[0].size(); ++i) {
    Tensor both = stack({from_host(subject.inputs[0][i]), from_host(subject.inputs[1][i])}, 0);
    all.push_back(both.to_host());
  }
  return all;
}

// The call around which a branch or a loop is recorded. Device 0 along "x" runs it.
Tensors call_in(Around around, const Subject& subject, const Tensors& given,
                const std::function<Tensors(const Tensors&)>& call) {
  if (around == Around::kRegion || given.empty()) return call(given);
  Tensor place = axis_index("x");
  auto nothing = [&](const Tensors& t) {
    Tensors zero = subject.call(t);
    for (Tensor& each : zero) each = vary(zeros_like(each), "x");
    return zero;
  };
  if (around == Around::kBranch) return cond(equal(place, 0), call, nothing, given);
  std::pair<Tensor, Tensors> start{place * 0, nothing(given)};
  auto end = while_loop(
      [place](const std::pair<Tensor, Tensors>& carry) { return less(carry.first, 2 - 2 * place); },
      [&](const std::pair<Tensor, Tensors>& carry) {
        return std::pair(carry.first + 1, call(given));
      },
      start);
  return end.second;
}

Tensors in_region(const Case& all, const Split& split, const Mesh& mesh, const Tensors& stack) {
  auto body = [&](const Tensors& parts) {
    Tensors given;
    for (std::size_t i = 0; i < parts.size(); ++i)
      given.push_back(reshape(parts[i], all.subject.inputs[0][i].shape()));
    auto call = [&](const Tensors& operands) {
      Tensors marked = operands;
      for (std::size_t i = 0; i < marked.size(); ++i)
        marked[i] = constrained(marked[i], mesh, split.operands[i]);
      Tensors results = all.subject.call(marked);
      for (Tensor& each : results) each = constrained(each, mesh, split.result);
      return results;
    };
    Tensors results = call_in(all.around, all.subject, given, call);
    for (Tensor& each : results) each = expand_dims(vary(each, "x"), 0);
    return results;
  };
  return manual(mesh, P("x"), P("x"), body, {.axes = all.place.manual})(stack);
}

// The values without automatic axes.
std::vector<HostArray> expected_of(const Case& all, const std::vector<HostArray>& inputs) {
  Tensors given;
  for (const HostArray& input : inputs) given.push_back(from_host(input));
  std::vector<HostArray> expected;
  if (all.subject.exchanges) {
    Case alone = all;
    alone.place = {"x", {{"x", 2}}, {"x"}, {}};
    Split unsplit{std::vector<PartitionSpec>(inputs.size(), P()), P()};
    Mesh mesh(alone.place.axes, {0, 1});
    Tensors made =
        jit([&](const Tensors& stack) { return in_region(alone, unsplit, mesh, stack); })(given);
    for (const Tensor& each : made) expected.push_back(each.to_host());
    return expected;
  }
  Tensors parts[2];
  for (std::size_t x : {0u, 1u}) {
    Tensors own;
    for (const HostArray& input : all.subject.inputs[x]) own.push_back(from_host(input));
    parts[x] = jit([&](const Tensors& t) { return all.subject.call(t); })(own);
    if (x == 1 && all.around != Around::kRegion && !own.empty())
      for (Tensor& each : parts[x]) each = zeros_like(each);
  }
  for (std::size_t i = 0; i < parts[0].size(); ++i)
    expected.push_back(stack({parts[0][i], parts[1][i]}, 0).to_host());
  return expected;
}

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return 1e-9;
    case DType::f32:
    case DType::c64: return 2e-4;
    case DType::f16: return 2e-2;
    case DType::bf16: return 1e-1;
    default: return is_inexact(dtype) ? 0.6 : 0;
  }
}

// Empty, or what differs.
std::string difference(const HostArray& got, const HostArray& expected) {
  if (got.type() != expected.type()) return cat("type ", got.type(), " for ", expected.type());
  if (is_complex(got.dtype())) {
    auto part = [](const HostArray& all, auto f) { return f(from_host(all)).to_host(); };
    std::string first = difference(part(got, [](const Tensor& t) { return real(t); }),
                                   part(expected, [](const Tensor& t) { return real(t); }));
    if (!first.empty()) return first;
    return difference(part(got, [](const Tensor& t) { return imag(t); }),
                      part(expected, [](const Tensor& t) { return imag(t); }));
  }
  std::vector<double> a = got.astype(DType::f64).to_vector<double>();
  std::vector<double> b = expected.astype(DType::f64).to_vector<double>();
  double scale = 1e-3;
  for (double each : b)
    if (std::isfinite(each)) scale = std::max(scale, std::abs(each));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    if (std::abs(a[i] - b[i]) <= rounding_of(got.dtype()) * scale) continue;
    return cat("element ", i, " is ", a[i], ", not ", b[i]);
  }
  return {};
}

int result_rank(const Subject& subject) {
  if (subject.exchanges) return subject.inputs[0][0].shape().rank();
  Tensors given;
  for (const HostArray& input : subject.inputs[0]) given.push_back(from_host(input));
  return subject.call(given)[0].rank();
}

}  // namespace

const std::vector<Place>& places() {
  static const std::vector<Place> all{
      {"x=2,y=4", {{"x", 2}, {"y", 4}}, {"x"}, {AxisRef("y")}},
      {"x=2,y=2,z=2", {{"x", 2}, {"y", 2}, {"z", 2}}, {"x"}, {AxisRef("y"), AxisRef("z")}},
      {"x=2,z=2,y=2 manual x z", {{"x", 2}, {"z", 2}, {"y", 2}}, {"x", "z"}, {AxisRef("y")}},
      {"x=2,y=4 in parts", {{"x", 2}, {"y", 4}}, {"x"}, {AxisRef("y", 1, 2), AxisRef("y", 2, 2)}},
      {"y=2,x=2,z=2", {{"y", 2}, {"x", 2}, {"z", 2}}, {"x"}, {AxisRef("z"), AxisRef("y")}},
  };
  return all;
}

const char* to_string(Around around) {
  return around == Around::kRegion ? "region" : around == Around::kBranch ? "branch" : "loop";
}

std::string Split::to_string() const {
  std::string text;
  for (const PartitionSpec& each : operands) append(text, cat(each, " "));
  return cat(text, "-> ", result);
}

std::string Case::name(std::size_t split) const {
  return cat(subject.op, " (", subject.sample, "), ", place.name, ", ",
             partial_manual::to_string(around), ", ", splits[split].to_string());
}

std::vector<Split> splits_of(const Subject& subject, const Place& place, std::size_t more,
                             std::uint64_t seed) {
  std::vector<int> ranks;
  for (const HostArray& input : subject.inputs[0]) ranks.push_back(input.shape().rank());
  int out = result_rank(subject);
  Split none_split;
  for (int rank : ranks) none_split.operands.push_back(whole(rank, place));
  none_split.result = whole(out, place);
  std::vector<Split> all{none_split};
  for (std::size_t i = 0; i < ranks.size(); ++i)
    for (std::size_t code = 0; code + 1 < codes_of(ranks[i], place); ++code) {
      all.push_back(none_split);
      all.back().operands[i] = spec_of(code, ranks[i], place);
      all.back().result = spec_of(code, out, place);
    }
  std::mt19937_64 random(seed);
  for (std::size_t n = 0; n < more; ++n) {
    all.push_back(none_split);
    for (std::size_t i = 0; i < ranks.size(); ++i)
      all.back().operands[i] = spec_of(random() % codes_of(ranks[i], place), ranks[i], place);
    all.back().result = random() % 2 ? P() : spec_of(random() % codes_of(out, place), out, place);
  }
  return all;
}

std::vector<std::string> run(const Case& all) {
  Mesh mesh(all.place.axes);
  std::vector<HostArray> inputs = stacked(all.subject);
  std::vector<HostArray> expected = expected_of(all, inputs);
  Tensors given;
  for (const HostArray& input : inputs) given.push_back(from_host(input));
  std::vector<Tensors> made = jit([&](const Tensors& stack) {
    std::vector<Tensors> results;
    for (const Split& split : all.splits) results.push_back(in_region(all, split, mesh, stack));
    return results;
  })(given);
  std::vector<std::string> verdicts;
  for (const Tensors& each : made) {
    std::string wrong;
    for (std::size_t i = 0; i < each.size() && wrong.empty(); ++i)
      wrong = difference(each[i].to_host(), expected[i]);
    verdicts.push_back(wrong);
  }
  return verdicts;
}

}  // namespace meshard::partial_manual
