// What a program is expected to do, as values and as text that is kept beside it.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collective.h"

namespace meshard {

/// A value: the collectives of a kind that a program is expected to have.
struct ExpectedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The axes that they run over, in any order; none: whatever they run over.
  std::optional<AxisList> axes = std::nullopt;
  /// How many instructions there are; none: any number. One in a loop counts once.
  std::optional<std::int64_t> count = 1;
  /// True: fewer than `count` will do.
  bool at_most = false;
  /// The most bytes they may have together on one device, each as often as it runs.
  std::optional<std::int64_t> most_bytes = std::nullopt;

  /// `2 all-gathers over "data", at most 64 KiB`, `at most 3 all-reduces`, `no all-to-all`, `any
  /// all-gathers`
  std::string to_string() const;
  friend bool operator==(const ExpectedCollective&, const ExpectedCollective&) = default;
};

/// A value: all collectives that a program is expected to have. What is not listed is refused,
/// unless others are allowed.
///
/// ```
/// ExpectedCollectives("1 all-reduce over model; 2 all-gathers over data, at most 64 KiB");
/// ExpectedCollectives("1 all-reduce over model; others allowed");
/// ExpectedCollectives("no collectives");
/// ```
class ExpectedCollectives {
 public:
  /// No collective at all.
  ExpectedCollectives() = default;
  ExpectedCollectives(std::initializer_list<ExpectedCollective> list)
      : ExpectedCollectives(std::vector<ExpectedCollective>(list)) {}
  /// @error invalid argument: the same kind and axes twice; a negative number.
  explicit ExpectedCollectives(std::vector<ExpectedCollective> list, bool others_allowed = false);
  /// The text form. @error as parse(), thrown
  ExpectedCollectives(const char* text);  // NOLINT: written expect_collectives(step, "...")

  const std::vector<ExpectedCollective>& list() const { return list_; }
  bool others_allowed() const { return others_allowed_; }

  /// `1 all-reduce over "model"; others allowed`; `no collectives` if there are none.
  std::string to_string() const;
  /// Items with `;` between them: how many (`2`, `at most 2`, `no`, `any`), the kind as HLO calls
  /// it with or without an s, `over` axes with commas (quotes may be left out), a comma and `at
  /// most` a size in B, KiB, MiB, GiB or TiB. Also `others allowed`, and `no collectives` alone.
  /// @error invalid argument, with the place in the text
  static Result<ExpectedCollectives> parse(std::string_view text);
  friend bool operator==(const ExpectedCollectives&, const ExpectedCollectives&) = default;

 private:
  std::vector<ExpectedCollective> list_;
  bool others_allowed_ = false;
};

/// A value: what counts as needlessly replicated.
struct FullReplicationOptions {
  /// Smaller values may be replicated, and remade in full.
  std::int64_t least_bytes = std::int64_t{1} << 20;
  /// Values that may be replicated, by name; `*` stands for any text. A value is also called
  /// `argument 3` or `result 0`.
  std::vector<std::string> except = {};
  friend bool operator==(const FullReplicationOptions&, const FullReplicationOptions&) = default;
};

/// A value: everything that is expected of a program. What is not given is not checked.
struct Expectations {
  std::optional<ExpectedCollectives> collectives = std::nullopt;
  std::optional<FullReplicationOptions> no_full_replication = std::nullopt;
  /// The part of a device's memory that must stay free, in [0, 1).
  std::optional<double> fits_margin = std::nullopt;

  bool empty() const { return !collectives && !no_full_replication && !fits_margin; }
  /// One expectation a line, as parse() reads it.
  std::string to_string() const;
  /// Lines, or items with `;` between them: those of ExpectedCollectives::parse, `no full
  /// replication` with `above` a size and `except` names in quotes, `fits` with `with 10% spare`.
  /// What follows a `#` is a comment.
  ///
  /// ```
  /// # the layer's two products
  /// 1 all-reduce over "model"
  /// no full replication above 64 KiB except "p['pos']", "lnf*"
  /// fits with 10% spare
  /// ```
  /// @error invalid argument, with the line and the place in it
  static Result<Expectations> parse(std::string_view text);
  friend bool operator==(const Expectations&, const Expectations&) = default;
};

/// A share as text gives it: `10%` is 0.1. @error invalid argument: not in [0%, 100%)
Result<double> parse_margin(std::string_view text);

/// Bytes as text gives them: `512`, `96 B`, `1.5 MiB`. @error invalid argument
Result<std::int64_t> parse_bytes(std::string_view text);

}  // namespace meshard
