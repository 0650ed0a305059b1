#include "meshard/explain/report.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/mesh/picture.h"

namespace meshard {
namespace {

// Appends lines, the first `most` of them.
template <class Range, class Print>
void append_lines(std::string& out, const Range& range, std::size_t most, std::string_view what,
                  const Print& print) {
  std::size_t count = range.size();
  std::size_t shown = most == 0 || count <= most ? count : most;
  for (std::size_t i = 0; i < shown; ++i) append(out, cat("  ", print(i), "\n"));
  if (shown < count) append(out, cat("  and ", count - shown, " more ", what, "\n"));
}

void append_collectives(std::string& out, const std::vector<Collective>& collectives,
                        const std::vector<CollectiveGroup>& groups, std::int64_t bytes,
                        std::size_t most) {
  if (collectives.empty()) {
    append(out, "no collectives\n");
    return;
  }
  append(out, cat(collectives.size(), collectives.size() == 1 ? " collective, " : " collectives, ",
                  byte_text(bytes), " per device\n"));
  append_lines(out, groups, most, "lines of collectives",
               [&](std::size_t i) { return groups[i].to_string(); });
}

}  // namespace

ProgramReport::ProgramReport(Parts parts)
    : parts_(std::move(parts)), groups_(group_collectives(parts_.collectives)) {}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind) const {
  std::vector<Collective> found;
  std::copy_if(parts_.collectives.begin(), parts_.collectives.end(), std::back_inserter(found),
               [&](const Collective& one) { return one.kind == kind; });
  return found;
}

std::vector<Collective> ProgramReport::collectives(CollectiveKind kind,
                                                   const AxisList& axes) const {
  std::vector<Collective> found = collectives(kind);
  std::erase_if(found, [&](const Collective& one) { return !one.axes || *one.axes != axes; });
  return found;
}

std::int64_t ProgramReport::collective_bytes() const {
  std::int64_t sum = 0;
  for (const Collective& one : parts_.collectives) sum = saturating_add(sum, one.total_bytes());
  return sum;
}

std::string ProgramReport::to_string(const ExplainOptions& options) const {
  std::string out = cat("program ", parts_.name);
  append(out, parts_.mesh ? cat(" on ", *parts_.mesh, "\n") : std::string(" on one device\n"));
  if (options.mesh_picture && parts_.mesh) append(out, picture(*parts_.mesh));
  if (parts_.memory) append(out, cat(*parts_.memory, "\n"));
  append_collectives(out, parts_.collectives, groups_, collective_bytes(), options.most_lines);
  std::size_t parameters = parts_.arguments.size() - parts_.num_captured;
  append(out, cat("arguments (", parts_.arguments.size(), ")\n"));
  append_lines(out, parts_.arguments, options.most_lines, "arguments", [&](std::size_t i) {
    return cat(i, i < parameters ? "" : " (captured)", ": ", parts_.arguments[i]);
  });
  append(out, cat("results (", parts_.results.size(), ")\n"));
  append_lines(out, parts_.results, options.most_lines, "results",
               [&](std::size_t i) { return cat(i, ": ", parts_.results[i]); });
  return out;
}

}  // namespace meshard
