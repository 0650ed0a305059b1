// Reports on compiled modules of up to 100,000 instructions.
#include <string>
#include <vector>

#include "bench/large_module.h"
#include "bench/scale/curve.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report.h"
#include "meshard/explain/report_of.h"
#include "meshard/report/diff.h"
#include "meshard/report/html.h"
#include "meshard/report/json.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/target/compile_for.h"

namespace meshard::bench {
namespace {

// The report of a module for 256 devices, as explain() makes it of a compiler's results.
ProgramReport large_report(const std::string& bytes) {
  Compiled compiled;
  compiled.optimized_program = bytes;
  ProgramFacts facts;
  facts.request.emplace().target = Target::parse("v5e:16x16").value();
  facts.program.name = "large";
  facts.program.mesh = Mesh({{"data", 64}, {"model", 4}});
  facts.program.meshes = {*facts.program.mesh};
  TensorType type{DType::f32, {64, 64}};
  facts.program.arguments = {{type, type, Sharding::replicated(*facts.program.mesh, 2)}};
  facts.program.results = facts.program.arguments;
  facts.argument_names = facts.result_names = {""};
  facts.donated = {false};
  return report_of(compiled, facts).value();
}

}  // namespace

void report_curves(Report& report) {
  Curve read{.name = "scale.explain.module",
             .work = "read a module and compute costs, collectives, buffers and timeline"},
      made{.name = "scale.explain.report", .work = "the report of a module"},
      text{.name = "scale.explain.text", .work = "its text"},
      json{.name = "scale.explain.json", .work = "its JSON"},
      html{.name = "scale.explain.html", .work = "its page"},
      difference{.name = "scale.explain.diff", .work = "the difference of two reports, as text"};
  for (std::int64_t instructions : {1000, 10000, 100000}) {
    std::string bytes = large_module(instructions);
    double size = double(instructions);
    auto measured = [&](auto f) { return least_of(5, [&] { return milliseconds_of(f); }); };
    volatile std::size_t kept = 0;
    read.points.push_back({size, measured([&] { kept = explain_bytes(bytes).steps; })});
    ProgramReport one = large_report(bytes), other = large_report(large_module(instructions + 80));
    made.points.push_back({size, measured([&] { kept = large_report(bytes).name().size(); })});
    text.points.push_back({size, measured([&] { kept = one.to_string().size(); })});
    json.points.push_back({size, measured([&] { kept = to_json(one).size(); })});
    html.points.push_back({size, measured([&] { kept = to_html(one).size(); })});
    difference.points.push_back(
        {size, measured([&] { kept = diff(one, other).to_string().size(); })});
  }
  for (Curve* curve : {&read, &made, &text, &json, &html, &difference}) {
    curve->of = "instructions";
    add_curve(report, *curve);
  }
}

}  // namespace meshard::bench
