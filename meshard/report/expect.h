// Expectations as tests: does a compiled program do what its author meant?
#pragma once
#include <string>
#include <vector>

#include "meshard/explain/explain.h"
#include "meshard/explain/report.h"
#include "meshard/report/expectations.h"

namespace meshard {

/// A value: how a program differs from what was expected.
struct ExpectationReport {
  /// One for each expectation that holds: `1 all-reduce over "model"`.
  std::vector<std::string> met;
  /// One for each that does not: what was expected, what was found, and a line for each collective
  /// or value that is to blame, with the user's line and the reshard's cause.
  std::vector<std::string> broken;

  bool ok() const { return broken.empty(); }
  /// `3 expectations hold`, or those that do not.
  std::string to_string() const;
};

/// Compares a program with expectations. A collective counts for the first expectation of its kind
/// that names its axes, else for that which names none.
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

/// Passes if the collectives of a program are exactly these. Works in any test framework: what was
/// not expected is thrown, and the message shows each surplus collective with its line and why it
/// is there.
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
/// @param program a jitted function (its newest program is meant), a CompiledProgram or a
/// ProgramReport
/// @error failed precondition: the program differs; what explain() throws.
template <class Program>
void expect_collectives(const Program& program, const ExpectedCollectives& expected,
                        SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.collectives = expected},
                             "expect_collectives", where);
}

/// Passes if no argument, result or intermediate value lies whole on every device although a mesh
/// axis divides one of its dimensions, and nothing is remade in full to be cut again.
/// @param program as above
/// @error as above
template <class Program>
void expect_no_full_replication(const Program& program, const FullReplicationOptions& options = {},
                                SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.no_full_replication = options},
                             "expect_no_full_replication", where);
}

/// Passes if the program fits into a device's memory with `margin` of it free, 0.1 for a tenth.
/// @param program as above
/// @error as above; also if the plugin does not count memory or the device's is not known
template <class Program>
void expect_fits(const Program& program, double margin = 0,
                 SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.fits_margin = margin},
                             "expect_fits", where);
}

}  // namespace meshard
