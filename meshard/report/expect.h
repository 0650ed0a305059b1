// Expectations about compiled programs, as values, as text and as tests.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/report.h"

namespace meshard {

/// Value type: the expected collectives of one kind.
struct ExpectedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The axes that they run over, in any order; none: any axes.
  std::optional<AxisList> axes = std::nullopt;
  /// Number of logical collectives (see ProgramReport); none: any number. One in a loop counts
  /// once. Default: 1.
  std::optional<std::int64_t> count = 1;
  /// True: `count` is a maximum. Default: false.
  bool at_most = false;
  /// Maximum bytes of all executions together on one device. Default: no limit.
  std::optional<std::int64_t> most_bytes = std::nullopt;

  /// `2 all-gathers over "data", at most 64 KiB`, `at most 3 all-reduces`, `no all-to-all`, `any
  /// all-gathers`
  std::string to_string() const;
  friend bool operator==(const ExpectedCollective&, const ExpectedCollective&) = default;
};

/// Value type: all expected collectives of a program. Collectives that are not listed are errors,
/// unless others are allowed.
///
/// ```
/// ExpectedCollectives("1 all-reduce over model; 2 all-gathers over data, at most 64 KiB");
/// ExpectedCollectives("1 all-reduce over model; others allowed");
/// ExpectedCollectives("no collectives");
/// ```
class ExpectedCollectives {
 public:
  /// Expects no collectives.
  ExpectedCollectives() = default;
  ExpectedCollectives(std::initializer_list<ExpectedCollective> list)
      : ExpectedCollectives(std::vector<ExpectedCollective>(list)) {}
  /// @error invalid argument: the same kind and axes twice; a negative number.
  explicit ExpectedCollectives(std::vector<ExpectedCollective> list, bool others_allowed = false);
  /// The text form. @error as for parse(), thrown
  ExpectedCollectives(  // NOLINT: written expect_collectives(step, "...")
      const char* text, SourceLocation where = SourceLocation::current());

  const std::vector<ExpectedCollective>& list() const { return list_; }
  bool others_allowed() const { return others_allowed_; }

  /// `1 all-reduce over "model"; others allowed`; `no collectives` if there are none.
  std::string to_string() const;
  /// Parses items separated by `;`. An item has a count (`2`, `at most 2`, `no`, `any`), the HLO
  /// name of the kind with or without an s, optionally `over` and a comma-separated list of axes
  /// (quotes are optional), and optionally a comma and `at most` with a size in B, KiB, MiB, GiB or
  /// TiB. `others allowed` is also an item; `no collectives` must be alone.
  /// @error invalid argument, with the position in the text
  static Result<ExpectedCollectives> parse(std::string_view text);
  friend bool operator==(const ExpectedCollectives&, const ExpectedCollectives&) = default;

 private:
  std::vector<ExpectedCollective> list_;
  bool others_allowed_ = false;
};

/// Value type: options that define needless replication.
struct FullReplicationOptions {
  /// Smaller values may be replicated and rematerialized. Default: 1 MiB.
  std::int64_t least_bytes = std::int64_t{1} << 20;
  /// Names of values that may be replicated; `*` matches any text. A value also has the name
  /// `argument 3` or `result 0`. Default: none.
  std::vector<std::string> except = {};
  friend bool operator==(const FullReplicationOptions&, const FullReplicationOptions&) = default;
};

/// Value type: all expectations about a program. Members that are not set are not checked.
struct Expectations {
  std::optional<ExpectedCollectives> collectives = std::nullopt;
  std::optional<FullReplicationOptions> no_full_replication = std::nullopt;
  /// Fraction of a device's memory that must stay free, in [0, 1).
  std::optional<double> fits_margin = std::nullopt;

  bool empty() const { return !collectives && !no_full_replication && !fits_margin; }
  /// One expectation on each line, in the form that parse() reads.
  std::string to_string() const;
  /// Parses lines, or items separated by `;`. An item is one of ExpectedCollectives::parse(), `no
  /// full replication` optionally with `above` a size and `except` quoted names, or `fits`
  /// optionally with `with 10% spare`. `#` starts a comment.
  ///
  /// ```
  /// # the layer's two products
  /// 1 all-reduce over "model"
  /// no full replication above 64 KiB except "p['pos']", "lnf*"
  /// fits with 10% spare
  /// ```
  /// @error invalid argument, with the line and the position in it
  static Result<Expectations> parse(std::string_view text);
  friend bool operator==(const Expectations&, const Expectations&) = default;
};

/// Parses a percentage: `10%` is 0.1. @error invalid argument: not in [0%, 100%)
Result<double> parse_margin(std::string_view text);

/// Parses a size: `512`, `96 B`, `1.5 MiB`. @error invalid argument
Result<std::int64_t> parse_bytes(std::string_view text);

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
  return explain(program, {}, where);
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
/// @param program a jitted function, a CompiledProgram or a ProgramReport
/// @error failed precondition: a value is needlessly replicated; errors of explain().
template <class Program>
void expect_no_full_replication(const Program& program, const FullReplicationOptions& options = {},
                                SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.no_full_replication = options},
                             "expect_no_full_replication", where);
}

/// Passes if the program fits into a device's memory with a fraction `margin` free. Default: 0; 0.1
/// keeps a tenth free.
/// @param program a jitted function, a CompiledProgram or a ProgramReport
/// @error failed precondition: the program does not fit, or the plugin does not report its memory,
/// or the memory of the device is unknown; errors of explain()
template <class Program>
void expect_fits(const Program& program, double margin = 0,
                 SourceLocation where = SourceLocation::current()) {
  internal::throw_unless_met(internal::as_report(program, where), {.fits_margin = margin},
                             "expect_fits", where);
}

}  // namespace meshard
