// Samples of ops that run programs, communicate, call the host or tell the compiler something.
#include <initializer_list>

#include "meshard/graph/body.h"
#include "meshard/ops/all.h"
#include "meshard/ops/internal/collective.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
using namespace internal;
namespace {

std::vector<OpSample> checkpoint_samples(SampleSource& source) {
  auto run = [](ResidualPolicy::Keep keep) {
    return [keep](std::span<const Tensor> x) {
      return checkpoint_tensors({x[0]},
                                [w = x[1]](std::span<const Tensor> given) {
                                  return std::vector<Tensor>{sin(multiply(sin(given[0]), w))};
                                },
                                {keep})[0];
    };
  };
  auto inputs = [&](DType dtype) {
    return std::vector<HostArray>{source.uniform(dtype, {4, 8}), source.uniform(dtype, {8})};
  };
  using Keep = ResidualPolicy::Keep;
  return {
      {"nothing", inputs(DType::f64), run(Keep::kNothing)},
      {"everything", inputs(DType::f64), run(Keep::kEverything)},
      {"dots", inputs(DType::f64), run(Keep::kDots)},
      {"f32", inputs(DType::f32), run(Keep::kNothing)},
  };
}

// Samples of ops on local values, for one and for two devices; the name of each op precedes those
// of its samples. Axis "x" splits dimension 0 of the input, in several dtypes and shapes; the
// results are concatenated along dimension 0.
using NamedCall = std::pair<std::string_view, Tensor (*)(const Tensor&)>;
std::vector<OpSample> local_samples(SampleSource& source, std::initializer_list<NamedCall> ops) {
  std::vector<OpSample> all;
  for (const auto& [name, op] : ops) {
    auto add = [&, name = name, op = op](std::string_view sample, HostArray input,
                                         std::int64_t devices) {
      auto call = [op, devices](std::span<const Tensor> x) {
        return manual(Mesh({{"x", devices}}), P("x"), P("x"), [op](const Tensor& local) {
          return collective::varying_over(op(local), {"x"});
        })(x[0]);
      };
      all.push_back({name.empty() ? std::string(sample) : cat(name, ", ", sample),
                     {std::move(input)},
                     std::move(call)});
    };
    add("one device", source.uniform(DType::f32, {4, 8}), 1);
    add("two devices", source.uniform(DType::f32, {8, 8}), 2);
    add("f64", source.distinct(DType::f64, {8, 4}), 2);
    add("vector", source.uniform(DType::f32, {8}), 2);
    add("rank 3", source.uniform(DType::f32, {8, 4, 2}), 2);
    add("integers", source.uniform(DType::i32, {8, 4}, -9, 9), 2);
  }
  return all;
}

// Calls the compiler's own QR: Householder vectors and their factors.
std::vector<OpSample> custom_call_samples(SampleSource& source) {
  auto qr = [](std::string rule = {}) {
    return [rule](std::span<const Tensor> x) {
      Dimensions factors = x[0].shape().sizes();
      factors.erase(factors.end() - 2);
      return custom_call("Qr", {x[0]}, {x[0].type(), {x[0].dtype(), Shape(factors)}},
                         {.api_version = 1, .sharding_rule = rule})[0];
    };
  };
  return {
      {"matrix", {source.uniform(DType::f32, {8, 4})}, qr(), false},
      {"wide", {source.uniform(DType::f64, {4, 4})}, qr(), false},
      {"batch", {source.uniform(DType::f32, {2, 4, 4})}, qr(), false},
      {"with a rule",
       {source.uniform(DType::f32, {8, 4})},
       qr("([i, j])->([i, j], [k]) {i=8, j=4, k=4} need_replication={i, j, k}"),
       false},
  };
}

std::vector<OpSample> debug_print_samples(SampleSource& source) {
  auto printed = [](std::span<const Tensor> x) {
    return with_debug_print(x[0], "a sample of debug_print: {}", {x.back()});
  };
  return {
      {"vector", {source.uniform(DType::f32, {4})}, printed},
      {"matrix and vector",
       {source.uniform(DType::f64, {4, 8}), source.uniform(DType::f32, {4})},
       printed},
      {"f64", {source.uniform(DType::f64, {4})}, printed},
      {"text only",
       {source.uniform(DType::f32, {4})},
       [](std::span<const Tensor> x) {
         return with_debug_print(x[0], "a sample of debug_print", {});
       }},
  };
}

std::vector<OpSample> sharding_constraint_samples(SampleSource& source) {
  auto as = [](Sharding sharding) {
    return [sharding](std::span<const Tensor> x) { return sharding_constraint(x[0], sharding); };
  };
  Mesh pair({{"x", 2}}), square({{"x", 2}, {"y", 2}});
  return {
      {"one device", {source.uniform(DType::f32, {8, 4})}, as(Sharding(Mesh(), P(), 2))},
      {"rows", {source.uniform(DType::f64, {8, 4})}, as(Sharding(pair, P("x")))},
      {"grid", {source.uniform(DType::f32, {8, 4})}, as(Sharding(square, P("y", "x")))},
      {"open",
       {source.uniform(DType::f32, {4, 4, 2})},
       as(Sharding(square, P(unconstrained, none, unconstrained)))},
      {"scalar", {source.uniform(DType::f32, {})}, as(Sharding(pair, P()))},
  };
}

std::vector<OpSample> pure_callback_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) {
    return pure_callback(
        [](std::span<const HostArray> same) {
          return std::vector<HostArray>(same.begin(), same.end());
        },
        {x[0]}, {x[0].type()})[0];
  };
  return {
      {"vector", {source.uniform(DType::f32, {4})}, call, false},
      {"matrix", {source.uniform(DType::f64, {4, 8})}, call, false},
      {"scalar", {source.uniform(DType::i32, {})}, call, false},
  };
}

std::vector<OpSample> rng_samples(SampleSource& source) {
  auto of = [](RngAlgorithm algorithm, Shape shape, DType dtype, bool state = false) {
    return [=](std::span<const Tensor> x) {
      RandomBits made = rng_bit_generator(x[0], shape, dtype, algorithm);
      return state ? made.state : made.bits;
    };
  };
  HostArray two = source.uniform(DType::u64, {2}, 0, 1e9), three = source.uniform(DType::u64, {3});
  return {
      {"vector", {two}, of(RngAlgorithm::kThreeFry, {8}, DType::u32), false},
      {"the next state", {two}, of(RngAlgorithm::kThreeFry, {4, 8}, DType::u32, true), false},
      {"64 bits", {two}, of(RngAlgorithm::kPhilox, {4, 8}, DType::u64), false},
      {"Philox", {three}, of(RngAlgorithm::kPhilox, {4, 2, 8}, DType::u32), false},
      {"bytes", {two}, of(RngAlgorithm::kThreeFry, {4, 8}, DType::u8), false},
  };
}

std::vector<OpSample> scan_samples(SampleSource& source) {
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  // The next carry is the sine of an expression in all inputs, so that it depends on each of them.
  auto run = [](bool reverse, std::size_t result, std::int64_t unroll = 1) {
    return [reverse, result, unroll](std::span<const Tensor> x) {
      const Tensor& w = x[2];
      ScanCall call{{x[0]}, {x[1]}, x[1].dim(0), reverse, unroll};
      return scan_tensors(call, [w](std::span<const Tensor> given) {
        Tensor next = sin(add(multiply(given[0], w), given[1]));
        return std::vector<Tensor>{next, multiply(next, given[1])};
      })[result];
    };
  };
  auto inputs = [&](DType dtype, std::int64_t length) {
    return std::vector<HostArray>{source.uniform(dtype, {4, 8}),
                                  source.uniform(dtype, {length, 4, 8}),
                                  source.uniform(dtype, {8})};
  };
  auto counted = [](std::span<const Tensor> x) {
    return scan_tensors({{x[0]}, {}, 5, false}, [](std::span<const Tensor> given) {
      return std::vector<Tensor>{add(given[0], given[0])};
    })[0];
  };
  auto stacked = [](std::span<const Tensor> x) {
    return scan_tensors({{}, {x[0]}, x[0].dim(0), false}, [](std::span<const Tensor> given) {
      return std::vector<Tensor>{sin(given[0])};
    })[0];
  };
  return {
      {"last carry", inputs(f64, 4), run(false, 0)},
      {"stacked results", inputs(f64, 4), run(false, 1)},
      {"reverse, carry", inputs(f64, 3), run(true, 0)},
      {"reverse, results", inputs(f64, 3), run(true, 1)},
      {"f32", inputs(f32, 4), run(false, 1)},
      {"one step", inputs(f64, 1), run(false, 0)},
      {"two steps a turn", inputs(f64, 4), run(false, 1, 2)},
      {"two steps a turn, one left", inputs(f64, 5), run(true, 1, 2)},
      {"all steps in one turn", inputs(f64, 3), run(true, 0, 8)},
      {"no step, two a turn", inputs(f64, 0), run(false, 0, 2)},
      {"no step", inputs(f64, 0), run(false, 0)},
      {"integers", {source.uniform(i32, {8}, -9, 9)}, counted},
      {"no carry", {source.uniform(f64, {4, 8})}, stacked},
  };
}

std::vector<OpSample> switch_samples(SampleSource& source) {
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  auto choose = [](std::int64_t result) {
    return [result](std::span<const Tensor> x) {
      const Tensor& w = x[2];
      std::vector<BodyFunction> branches{
          [](std::span<const Tensor> g) {
            return std::vector<Tensor>{sin(g[0]), add(g[0], g[0])};
          },
          [w](std::span<const Tensor> g) {
            return std::vector<Tensor>{multiply(tanh(g[0]), w), g[0]};
          },
          [w](std::span<const Tensor> g) {
            return std::vector<Tensor>{w, multiply(g[0], multiply(g[0], w))};
          }};
      return switch_tensors(x[0], branches, {x[1]})[static_cast<std::size_t>(result)];
    };
  };
  auto inputs = [&](DType dtype, double index) {
    return std::vector<HostArray>{source.uniform(i32, {}, index, index),
                                  source.uniform(dtype, {4, 8}), source.uniform(dtype, {4, 8})};
  };
  return {
      {"first", inputs(f64, 0), choose(0)},       {"second", inputs(f64, 1), choose(0)},
      {"third", inputs(f64, 2), choose(1)},       {"f32", inputs(f32, 1), choose(1)},
      {"index above", inputs(f64, 7), choose(1)}, {"index below", inputs(f64, -3), choose(1)},
  };
}

std::vector<OpSample> while_samples(SampleSource& source) {
  DType f32 = DType::f32, f64 = DType::f64, i32 = DType::i32;
  // Doubles the values until their sum of squares is large.
  auto doubled = [](std::span<const Tensor> x) {
    const Tensor& limit = x[1];
    return while_tensors(
        [limit](std::span<const Tensor> c) {
          return std::vector<Tensor>{less(sum(multiply(c[0], c[0])), limit)};
        },
        [](std::span<const Tensor> c) { return std::vector<Tensor>{add(c[0], c[0])}; }, {x[0]})[0];
  };
  auto counted = [](std::span<const Tensor> x) {
    const Tensor& step = x[1];
    return while_tensors(
        [](std::span<const Tensor> c) { return std::vector<Tensor>{less(c[0], 100)}; },
        [step](std::span<const Tensor> c) {
          return std::vector<Tensor>{add(c[0], step), add(c[1], c[0])};
        },
        {x[0], x[2]})[1];
  };
  std::vector<OpSample> samples{
      {"vector", {source.uniform(f32, {8}), source.uniform(f32, {}, 50, 90)}, doubled},
      {"matrix", {source.uniform(f64, {4, 8}), source.uniform(f64, {}, 500, 900)}, doubled},
      {"two carries",
       {source.uniform(i32, {}, 0, 9), source.uniform(i32, {}, 3, 9), source.uniform(i32, {4, 2})},
       counted},
  };
  for (OpSample& sample : samples) sample.check_vjp = false;
  return samples;
}

template <ReduceKind kind>
Tensor over_x(const Tensor& local) {
  return all_reduce(local, "x", kind);
}

}  // namespace

const OpSampleTable& program_samples() {
  static const OpSampleTable table{
      {"checkpoint", checkpoint_samples},
      {"all_gather",
       [](SampleSource& source) {
         return local_samples(
             source, {{"", [](const Tensor& local) { return all_gather(local, "x", 0); }},
                      {"invariant",
                       [](const Tensor& local) { return all_gather_invariant(local, "x", -1); }}});
       }},
      {"all_reduce",
       [](SampleSource& source) {
         return local_samples(source, {{"", over_x<ReduceKind::kSum>},
                                       {"product", over_x<ReduceKind::kProd>},
                                       {"largest", over_x<ReduceKind::kMax>},
                                       {"smallest", over_x<ReduceKind::kMin>}});
       }},
      {"all_to_all",
       [](SampleSource& source) {
         return local_samples(
             source,
             {{"", [](const Tensor& local) { return all_to_all(local, "x", -1, 0); }},
              {"split rows", [](const Tensor& local) { return all_to_all(local, "x", 0, -1); }}});
       }},
      {"collective_permute",
       [](SampleSource& source) {
         return local_samples(source,
                              {{"", [](const Tensor& local) { return ring_shift(local, "x"); }},
                               {"zeros for one", [](const Tensor& local) {
                                  return collective_permute(local, "x", {{0, 0}});
                                }}});
       }},
      {"reduce_scatter",
       [](SampleSource& source) {
         return local_samples(
             source, {{"", [](const Tensor& local) { return reduce_scatter(local, "x", 0); }}});
       }},
      {"custom_call", custom_call_samples},
      {"debug_print", debug_print_samples},
      {"stop_gradient",
       [](SampleSource& source) {
         std::vector<OpSample> samples = unary_samples(source, stop_gradient);
         // Its derivative is zero by definition, not that of its values.
         for (OpSample& sample : samples) sample.check_vjp = false;
         return samples;
       }},
      {"optimization_barrier",
       [](SampleSource& source) {
         auto call = [](std::span<const Tensor> x) { return optimization_barrier(x[0]); };
         auto second = [](std::span<const Tensor> x) {
           return optimization_barrier({x.begin(), x.end()})[1];
         };
         return std::vector<OpSample>{
             {"vector", {source.uniform(DType::f32, {8})}, call},
             {"matrix", {source.uniform(DType::f64, {4, 8})}, call},
             {"integers", {source.uniform(DType::i32, {4, 8, 4}, -9, 9)}, call},
             {"two", {source.uniform(DType::f64, {4}), source.uniform(DType::f64, {8, 4})}, second},
         };
       }},
      {"checkpoint_name",
       [](SampleSource& source) {
         return unary_samples(source, [](In x) { return checkpoint_name(x, "kept"); });
       }},
      {"sharding_constraint", sharding_constraint_samples},
      {"full_to_shard",
       [](SampleSource& source) {
         return local_samples(source, {{"", [](const Tensor& local) { return local; }}});
       }},
      {"shard_to_full",
       [](SampleSource& source) {
         return local_samples(source, {{"", [](const Tensor& local) { return local; }}});
       }},
      {"vary",
       [](SampleSource& source) {
         auto over = [](std::int64_t devices) {
           return [devices](std::span<const Tensor> x) {
             return manual(Mesh({{"x", devices}}), P(), P("x"),
                           [](const Tensor& local) { return vary(local, "x"); })(x[0]);
           };
         };
         return std::vector<OpSample>{
             {"one device", {source.uniform(DType::f32, {4, 8})}, over(1)},
             {"two devices", {source.uniform(DType::f32, {4, 8})}, over(2)},
             {"f64", {source.uniform(DType::f64, {3, 4})}, over(2)},
         };
       }},
      {"pure_callback", pure_callback_samples},
      {"rng_bit_generator", rng_samples},
      {"scan", scan_samples},
      {"switch_case", switch_samples},
      {"while_loop", while_samples},
  };
  return table;
}

}  // namespace meshard
