#include <gmock/gmock.h>

#include <functional>
#include <sstream>

#include "meshard/graph/leaf.h"
#include "meshard/lowering/internal/partitioner_needs.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;
using Local = std::function<Tensor(const Tensor&)>;

const Mesh& two_by_four() {
  static const Mesh mesh({{"x", 2}, {"y", 4}});
  return mesh;
}

// The text inside the region of `f` on the rows of a 4x8 matrix, in a region over these axes.
std::string text_in_region(const Local& f, std::vector<std::string> axes,
                           const char* platform = "cpu") {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {4, 8}}, std::nullopt, {});
  Tensor y = manual(two_by_four(), P("x"), P("x"), f, {.axes = std::move(axes)})(x);
  Program program{
      .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
      .donated = {}};
  LowerOptions options{
      .quirks = [&](const std::optional<Mesh>&) { return quirks_of_table(platform); }};
  std::string text = lower(program, options).text;
  std::size_t begin = text.find("sdy.manual_computation");
  return text.substr(begin, text.find("sdy.return") - begin);
}

Tensor in_branch(const Tensor& x, const Local& f) {
  return cond(
      equal(axis_index("x"), 0), f, [](const Tensor& t) { return -t; }, x);
}

Tensor in_loop(const Tensor& x, const Local& f) {
  Tensor turns = axis_index("x") + 1;
  return while_loop([turns](const std::pair<Tensor, Tensor>& c) { return less(c.first, turns); },
                    [&](const std::pair<Tensor, Tensor>& c) {
                      return std::pair(c.first + 1, f(c.second));
                    },
                    std::pair(turns * 0, x))
      .second;
}

TEST(QuirksInRegions, NameOps) {
  for (const QuirkRow& row : quirk_table()) {
    std::istringstream names{std::string(row.gathered_in_regions)};
    for (std::string name; names >> name;)
      EXPECT_TRUE(find_op(name)) << row.name << " has " << name << ", which is not an op";
  }
}

TEST(QuirksInRegions, OperandsAndResultsAreGatheredInRegionsOverSomeAxes) {
  const std::pair<std::string_view, Local> calls[] = {
      {"stablehlo.convolution",
       [](const Tensor& t) {
         return reshape(conv1d(reshape(t, {2, 8, 1}), ones({3, 1, 1}), {.padding = Padding::kSame}),
                        {2, 8});
       }},
      {"stablehlo.gather", [](const Tensor& t) { return take(t, iota(DType::i32, {8}, 0), 1); }},
      {"stablehlo.scatter",
       [](const Tensor& t) { return segment_sum(t, iota(DType::i32, {2}, 0), 2); }},
      {"stablehlo.fft", [](const Tensor& t) { return real(fft(t)); }},
      {"stablehlo.reduce_window",
       [](const Tensor& t) {
         return reduce_window_max(t, {1, 3}, {.padding = Padding::kSame});
       }},
      {"stablehlo.pad",
       [](const Tensor& t) {
         return pad(t, 0, {0, 1}, {0, 1});
       }},
  };
  for (const auto& [mnemonic, call] : calls) {
    std::string text = text_in_region(call, {"x"});
    EXPECT_THAT(text, HasSubstr(mnemonic));
    std::size_t op = text.find(std::string(mnemonic));
    EXPECT_NE(text.rfind("sdy.sharding_constraint", op), std::string::npos) << mnemonic;
    EXPECT_NE(text.find("sdy.sharding_constraint", op), std::string::npos) << mnemonic;
    EXPECT_THAT(text_in_region(call, {"x", "y"}), Not(HasSubstr("sdy.sharding_constraint")))
        << mnemonic;
  }
}

TEST(QuirksInRegions, OnlyPaddedDimensionsOfPadsAreGathered) {
  auto padded = [](const Tensor& t) { return pad(t, 0, {0, 1}, {0, 1}); };
  EXPECT_THAT(text_in_region(padded, {"x"}), HasSubstr("[{?}, {}]"));
  auto unpadded = [](const Tensor& t) { return pad(t, 0, {0, 0}, {0, 0}); };
  EXPECT_THAT(text_in_region(unpadded, {"x"}), Not(HasSubstr("sdy.sharding_constraint")));
}

TEST(QuirksInRegions, OpsWithoutFaultsAreWrittenAsTheyAre) {
  std::string text =
      text_in_region([](const Tensor& t) { return tanh(t) + sum(t, 1, true); }, {"x"});
  EXPECT_THAT(text, Not(HasSubstr("sdy.sharding_constraint")));
}

TEST(QuirksInRegions, BranchesThatMayPermuteAreRunByAllDevices) {
  Local plain = [](const Tensor& x) { return in_branch(x, [](const Tensor& t) { return t * 2; }); };
  Local ring = [](const Tensor& x) {
    return in_branch(x, [](const Tensor& t) { return ring_shift(vary(t, "y"), "y"); });
  };
  EXPECT_THAT(text_in_region(plain, {"x"}), Not(HasSubstr("stablehlo.case")));
  EXPECT_THAT(text_in_region(plain, {"x"}), HasSubstr("stablehlo.select"));
  EXPECT_THAT(text_in_region(plain, {"x", "y"}), HasSubstr("stablehlo.case"));
  EXPECT_THAT(text_in_region(plain, {"x"}, "tpu"), HasSubstr("stablehlo.case"));
  auto reduced = [](const Local& f) {
    return [f](const Tensor& x) { return all_reduce(f(x), "y", ReduceKind::kMax); };
  };
  EXPECT_THAT(text_in_region(reduced(ring), {"x", "y"}), Not(HasSubstr("stablehlo.case")));
  EXPECT_THAT(text_in_region(reduced(ring), {"x", "y"}, "cuda"), HasSubstr("stablehlo.case"));
}

TEST(QuirksInRegions, DevicesThatDoNotTakeABranchPrintNothing) {
  Local prints = [](const Tensor& x) {
    return in_branch(x, [](const Tensor& t) {
      debug_print("taken {}", t);
      return t * 2;
    });
  };
  EXPECT_THAT(text_in_region(prints, {"x"}), HasSubstr("stablehlo.if"));
  EXPECT_THAT(text_in_region(prints, {"x", "y"}), Not(HasSubstr("stablehlo.if")));
}

TEST(QuirksInRegions, LoopsThatEndAtDifferentTurnsEndTogether) {
  Local plain = [](const Tensor& x) { return in_loop(x, [](const Tensor& t) { return t * 2; }); };
  EXPECT_THAT(text_in_region(plain, {"x"}), HasSubstr("stablehlo.all_reduce"));
  EXPECT_THAT(text_in_region(plain, {"x", "y"}), Not(HasSubstr("stablehlo.all_reduce")));
  EXPECT_THAT(text_in_region(plain, {"x"}, "tpu"), Not(HasSubstr("stablehlo.all_reduce")));
  Local counted = [](const Tensor& x) {
    return fori_loop(
        0, 3, [](const Tensor&, const Tensor& t) { return t * 2; }, x);
  };
  EXPECT_THAT(text_in_region(counted, {"x"}), Not(HasSubstr("stablehlo.all_reduce")));
}

}  // namespace
}  // namespace meshard
