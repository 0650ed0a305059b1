#include "tools/meshard/load_report.h"

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <utility>

#include "meshard/explain/explain.h"
#include "meshard/report/json.h"
#include "tools/meshard/mesh_steps.h"

namespace meshard::tool {
namespace {

// Module text in MLIR never begins with a brace.
bool is_json(const std::string& bytes) {
  std::size_t first = bytes.find_first_not_of(" \t\r\n");
  return first != std::string::npos && bytes[first] == '{';
}

ProgramReport report_in(const std::string& path, const std::string& bytes) {
  Result<ProgramReport> report = read_report(bytes);
  if (!report.ok()) throw report.error().with_note("in " + path);
  return *std::move(report);
}

}  // namespace

void ReportSource::add_options(CLI::App& command) {
  command.add_option("--topology", topology,
                     "the target that modules are compiled for: v6e:16x16, h100:4x8, cpu:8");
  command.add_option("--mesh", mesh, "mesh axes that replace the module's own: data=4,model=2");
  CompileSettings::add_options(command);
}

void CompileSettings::add_options(CLI::App& command) {
  command.add_option("--plugin", plugin, "the plugin file; default: search for it");
  command.add_option("--compile-limit", time_limit, "time limit for each compile, in seconds");
  command.add_option("--cache", cache, "the folder of the compile cache");
  command.add_flag("--no-cache", no_cache, "compile even if the result is cached");
}

std::string read_file(const std::string& path) {
  if (path == "-") {
    static bool read = false;
    if (std::exchange(read, true))
      throw Error(ErrorCode::kInvalidArgument, "standard input (-) can be read only once");
    return {std::istreambuf_iterator<char>(std::cin), {}};
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw Error(ErrorCode::kNotFound, "cannot read " + path);
  return bytes;
}

ProgramReport load_report(const std::string& path, const ReportSource& source) {
  std::string bytes = read_file(path);
  if (is_json(bytes)) return report_in(path, bytes);
  if (source.topology.empty())
    throw Error(ErrorCode::kInvalidArgument,
                path + " is not a report; specify --topology to compile it as a module");
  ExplainForOptions options;
  if (!source.mesh.empty()) {
    Mesh mesh = read_mesh(source.mesh, "");
    options.layout.axes.assign(mesh.axes().begin(), mesh.axes().end());
  }
  options.compile = source.compile_options();
  return explain_module(bytes, Target::parse(source.topology).value(), options,
                        /*where=*/{});
}

CompileForOptions CompileSettings::compile_options() const {
  CompileForOptions options;
  options.plugin = plugin;
  options.use_cache = !no_cache;
  options.cache = cache;
  if (time_limit > 0) options.time_limit = std::chrono::seconds(time_limit);
  return options;
}

}  // namespace meshard::tool
