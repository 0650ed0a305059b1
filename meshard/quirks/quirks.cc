#include "meshard/quirks/quirks.h"

#include <algorithm>
#include <cstdlib>

#include "meshard/base/cat.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/near_names.h"

namespace meshard {
namespace {

constexpr QuirkRow kRows[] = {
#define MESHARD_QUIRK(name, ...) QuirkRow{.quirk = Quirk::name, __VA_ARGS__},
#define MESHARD_QUIRK_PROGRAM(name, ...)
#include "meshard/quirks/quirk_list.inc"
#undef MESHARD_QUIRK
#undef MESHARD_QUIRK_PROGRAM
};
static_assert(std::size(kRows) <= 64, "a QuirkSet has 64 bits");
static_assert(
    [] {
      for (std::size_t i = 0; i < std::size(kRows); ++i)
        if (kRows[i].quirk != static_cast<Quirk>(i)) return false;
      return true;
    }(),
    "Quirk lists the rows in their order");

Error no_quirk(std::string_view part, std::string_view name) {
  std::vector<std::string> names;
  for (const QuirkRow& row : kRows) names.emplace_back(row.name);
  return Error(ErrorCode::kInvalidArgument,
               cat("[quirks] MESHARD_QUIRKS has \"", part, "\", but there is no quirk \"", name,
                   "\": ", nearest_text(name, names), "; `meshard doctor --quirks` lists all"));
}

}  // namespace

std::string_view to_string(QuirkEffect effect) {
  switch (effect) {
    case QuirkEffect::kModule: return "module";
    case QuirkEffect::kCompile: return "compile";
    case QuirkEffect::kLaunch: return "launch";
  }
  return "?";
}

bool QuirkRow::applies_to(std::string_view platform, std::optional<int> minor) const {
  if (minor && (*minor < first_minor || *minor > last_minor)) return false;
  return platforms.empty() || lists_name(platforms, platform);
}

bool QuirkRow::gathers(std::string_view op) const { return lists_name(gathered_in_regions, op); }

std::span<const QuirkRow> quirk_table() { return kRows; }
const QuirkRow& row_of(Quirk quirk) { return kRows[static_cast<std::size_t>(quirk)]; }

std::vector<Quirk> QuirkSet::list() const {
  std::vector<Quirk> quirks;
  for (const QuirkRow& row : kRows)
    if (has(row.quirk)) quirks.push_back(row.quirk);
  return quirks;
}

std::string QuirkSet::to_string() const {
  std::vector<std::string_view> names;
  for (Quirk quirk : list()) names.push_back(row_of(quirk).name);
  return names.empty() ? "none" : join(names, ", ");
}

QuirkSet quirks_of_table(std::string_view platform, std::optional<int> minor) {
  QuirkSet quirks;
  for (const QuirkRow& row : kRows)
    if (row.applies_to(platform, minor)) quirks = quirks.with(row.quirk);
  return quirks;
}

Result<QuirkSet> changed_quirks(QuirkSet quirks, std::string_view changes) {
  while (!changes.empty()) {
    std::string_view part = changes.substr(0, changes.find(','));
    changes.remove_prefix(std::min(part.size() + 1, changes.size()));
    if (part.empty()) continue;
    if (part[0] != '-' && part[0] != '+')
      return Error(ErrorCode::kInvalidArgument,
                   cat("[quirks] MESHARD_QUIRKS has \"", part, "\": write -", part,
                       " to turn it off, or +", part, " to turn it on"));
    std::string_view name = part.substr(1);
    if (part == "-all") {
      quirks = QuirkSet();
      continue;
    }
    auto row = std::ranges::find(kRows, name, &QuirkRow::name);
    if (row == std::end(kRows)) return no_quirk(part, name);
    quirks = part[0] == '-' ? quirks.without(row->quirk) : quirks.with(row->quirk);
  }
  return quirks;
}

Result<QuirkSet> quirks_of(std::string_view platform, std::optional<int> minor) {
  QuirkSet quirks = quirks_of_table(platform, minor);
  const char* changes = std::getenv("MESHARD_QUIRKS");
  if (changes == nullptr) return quirks;
  return changed_quirks(quirks, changes);
}

}  // namespace meshard
