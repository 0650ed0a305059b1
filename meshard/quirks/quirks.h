// Faults of XLA, Shardy and plugins, and their workarounds: one table.
#pragma once
#include <climits>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// The quirks: a name for each row of the table (quirk_list.inc), in its order. The build lists the
/// names; the rows themselves are not in this header, so that editing one builds little.
enum class Quirk : std::uint8_t {
#include "meshard/quirks/quirk_names.inc"
};

/// The workaround of a quirk.
enum class QuirkEffect {
  kModule,   ///< the text of programs
  kCompile,  ///< the options of the compiler
  kLaunch,   ///< how programs are launched
};
std::string_view to_string(QuirkEffect effect);

/// A row of the table: one quirk. Every text is a sentence of the page docs/reference/quirks.md.
struct QuirkRow {
  Quirk quirk;
  /// As in MESHARD_QUIRKS.
  std::string_view name;
  /// The platforms of the programs that it is for, separated by spaces; empty: all.
  std::string_view platforms = "";
  /// The versions of the PJRT API whose plugins have it: 0.first_minor to 0.last_minor.
  int first_minor = 0, last_minor = INT_MAX;
  QuirkEffect effect = QuirkEffect::kModule;
  /// Without it, programs are right, but slow.
  bool only_slow = false;
  /// What goes wrong.
  std::string_view fault;
  /// What meshard does instead.
  std::string_view instead;
  /// Where it was observed, and external reports.
  std::string_view seen;

  /// The names of ops whose operands and results are gathered inside manual regions over some of
  /// the axes, separated by spaces. That is all that lowering does for such a row.
  std::string_view gathered_in_regions = "";
  /// A compiler option, which is false for programs of the platform. That is all that the runtime
  /// does for such a row.
  std::string_view option_off = "";
  /// Only for programs on several devices.
  bool option_for_several_devices = false;

  /// Whether it is for programs of this platform.
  /// @param minor the plugin's version of the PJRT API, 0.`minor`; none: unknown, matches all
  bool applies_to(std::string_view platform, std::optional<int> minor) const;
  /// Whether `gathered_in_regions` has this op.
  bool gathers(std::string_view op) const;
};

/// All rows, in the order of Quirk.
std::span<const QuirkRow> quirk_table();
const QuirkRow& row_of(Quirk quirk);

/// A value: the quirks that count for one plugin.
class QuirkSet {
 public:
  constexpr QuirkSet() = default;

  constexpr bool has(Quirk quirk) const { return (bits_ & bit(quirk)) != 0; }
  constexpr QuirkSet with(Quirk quirk) const { return QuirkSet(bits_ | bit(quirk)); }
  constexpr QuirkSet without(Quirk quirk) const { return QuirkSet(bits_ & ~bit(quirk)); }
  /// In the order of the table.
  std::vector<Quirk> list() const;

  /// `fft-layouts, window-fills`; `none`.
  std::string to_string() const;
  friend bool operator==(QuirkSet, QuirkSet) = default;

 private:
  constexpr explicit QuirkSet(std::uint64_t bits) : bits_(bits) {}
  static constexpr std::uint64_t bit(Quirk quirk) {
    return std::uint64_t{1} << static_cast<unsigned>(quirk);
  }

  std::uint64_t bits_ = 0;
};

/// The rows that apply to programs of a platform, whatever the environment says.
/// @param platform in lower case; empty: unknown, only rows for all platforms apply
QuirkSet quirks_of_table(std::string_view platform, std::optional<int> minor = {});

/// `quirks` with the changes of a text such as `-window-fills,+fft-layouts`: names with - are
/// turned off, and those with + are turned on, also for other platforms and versions. `-all` turns
/// off all.
/// @error invalid argument for a part without a sign, and for an unknown name, with the nearest
/// names
Result<QuirkSet> changed_quirks(QuirkSet quirks, std::string_view changes);

/// quirks_of_table() with the changes in the environment variable MESHARD_QUIRKS.
/// @error as changed_quirks()
Result<QuirkSet> quirks_of(std::string_view platform, std::optional<int> minor = {});

}  // namespace meshard
