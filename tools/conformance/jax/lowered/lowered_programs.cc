#include "tools/conformance/jax/lowered/lowered_programs.h"

#include <functional>
#include <map>

#include "meshard/graph/leaf.h"
#include "meshard/meshard.h"

namespace meshard::conformance {
namespace {

using Tensors = std::vector<Tensor>;

const Shape kA{8, 16}, kB{16, 32};

struct Argument {
  Shape shape;
  std::optional<Sharding> sharding = std::nullopt;
  DType dtype = DType::f32;
};

struct Recorded {
  std::vector<Argument> arguments;
  std::function<Tensors(const Tensors&)> function;
  std::vector<std::uint32_t> donated = {};
};

std::string module_of(const Recorded& recorded) {
  internal::TraceScope scope;
  Tensors parameters;
  std::vector<Value> leaves, results;
  for (const Argument& argument : recorded.arguments) {
    parameters.push_back(make_parameter({argument.dtype, argument.shape}, argument.sharding, {}));
    leaves.push_back(parameters.back().value());
  }
  for (const Tensor& result : recorded.function(parameters)) results.push_back(result.value());
  return lower({.graph = Graph::build(leaves, results, scope.trace()), .donated = recorded.donated})
      .text;
}

const Mesh& mesh() {
  static const Mesh kMesh({{"x", 2}, {"y", 4}});
  return kMesh;
}
const Mesh& explicit_mesh() {
  static const Mesh kMesh({{"x", 2, AxisKind::kExplicit}, {"y", 4, AxisKind::kExplicit}});
  return kMesh;
}

Sharding on(const PartitionSpec& spec) { return Sharding(mesh(), spec); }
Sharding explicitly(const PartitionSpec& spec) { return Sharding(explicit_mesh(), spec); }

// Reads `((x,y),-)`: for each dimension one axis, several, none, or open.
std::optional<PartitionSpec> spec_in(std::string_view text) {
  std::size_t open = text.find('('), depth = 0;
  if (open == std::string_view::npos) return std::nullopt;
  std::vector<DimensionSpec> dimensions;
  AxisList axes;
  std::string word;
  bool is_open = false;
  for (char letter : text.substr(open)) {
    bool ends = letter == ',' || letter == ')';
    if (ends && (word == "x" || word == "y")) axes.push_back(AxisRef(word));
    if (ends && (word == "unconstrained" || word == "*")) is_open = true;
    if (letter == '(') ++depth;
    if ((letter == ',' && depth == 1) || (letter == ')' && depth == 1)) {
      dimensions.emplace_back(axes, is_open);
      axes = {};
      is_open = false;
    }
    if (letter == ')' && --depth == 0) break;
    if (ends || letter == '(' || letter == ' ')
      word.clear();
    else
      word += letter;
  }
  return PartitionSpec(std::move(dimensions));
}

Tensors product(const Tensors& p) { return {matmul(p[0], p[1])}; }
Tensors one_more(const Tensors& p) { return {p[0] + 1.0}; }

// A manual function of the local part of an [8, 16] argument.
Recorded by_hand(PartitionSpec in, PartitionSpec out, std::function<Tensor(const Tensor&)> local) {
  return {{{kA}}, [=](const Tensors& p) { return Tensors{manual(mesh(), in, out, local)(p[0])}; }};
}

using Cases = std::map<std::string, Recorded, std::less<>>;

const Cases& automatic() {
  static const Mesh kOther({{"p", 4}, {"q", 2}});
  static const Mesh kOne({{"x", 1}});
  static const Mesh kTransposed({{"x", 2}, {"y", 4}}, {0, 2, 4, 6, 1, 3, 5, 7});
  auto rows = [] { return on(P("x", none)); };
  auto columns = [] { return on(P(none, "y")); };
  static const Cases cases{
      {"matmul_in_out",
       {{{kA, on(P("x", "y"))}, {kB, on(P("y", none))}},
        [=](const Tensors& p) { return Tensors{mark_sharding(matmul(p[0], p[1]), rows())}; }}},
      {"matmul_in_only", {{{kA, rows()}, {kB, columns()}}, product}},
      {"matmul_out_only",
       {{{kA}, {kB}},
        [=](const Tensors& p) { return Tensors{mark_sharding(matmul(p[0], p[1]), rows())}; }}},
      {"constraint_mid",
       {{{kA, rows()}, {kB, columns()}},
        [=](const Tensors& p) {
          Tensor hidden = mark_sharding(relu(matmul(p[0], p[1])), on(P("x", "y")));
          return Tensors{matmul(hidden, permute_dims(p[1], {1, 0}))};
        }}},
      {"donate_unusable",
       {{{kA, rows()}},
        [](const Tensors& p) { return Tensors{mark_sharding(sum(p[0]), on(P()))}; },
        {0}}},
      {"one_device",
       {{{kA, Sharding(kOne, P("x", none))}},
        [=](const Tensors& p) {
          return Tensors{mark_sharding(p[0] + 1.0, Sharding(kOne, P("x", none)))};
        }}},
      {"no_sharding", {{{kA}}, one_more}},
      {"tuple_outputs",
       {{{kA, rows()}},
        [=](const Tensors& p) {
          return Tensors{mark_sharding(p[0] + 1.0, rows()),
                         mark_sharding(sum(p[0], 0), on(P("y")))};
        }}},
      // jit drops unused arguments.
      {"unused_argument", {{{kA, rows()}}, one_more}},
      {"two_meshes_same_devices",
       {{{kA, on(P("x", "y"))}},
        [](const Tensors& p) {
          return Tensors{mark_sharding(p[0] * 2.0, Sharding(kOther, P("p", "q")))};
        }}},
      {"two_meshes_other_order",
       {{{kA, on(P("x", "y"))}},
        [](const Tensors& p) {
          return Tensors{mark_sharding(p[0] * 2.0, Sharding(kTransposed, P("x", "y")))};
        }}},
      {"permuted_devices",
       {{{kA, Sharding(kTransposed, P("x", "y"))}},
        [](const Tensors& p) {
          return Tensors{mark_sharding(p[0] * 2.0, Sharding(kTransposed, P("x", "y")))};
        }}},
      {"random_bits",
       {{{{2}, std::nullopt, DType::u32}},
        [](const Tensors& p) {
          return Tensors{mark_sharding(random::bits(p[0], kA), on(P("x", "y")))};
        }}},
  };
  return cases;
}

const Cases& by_hand_cases() {
  static const Cases cases{
      {"shard_map_psum", by_hand(P("x", "y"), P("x"),
                                 [](const Tensor& part) { return all_reduce(sum(part, 1), "y"); })},
      {"shard_map_pmax",
       by_hand(P("x", "y"), P("x"),
               [](const Tensor& part) { return all_reduce(max(part, 1), "y", ReduceKind::kMax); })},
      {"shard_map_all_gather",
       by_hand(P("x", "y"), P("x", none),
               [](const Tensor& part) { return all_gather_invariant(part, "y", 1); })},
      {"shard_map_all_to_all",
       by_hand(P(none, "y"), P("y", none),
               [](const Tensor& part) { return all_to_all(part, "y", 0, 1); })},
      {"shard_map_psum_scatter",
       by_hand(P("x", none), P({"x", "y"}, none),
               [](const Tensor& part) { return reduce_scatter(vary(part, "y"), "y", 0); })},
      {"shard_map_ppermute",
       by_hand(P("x", "y"), P("x", "y"), [](const Tensor& part) { return ring_shift(part, "y"); })},
      {"shard_map_axis_index", by_hand(P("x", "y"), P("x", "y"),
                                       [](const Tensor& part) {
                                         return part + astype(4 * axis_index("x"), DType::f32) +
                                                astype(axis_index("y"), DType::f32);
                                       })},
  };
  return cases;
}

const Cases& explicit_cases() {
  static const Cases cases{
      {"explicit_matmul",
       {{{kA, explicitly(P("x", none))}, {kB, explicitly(P(none, "y"))}}, product}},
      {"explicit_unreduced",
       {{{kA, explicitly(P("x", "y"))}, {kB, explicitly(P("y", none))}},
        [](const Tensors& p) { return Tensors{matmul(p[0], p[1], explicitly(P("x", none)))}; }}},
      {"explicit_grad",
       {{{kA, explicitly(P("x", none))}},
        [](const Tensors& p) {
          Tensor b = mark_sharding(zeros(kB), explicitly(P(none, "y")));
          Tensor total = sum(matmul(p[0], b)), one = ones({});
          return backward({&total, 1}, {&one, 1}, {&b, 1}, SourceLocation::current());
        }}},
  };
  return cases;
}

}  // namespace

std::optional<std::string> lowered_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  for (const Cases* cases : {&automatic(), &by_hand_cases(), &explicit_cases()})
    if (auto found = cases->find(id); found != cases->end()) return module_of(found->second);
  if (id.starts_with("constraint_"))
    if (std::optional<PartitionSpec> spec = spec_in(what))
      return module_of({{{kA}}, [&](const Tensors& p) {
                          return Tensors{mark_sharding(p[0] + 1.0, on(*spec))};
                        }});
  return std::nullopt;
}

}  // namespace meshard::conformance
