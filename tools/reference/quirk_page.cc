// Tested by `meshard-reference --check`.
#include "tools/reference/quirk_page.h"

#include "meshard/base/cat.h"
#include "meshard/quirks/quirks.h"

namespace meshard::tool {
namespace {

std::string versions_of(const QuirkRow& row) {
  if (row.first_minor == 0 && row.last_minor == INT_MAX) return "all";
  if (row.last_minor == INT_MAX) return cat("from 0.", row.first_minor);
  return cat(row.first_minor == 0 ? "" : cat("0.", row.first_minor, " "), "to 0.", row.last_minor);
}

std::string rows_of(QuirkEffect effect, bool only_slow) {
  std::string out =
      "\n| name | platforms | PJRT API | what goes wrong | what meshard does | seen |\n"
      "|---|---|---|---|---|---|\n";
  for (const QuirkRow& row : quirk_table())
    if (row.effect == effect && row.only_slow == only_slow)
      append(out,
             cat("| `", row.name, "` | ", row.platforms.empty() ? "all" : row.platforms, " | ",
                 versions_of(row), " | ", row.fault, " | ", row.instead, " | ", row.seen, " |\n"));
  return out;
}

}  // namespace

std::string quirks_page() {
  return cat(
      "# Quirks of compilers and plugins\n\n"
      "[What the table is for](../concepts/quirks.md).\n\n"
      "`meshard doctor --quirks` lists those that count for a plugin. "
      "`MESHARD_QUIRKS=-window-fills` turns one off.\n\n## Programs with wrong values, or that end "
      "the process\n",
      rows_of(QuirkEffect::kModule, false), "\n## Slow programs\n",
      rows_of(QuirkEffect::kModule, true), "\n## Options of the compiler\n",
      rows_of(QuirkEffect::kCompile, false), "\n## Launches\n",
      rows_of(QuirkEffect::kLaunch, false),
      "\n<!-- Written by `./dev docs` from `meshard/quirks/quirk_list.inc`; edit that. -->\n");
}

}  // namespace meshard::tool
