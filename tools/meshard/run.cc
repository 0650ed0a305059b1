// meshard run: runs an exported program, and reports times, memory and results.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/explain/check_program.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/graph/sync.h"
#include "meshard/io/npy.h"
#include "meshard/io/npz.h"
#include "meshard/io/weights.h"
#include "meshard/runtime/imported_program.h"
#include "meshard/runtime/loaded_program.h"
#include "tools/meshard/array_figures.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/terminal.h"

namespace meshard::tool {
namespace {

// Exit codes: the results differ from what is expected; there are no results.
constexpr int kDiffers = 1, kNotRun = 2;

using Clock = std::chrono::steady_clock;

struct RunArguments {
  std::string file, save, expect;
  std::vector<std::string> inputs;
  std::vector<std::int64_t> devices;
  std::optional<std::uint64_t> seed;
  bool zeros = false, quiet = false, check = false;
  int repeat = 1;
  std::optional<double> tolerance;
};

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The arrays of a file; those of a .npy file have an empty name.
io::NamedArrays arrays_in(const std::string& path) {
  if (path.ends_with(".npy")) return {{"", io::load_npy(path).value()}};
  if (path.ends_with(".npz")) return io::load_npz(path).value();
  if (path.ends_with(".safetensors")) {
    io::NamedArrays arrays;
    io::Weights weights = io::Weights::open(path).value();
    for (const std::string& name : weights.names())
      arrays.emplace_back(name, weights.tensor(name, {}).value().to_host({}));
    return arrays;
  }
  throw Error(ErrorCode::kInvalidArgument,
              cat(path, ": expected a .npz, .npy or .safetensors file"));
}

// The position of the value that a name in a file means: `in2`, its path, or its name in the
// module; none if it means none.
std::optional<std::size_t> position_of(const std::string& name, std::string_view prefix,
                                       const std::vector<ImportedValue>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (name == cat(prefix, i) || name == values[i].path ||
        (!values[i].name.empty() && name == values[i].name))
      return i;
  return std::nullopt;
}

// The arrays of the files, by position; .npy files in the order in which they are given.
std::vector<std::optional<HostArray>> by_position(const std::vector<std::string>& files,
                                                  std::string_view prefix,
                                                  std::string_view other_prefix,
                                                  const std::vector<ImportedValue>& values) {
  std::vector<std::optional<HostArray>> found(values.size());
  std::size_t next = 0;
  for (const std::string& file : files)
    for (auto& [name, array] : arrays_in(file)) {
      std::optional<std::size_t> i =
          name.empty() ? std::optional(next++) : position_of(name, prefix, values);
      if (i && *i < found.size()) {
        found[*i] = std::move(array);
      } else if (!name.starts_with(other_prefix)) {
        std::vector<std::string> names;
        for (std::size_t k = 0; k < values.size(); ++k) names.push_back(cat(prefix, k));
        throw Error(ErrorCode::kInvalidArgument,
                    name.empty() ? cat(file, ": the program has only ", values.size(), " of these")
                                 : cat(file, ": the program has no \"", name, "\"; ",
                                       nearest_text(name, names)));
      }
    }
  return found;
}

// Converts an array of a file to the dtype of its argument, if that keeps every value.
HostArray converted(const HostArray& array, const ImportedValue& argument,
                    const std::string& name) {
  if (!argument.type || array.type() == *argument.type) return array;
  const auto refuse = [&](std::string_view why) {
    throw Error(ErrorCode::kInvalidArgument,
                cat(name, " is ", array.type(), ", but the program takes ", *argument.type, why));
  };
  if (array.shape() != argument.type->shape) refuse("");
  if (is_complex(array.dtype()) && !is_complex(argument.type->dtype)) refuse("");
  HostArray made = array.astype(argument.type->dtype);
  if (made.astype(array.dtype()) != array) refuse(", which does not hold its values");
  return made;
}

std::vector<Tensor> inputs_of(const RunArguments& arguments, const ImportedProgram& program) {
  const std::vector<ImportedValue>& wanted = program.arguments();
  std::vector<std::optional<HostArray>> given = by_position(arguments.inputs, "in", "out", wanted);
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string name =
        cat("argument in", i, wanted[i].name.empty() ? "" : cat(" (", wanted[i].name, ")"));
    const TensorType type = sent_type(wanted[i]);
    if (given[i]) {
      inputs.push_back(from_host(converted(*given[i], wanted[i], name), {}));
    } else if (arguments.seed) {
      inputs.push_back(from_host(random_array(type, *arguments.seed + i), {}));
    } else if (arguments.zeros || !wanted[i].used) {
      inputs.push_back(from_host(HostArray::zeros(type), {}));
    } else {
      throw Error(
          ErrorCode::kInvalidArgument,
          cat(name, ", ", type, ", is not given: use --inputs FILE, --random SEED or --zeros"));
    }
  }
  return inputs;
}

std::string bytes_text(double bytes) {
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(kUnits); ++unit) bytes /= 1024;
  char text[64];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes,
                std::string(kUnits[unit]).c_str());
  return text;
}

std::string memory_text(const LoadedProgram& program) {
  Result<pjrt::CompiledMemoryStats> stats = program.executable().executable().memory_stats();
  if (!stats.ok()) return "not reported by the plugin";
  return cat("per device: arguments ", bytes_text(static_cast<double>(stats->arguments)),
             ", results ", bytes_text(static_cast<double>(stats->outputs)), ", of which ",
             bytes_text(static_cast<double>(stats->aliases)), " donated, temporaries ",
             bytes_text(static_cast<double>(stats->temporaries)));
}

struct RunTimes {
  double compile = 0, first = 0;
  std::vector<double> others;

  std::string to_string() const {
    char text[160];
    std::snprintf(text, sizeof text, "compile %.1f ms, first %.2f ms", compile, first);
    if (others.empty()) return text;
    std::vector<double> sorted = others;
    std::ranges::sort(sorted);
    char more[160];
    std::snprintf(more, sizeof more, ", median of %zu more %.3f ms (least %.3f ms)", sorted.size(),
                  sorted[sorted.size() / 2], sorted[0]);
    return cat(text, more);
  }
};

// Compares the results with a file. @return whether they are equal within the tolerance
bool compare(const RunArguments& arguments, const std::vector<ImportedValue>& values,
             const std::vector<HostArray>& results) {
  std::vector<std::optional<HostArray>> expected =
      by_position({arguments.expect}, "out", "in", values);
  bool equal = true;
  std::size_t compared = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!expected[i]) continue;
    ++compared;
    std::string difference = difference_of(results[i], *expected[i], arguments.tolerance);
    if (difference.empty()) continue;
    equal = false;
    std::printf("out%zu %s differs: %s\n", i, values[i].path.c_str(), difference.c_str());
  }
  if (compared == 0)
    throw Error(ErrorCode::kInvalidArgument,
                cat(arguments.expect, " has none of the results out0, out1, ..."));
  if (equal && !arguments.quiet)
    std::printf("%zu of %zu results are as expected\n", compared, results.size());
  return equal;
}

void print_results(const std::vector<ImportedValue>& values, const std::vector<Tensor>& results,
                   const std::vector<HostArray>& arrays) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::optional<Sharding> sharding = results[i].stored_sharding();
    append(text, cat("  out", i, " ", values[i].path, values[i].path.empty() ? "" : "  ",
                     arrays[i].type(), sharding ? cat(" over ", sharding->spec()) : "", "  ",
                     statistics_of(arrays[i]), "\n"));
  }
  print_text(text);
}

// Compares the program with one device. @return whether it is right
bool check(const RunArguments& arguments, const ImportedProgram& program,
           const std::vector<Tensor>& inputs) {
  ProgramCheck found = check_program(program, inputs, {}, {});
  if (!found.ok() || !arguments.quiet) print_text(cat(found.to_string(), "\n"));
  return found.ok();
}

int run_program(const RunArguments& arguments) {
  ImportedProgram program = load_program(arguments.file, {}).value();
  if (!arguments.devices.empty()) {
    Mesh mesh({{"devices", static_cast<std::int64_t>(arguments.devices.size())}},
              arguments.devices);
    program = program.on(mesh, {});
  }
  std::vector<Tensor> inputs = inputs_of(arguments, program);
  RunTimes times;
  (void)runtime_client(SourceLocation{});  // starts the plugin
  Clock::time_point begin = Clock::now();
  std::shared_ptr<const LoadedProgram> loaded = program.loaded({});
  times.compile = milliseconds_since(begin);
  std::vector<Tensor> results;
  for (int i = 0; i < arguments.repeat; ++i) {
    begin = Clock::now();
    results = program.flat(inputs, {});
    block_until_ready(results);
    double took = milliseconds_since(begin);
    if (i == 0)
      times.first = took;
    else
      times.others.push_back(took);
  }
  std::vector<HostArray> arrays;
  for (const Tensor& result : results) arrays.push_back(result.to_host({}));
  if (!arguments.quiet) {
    std::string devices;
    for (const pjrt::Device* device : loaded->executable().devices())
      append(devices, cat(devices.empty() ? "" : ",", device->id()));
    print_text(cat(program.name(), " on ", loaded->client().platform(), " devices ", devices, "\n",
                   "  times   ", times.to_string(), "\n", "  memory  ", memory_text(*loaded),
                   "\n"));
    print_results(program.results(), results, arrays);
  }
  if (!arguments.save.empty()) {
    io::NamedArrays named;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      named.emplace_back(cat("out", i), storable(arrays[i]));
    io::save_npz(arguments.save, named).value();
  }
  bool right = arguments.expect.empty() || compare(arguments, program.results(), arrays);
  if (arguments.check) right = check(arguments, program, inputs) && right;
  return right ? 0 : kDiffers;
}

int checked_run(const RunArguments& arguments) {
  try {
    return run_program(arguments);
  } catch (const Error& error) {
    std::fprintf(stderr, "meshard run: %s\n", error.what());
    return kNotRun;
  }
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand(
      "run",
      "Runs a program that JAX exported, or a StableHLO file, and reports times and results");
  command->add_option("file", arguments->file, "what jax.export serialized, or a StableHLO module")
      ->required();
  command->add_option("--inputs", arguments->inputs,
                      "the arguments: .npz or .safetensors with in0, in1, ... or their names, or "
                      ".npy files in order");
  CLI::Option* random = command->add_option("--random", arguments->seed,
                                            "random values for the arguments that are not given");
  command->add_flag("--zeros", arguments->zeros, "zeros for them")->excludes(random);
  command
      ->add_option("--devices", arguments->devices, "ids of the devices; default: the first ones")
      ->delimiter(',');
  command->add_option("--repeat", arguments->repeat, "number of runs; default: 1")
      ->check(CLI::PositiveNumber);
  command->add_option("--save", arguments->save, "a .npz file for the results: out0, out1, ...");
  command->add_option("--expect", arguments->expect,
                      "a .npz or .safetensors file that the results must equal");
  command->add_option("--tolerance", arguments->tolerance,
                      "of --expect, T: |result - expected| <= T * (1 + |expected|). Default: 1e-5 "
                      "for f32, 1e-12 for f64, 1e-3 for f16, 1e-2 for bf16, 0 for integers");
  command->add_flag("--check", arguments->check,
                    "compares with one device, and names the first value inside that differs");
  command->add_flag("--quiet", arguments->quiet, "prints only differences");
  command->callback([arguments, &exit_code] { exit_code = checked_run(*arguments); });
}

}  // namespace meshard::tool
