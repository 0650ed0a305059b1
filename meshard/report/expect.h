// Tests of compiled programs against expectations.
#pragma once
#include <string>
#include <vector>

#include "meshard/explain/explain.h"
#include "meshard/explain/report.h"
#include "meshard/report/expectations.h"

namespace meshard {

/// Value type: the result of checking a program against expectations.
struct ExpectationReport {
  /// One entry for each expectation that holds: `1 all-reduce over "model"`.
  std::vector<std::string> met;
  /// One entry for each failed expectation: the expected and the actual state, and a line for each
  /// offending collective or value, with its source line and the cause of the reshard.
  std::vector<std::string> broken;

  bool ok() const { return broken.empty(); }
  /// `3 expectations hold`, or the failed expectations.
  std::string to_string() const;
};

/// Compares a program with expectations. A collective counts for the first expectation of its kind
/// with the same axes, else for the one without axes.
ExpectationReport check_expectations(const ProgramReport& report, const Expectations& expected);

namespace internal {
inline const ProgramReport& as_report(const ProgramReport& report, SourceLocation) {
  return report;
}
template <class Program>
ProgramReport as_report(const Program& program, SourceLocation where) {
  return explain(program, where);
}
void throw_unless_met(const ProgramReport& report, const Expectations& expected,
                      std::string_view name, SourceLocation where);
}  // namespace internal

/// Passes if a program has exactly the expected collectives. Works in any test framework: failures
/// are thrown, and the message lists each unexpected collective with its source line and cause.
///
/// @code
/// Mesh mesh({{"model", 4}});
/// Tensor x = mark_sharding(ones({8, 16}), mesh, P(none, "model"));
/// Tensor w = mark_sharding(ones({16, 8}), mesh, P("model", none));
/// auto layer = jit([](Tensor x, Tensor w) { return matmul(x, w); });
/// layer(x, w);
/// expect_collectives(layer, "1 all-reduce over model, at most 1 KiB");
/// @endcode
///
/// @param program a jitted function (its newest program is checked), a CompiledProgram or a
/// ProgramReport
/// @error failed precondition: the program differs; errors of explain().
template <class Program>
void expect_collectives(const Program& program, const ExpectedCollectives& expected,
                        SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.collectives = expected},
                             "expect_collectives", where);
}

/// Passes if no value is needlessly replicated or fully rematerialized. Fails if an argument,
/// result or intermediate is replicated although a mesh axis divides one of its dimensions.
/// @param program as above
/// @error as above
template <class Program>
void expect_no_full_replication(const Program& program, const FullReplicationOptions& options = {},
                                SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.no_full_replication = options},
                             "expect_no_full_replication", where);
}

/// Passes if the program fits into a device's memory with a fraction `margin` free. Default: 0; 0.1
/// keeps a tenth free.
/// @param program as above
/// @error as above; also if the plugin does not report memory or the device's memory is unknown
template <class Program>
void expect_fits(const Program& program, double margin = 0,
                 SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.fits_margin = margin},
                             "expect_fits", where);
}

}  // namespace meshard
