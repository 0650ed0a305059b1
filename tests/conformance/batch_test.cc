// Compares every op's batch rule with a loop over the batch members, for values and derivatives.
#include <algorithm>
#include <functional>
#include <map>

#include "meshard/graph/record.h"
#include "meshard/ops/batching/vmap.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/slicing.h"
#include "tests/conformance/conformance.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

using Batch = EachOp;

constexpr std::size_t kMembers = 3;

// Ops without a batch rule, and the reason for each.
const std::map<std::string_view, std::string_view>& without_rule() {
  static const std::map<std::string_view, std::string_view> reasons{
      {"constant", "it has no operands, so no member has its own"},
      {"iota", "it has no operands, so no member has its own"},
  };
  return reasons;
}

// Allowed difference between a batch and its members, in rounding errors of the largest value: the
// compiler splits sums and vectorizes element-wise functions differently. Integers and bools must
// be equal.
constexpr double kUlps = 4;
// The same for decompositions: loops go on until all matrices of a batch have converged.
constexpr double kUlpsOfDecompositions = 200;

HostArray stacked(std::span<const HostArray> members) {
  TensorType type = members[0].type();
  Dimensions sizes = type.shape.sizes();
  sizes.insert(sizes.begin(), static_cast<std::int64_t>(members.size()));
  std::string bytes;
  for (const HostArray& member : members)
    bytes.append(reinterpret_cast<const char*>(member.bytes()),
                 static_cast<std::size_t>(member.size_in_bytes()));
  return HostArray::copy_of({type.dtype, Shape(std::move(sizes))}, bytes.data());
}

// The inputs of one sample for each batch member: the same sample, drawn from different seeds.
struct Members {
  std::vector<std::vector<HostArray>> inputs;  // [input][member]

  std::vector<HostArray> all_stacked() const {
    std::vector<HostArray> out;
    for (const auto& members : inputs) out.push_back(stacked(members));
    return out;
  }
};

std::vector<Members> members_of(const OpDef& op) {
  std::vector<Members> out;
  for (std::size_t m = 0; m < kMembers; ++m) {
    SampleSource source(test_seed() + 100 * m);
    std::vector<OpSample> samples = samples_of(op, source);
    out.resize(samples.size());
    for (std::size_t s = 0; s < samples.size(); ++s) {
      out[s].inputs.resize(samples[s].inputs.size());
      for (std::size_t i = 0; i < samples[s].inputs.size(); ++i)
        out[s].inputs[i].push_back(samples[s].inputs[i]);
    }
  }
  return out;
}

// Which inputs to batch: each alone, all but one, all, and all other subsets of up to three.
std::vector<std::vector<bool>> subsets(std::size_t inputs) {
  std::vector<std::vector<bool>> out;
  for (std::size_t bits = 1; bits < (std::size_t{1} << inputs); ++bits) {
    std::vector<bool> batched;
    std::size_t count = 0;
    for (std::size_t i = 0; i < inputs; ++i) {
      batched.push_back((bits >> i & 1) != 0);
      count += batched.back() ? 1 : 0;
    }
    if (inputs <= 3 || count == 1 || count + 1 >= inputs) out.push_back(std::move(batched));
  }
  return out;
}

BatchAxes in_axes(const std::vector<bool>& batched) {
  std::vector<BatchAxis> axes;
  for (bool each : batched) axes.push_back(each ? BatchAxis(0) : BatchAxis(none));
  return axes;
}

// The inputs of member m, taken from stacked inputs. Unbatched inputs are those of member 0.
std::vector<Tensor> member(std::span<const Tensor> all, const std::vector<bool>& batched,
                           std::size_t m) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Dimensions start(static_cast<std::size_t>(all[i].rank()), 0), stop = all[i].shape().sizes();
    if (batched[i]) start[0] = static_cast<std::int64_t>(m);
    stop[0] = start[0] + 1;
    Dimensions sizes(all[i].shape().sizes().begin() + 1, all[i].shape().sizes().end());
    out.push_back(reshape(slice(all[i], start, stop), Shape(std::move(sizes))));
  }
  return out;
}

// The results of vmap(f) on the stacked inputs, and the stacked results of f on each member.
std::pair<std::vector<Tensor>, std::vector<Tensor>> both_ways(std::span<const Tensor> all,
                                                              const std::vector<bool>& batched,
                                                              const Body& f) {
  std::vector<Tensor> given;
  std::vector<Tensor> shared = member(all, std::vector<bool>(all.size(), false), 0);
  for (std::size_t i = 0; i < all.size(); ++i) given.push_back(batched[i] ? all[i] : shared[i]);
  std::vector<Tensor> together = vmap([&](const std::vector<Tensor>& x) { return f(x); },
                                      {.in_axes = in_axes(batched)})(given);
  std::vector<std::vector<Tensor>> results;
  for (std::size_t m = 0; m < kMembers; ++m) results.push_back(f(member(all, batched, m)));
  std::vector<Tensor> one_by_one;
  for (std::size_t r = 0; r < together.size(); ++r) {
    std::vector<Tensor> column;
    for (const std::vector<Tensor>& each : results) column.push_back(each[r]);
    one_by_one.push_back(stack(column));
  }
  return {std::move(together), std::move(one_by_one)};
}

// Batches of f over all subsets of its inputs, and the members of each.
struct Comparison {
  Part part;
  std::vector<std::vector<bool>> subsets;
  std::string_view what;
};

Comparison batches(std::string name, const Members& members, Body f, std::string_view what) {
  std::vector<HostArray> inputs = members.all_stacked();
  std::vector<std::vector<bool>> chosen = subsets(inputs.size());
  auto body = [chosen, f = std::move(f)](std::span<const Tensor> all) {
    std::vector<Tensor> out;
    for (const std::vector<bool>& batched : chosen) {
      auto [together, one_by_one] = both_ways(all, batched, f);
      out.insert(out.end(), together.begin(), together.end());
      out.insert(out.end(), one_by_one.begin(), one_by_one.end());
    }
    return out;
  };
  return {{std::move(name), std::move(inputs), std::move(body)}, std::move(chosen), what};
}

void compare(const Comparison& one, std::span<const HostArray> results, double ulps) {
  std::size_t per_subset = results.size() / 2 / one.subsets.size();
  for (std::size_t s = 0; s < one.subsets.size(); ++s) {
    std::string which;
    for (bool each : one.subsets[s]) which += each ? 'b' : '-';
    for (std::size_t r = 0; r < per_subset; ++r)
      EXPECT_TRUE(close(results[2 * per_subset * s + r],
                        results[2 * per_subset * s + per_subset + r], ulps))
          << one.part.name << ", result " << r << ", batched operands " << which;
    tally(one.what);
  }
}

// Element-wise ops share one batch rule, and decompositions another, so that three samples of each
// are enough.
bool is_chosen(const OpDef& op, std::size_t sample, std::size_t count) {
  if (op.batch != element_wise::batch && op.traits.runs_on_shards != every_call) return true;
  std::size_t step = std::max<std::size_t>(count / 3, 1);
  return (count - 1 - sample) % step == 0;
}

TEST_P(Batch, IsItsMembersOneByOne) {
  bool has_operands = !op().operands.empty();
  EXPECT_EQ(op().batch == nullptr, without_rule().contains(op().name))
      << op().name << " has no batch rule and no reason listed in this file, or both";
  if (!op().batch || !has_operands) return tally("ops without a batch rule: listed");
  std::vector<OpSample> all = samples();
  std::vector<Members> members = members_of(op());
  std::vector<Comparison> comparisons;
  bool has_gradient = false;
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (all[s].inputs.empty() || !is_chosen(op(), s, all.size())) continue;
    comparisons.push_back(batches("sample " + all[s].name, members[s], body_of(all[s]),
                                  "batches compared with their members"));
    if (!op().vjp || !all[s].check_vjp || !all_f64(all[s]) || has_gradient) continue;
    Graph graph = trace(all[s].inputs, body_of(all[s]));
    SampleSource source(test_seed() + 1);
    std::vector<HostArray> cotangents;
    for (std::size_t m = 0; m < kMembers; ++m)
      cotangents.push_back(source.uniform(DType::f64, graph.results()[0].type().shape));
    members[s].inputs.push_back(std::move(cotangents));
    comparisons.push_back(batches("the gradient of sample " + all[s].name, members[s],
                                  gradient_of(all[s]), "batched derivatives compared"));
    has_gradient = true;
  }
  std::vector<Part> parts;
  for (const Comparison& each : comparisons) parts.push_back(each.part);
  std::vector<Together::Results> results = Together(std::move(parts)).run();
  double ulps = op().traits.runs_on_shards == every_call ? kUlpsOfDecompositions : kUlps;
  for (std::size_t i = 0; i < comparisons.size(); ++i) compare(comparisons[i], results[i], ulps);
}

INSTANTIATE_TEST_SUITE_P(Ops, Batch, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
