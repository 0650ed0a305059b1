#include "tests/quirks/trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/loaded_executable.h"
#include "pjrt/pjrt_c_api.h"

namespace meshard::quirk_trials {
namespace {

const Mesh& line() {
  static const Mesh mesh({{"x", 8}});
  return mesh;
}

Trial split_over(std::int64_t devices, Shape shape, const PartitionSpec& spec, Function f,
                 Function expected = {}) {
  Sharding sharding(devices == 8 ? line() : Mesh({{"x", devices}}), spec);
  return {.function = f,
          .expected = expected ? expected : f,
          .shape = std::move(shape),
          .sharding = std::move(sharding)};
}

// Transforms over a second mesh, so that they do not run on shards.
Tensor transforms(const Tensor& x) {
  Tensor y = mark_sharding(x, Mesh({{"y", 2}, {"z", 4}}), P(none, {"y", "z"}));
  return real(ifft(fft(complex(y, y) + 1) * 2));
}

Trial split(Shape shape, const PartitionSpec& spec, Function f, Function expected = {}) {
  return split_over(8, std::move(shape), spec, std::move(f), std::move(expected));
}

// Gives a value a sharding over the mesh of a program; nothing on one device.
using Marks = std::function<Tensor(const Tensor&, const PartitionSpec&)>;

// `f` over any mesh, in which it marks values.
Trial split_by(std::vector<MeshAxis> axes, Shape shape, const PartitionSpec& spec,
               const std::function<Tensor(const Tensor&, const Marks&)>& f) {
  const Mesh mesh(std::move(axes));
  Marks marks = [mesh](const Tensor& x, const PartitionSpec& where) {
    return sharding_constraint(x, Sharding(mesh, where));
  };
  Marks none_marked = [](const Tensor& x, const PartitionSpec&) { return x; };
  return {.function = [=](const Tensor& x) { return f(x, marks); },
          .expected = [=](const Tensor& x) { return f(x, none_marked); },
          .shape = std::move(shape),
          .sharding = Sharding(mesh, spec)};
}

Trial on_one_device(Shape shape, Function f, Function expected) {
  return {.function = std::move(f), .expected = std::move(expected), .shape = std::move(shape)};
}

Trial timed(Shape shape, Function f) {
  return {.function = f, .expected = f, .shape = std::move(shape), .is_timed = true};
}

// Applies `top` to the first half of the rows, and `bottom` to the others.
Function on_halves(const Function& top, const Function& bottom) {
  return [=](const Tensor& x) {
    Dimensions zeros(static_cast<std::size_t>(x.rank()), 0), middle = zeros, half, all;
    for (std::int64_t size : x.shape()) half.push_back(size);
    all = half;
    middle[0] = half[0] = x.dim(0) / 2;
    return concat({top(slice(x, zeros, half)), bottom(slice(x, middle, all))}, 0);
  };
}

// `f` in a region over "m", on values that are split by `spec` over "s", and copied along "c". Its
// results are split by `result`, if that says something.
Trial in_region(Shape shape, const PartitionSpec& spec, const Function& f,
                const PartitionSpec& result = {}) {
  const Mesh cube({{"m", 2}, {"s", 2}, {"c", 2}});
  Function local = [=](const Tensor& x) {
    Tensor made = f(sharding_constraint(x, Sharding(cube, spec)));
    return result == PartitionSpec() ? made : sharding_constraint(made, Sharding(cube, result));
  };
  return {.function = manual(cube, P("m"), P("m"), local, {.axes = {"m"}}),
          .expected = on_halves(f, f),
          .shape = std::move(shape),
          .sharding = Sharding(cube, P("m"))};
}

// In a region over "x", only some devices run a branch that moves values along "y".
Trial branches(Shape shape) {
  const Mesh grid({{"x", 2}, {"y", 4}});
  Function rolled = [](const Tensor& x) { return roll(x, 1, 1); };
  Function negated = [](const Tensor& x) { return -x; };
  Function local = [=](const Tensor& x) {
    Tensor columns = sharding_constraint(x, Sharding(grid, P(none, "y")));
    return cond(equal(axis_index("x"), 0), rolled, negated, columns);
  };
  return {.function = manual(grid, P("x"), P("x"), local, {.axes = {"x"}}),
          .expected = on_halves(rolled, negated),
          .shape = std::move(shape),
          .sharding = Sharding(grid, P("x"))};
}

Tensor counted(const Trial& trial) {
  std::vector<float> values(static_cast<std::size_t>(trial.shape.size()));
  std::iota(values.begin(), values.end(), 0.0f);
  Tensor x = from_host(std::move(values), trial.shape);
  return trial.sharding ? mark_sharding(x, *trial.sharding) : x;
}

// Many launches on several devices that nothing waits for.
Trial run_at_once(int launches) {
  return {.run = [launches] {
    auto f = jit([](const Tensor& x) { return x + sum(x); });
    Tensor x = mark_sharding(ones({8}), line(), P("x"));
    std::vector<Tensor> results;
    for (int i = 0; i < launches; ++i) results.push_back(f(x));
    return std::ranges::all_of(
        results, [](const Tensor& y) { return y.to_vector<float>() == std::vector<float>(8, 9); });
  }};
}

// A launch that fails on one of the devices, and the next one, which may be refused.
Trial fail_on_one_device() {
  return {.run = [] {
    auto fails = [](std::span<const HostArray> x) {
      if (x[0].to_vector<float>()[0] == 0) throw std::runtime_error("the first device fails");
      return std::vector{x[0]};
    };
    auto f = jit(manual(line(), P("x"), P("x"), [=](const Tensor& x) {
      return pure_callback(fails, {x}, {{DType::f32, x.shape()}})[0];
    }));
    Tensor x = mark_sharding(arange(8.0), line(), P("x"));
    try {
      (void)f(x).to_vector<float>();
      return false;
    } catch (const Error&) {
    }
    try {
      return jit([](const Tensor& y) { return sum(y); })(x).item<float>() == 28;
    } catch (const Error& error) {
      return std::string(error.what()).find("restart_runtime()") != std::string::npos;
    }
  }};
}

// Launches the first part of a program with one argument and one result, and waits for it. The
// others are never launched: by the C API, because the layers over it launch all.
bool first_part_ends(const pjrt::Client& client, const pjrt::LoadedExecutable& program,
                     const pjrt::Buffer& argument) {
  const PJRT_Api* api = client.plugin().api();
  PJRT_ExecuteOptions options{};
  options.struct_size = PJRT_ExecuteOptions_STRUCT_SIZE;
  options.launch_id = pjrt::next_launch_id();
  PJRT_Buffer* argument_of_device = argument.raw();
  PJRT_Buffer* const* arguments = &argument_of_device;
  PJRT_Buffer* result_of_device = nullptr;
  PJRT_Buffer** results = &result_of_device;
  PJRT_Event* event = nullptr;
  PJRT_LoadedExecutable_Execute_Args execute{};
  execute.struct_size = PJRT_LoadedExecutable_Execute_Args_STRUCT_SIZE;
  execute.executable = program.raw();
  execute.options = &options;
  execute.argument_lists = &arguments;
  execute.output_lists = &results;
  execute.num_devices = 1;
  execute.num_args = 1;
  execute.execute_device = program.devices()[0]->raw();
  execute.device_complete_events = &event;
  if (api->PJRT_LoadedExecutable_Execute(&execute) != nullptr) return false;
  PJRT_Event_Await_Args wait{};
  wait.struct_size = PJRT_Event_Await_Args_STRUCT_SIZE;
  wait.event = event;
  return api->PJRT_Event_Await(&wait) == nullptr;
}

// A program for two devices whose parts are launched one after the other. It may be refused.
// @param collective its parts exchange values; else the first one is waited for by itself
Trial launch_parts(bool collective) {
  return {.run = [collective] {
    const std::string sharded = "tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}";
    std::string body =
        collective ? "tensor<f32> { %0 = stablehlo.constant dense<0.0> : tensor<f32> "
                     "%1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = "
                     "[0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32> return %1 : tensor<f32> }"
                   : cat("(", sharded, ") { return %a : tensor<8xf32> }");
    const pjrt::Client client = runtime_client();
    pjrt::CompileOptions options;
    options.num_partitions = 2;
    options.device_assignment = {0, 1};
    auto program = client
                       .compile(cat("module @parts { sdy.mesh @m = <[\"x\"=2]> func.func public "
                                    "@main(%a: ",
                                    sharded, ") -> ", body, " }"),
                                options)
                       .value();
    const std::vector<float> values(4, 1);
    const std::vector<std::int64_t> sizes = {4};
    pjrt::HostArrayView view{values.data(), pjrt::ElementType::kF32, sizes};
    std::vector<pjrt::Buffer> arguments;
    for (std::size_t k = 0; k < 2; ++k)
      arguments.push_back(client
                              .buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall,
                                                *program.devices()[k])
                              .value()
                              .buffer);
    if (!program.can_run_device_by_device()) return true;
    if (!collective) return first_part_ends(client, program, arguments[0]);
    const pjrt::BufferList argument = pjrt::BufferList::of(arguments);
    std::vector<pjrt::BufferList> outputs(1);
    auto launched = program.execute_each_device(std::vector{&argument}, outputs);
    return launched.value().await().ok();
  }};
}

bool are_near(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return x == y || (std::isnan(x) && std::isnan(y)) ||
           std::abs(x - y) <= 1e-4f * (1 + std::abs(y));
  });
}

}  // namespace

Trial trial_of(Quirk quirk) {
#define MESHARD_QUIRK(name, ...)
#define MESHARD_QUIRK_PROGRAM(name, ...) \
  if (quirk == Quirk::name) return __VA_ARGS__;
#include "meshard/quirks/quirk_list.inc"
#undef MESHARD_QUIRK
#undef MESHARD_QUIRK_PROGRAM
  throw std::runtime_error(cat("quirk_list.inc has no program for ", row_of(quirk).name));
}

bool is_right(const Trial& trial) {
  if (trial.run) return trial.run();
  Trial whole = trial;
  whole.sharding.reset();
  std::vector<float> expected = trial.expected(counted(whole)).to_vector<float>();
  return are_near(jit(trial.function)(counted(trial)).to_vector<float>(), expected);
}

double seconds_of(const Trial& trial) {
  auto f = jit(trial.function);
  Tensor x = counted(trial);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 10; ++i) {
    auto begin = std::chrono::steady_clock::now();
    block_until_ready(f(x));
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (i > 0) least = std::min(least, took.count());
  }
  return least;
}

std::string text_of(const Trial& trial, QuirkSet quirks) {
  meshard::internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, trial.shape}, trial.sharding, {});
  Tensor y = trial.function(x);
  Program program{
      .graph = Graph::build(std::vector{x.value()}, std::vector{y.value()}, scope.trace()),
      .donated = {}};
  return lower(program, {.quirks = [&](const std::optional<Mesh>&) { return quirks; }}).text;
}

}  // namespace meshard::quirk_trials
