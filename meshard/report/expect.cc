#include "meshard/report/expect.h"

#include <unistd.h>

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/near_names.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

constexpr std::size_t kMostListed = 10;

bool same_axes(const AxisList& a, const AxisList& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const AxisRef& axis) {
           return std::ranges::find(b, axis) != b.end();
         });
}

// The index of the expectation that a collective counts for; -1: none.
std::ptrdiff_t claimant(const Collective& one, const std::vector<ExpectedCollective>& list) {
  std::ptrdiff_t found = -1;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].kind != one.kind) continue;
    if (!list[i].axes && found < 0) found = static_cast<std::ptrdiff_t>(i);
    if (list[i].axes && one.axes && same_axes(*list[i].axes, *one.axes))
      return static_cast<std::ptrdiff_t>(i);
  }
  return found;
}

// One line for a collective, and one with the reason for its reshard.
std::string blamed(const Collective& one, const ProgramReport& report) {
  std::string text = cat("\n  ", one);
  if (!one.tensor.empty()) append(text, ", of ", one.tensor);
  for (const Reshard& reshard : report.parts().reshards)
    if (reshard.instruction == one.instruction && !reshard.cause.empty())
      append(text, "\n    because ", reshard.cause);
  return text;
}

// The first lines, and how many more there are.
std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kMostListed; ++i) append(text, lines[i]);
  if (lines.size() > kMostListed) append(text, "\n  and ", lines.size() - kMostListed, " more");
  return text;
}

std::string blamed(const std::vector<const Collective*>& list, const ProgramReport& report) {
  std::vector<std::string> lines;
  for (const Collective* one : list) lines.push_back(blamed(*one, report));
  return listed(lines);
}

std::int64_t bytes_of(const std::vector<const Collective*>& list) {
  std::int64_t sum = 0;
  for (const Collective* one : list) sum += one->bytes() * one->executions;
  return sum;
}

void judge(const ExpectedCollective& expected, const std::vector<const Collective*>& found,
           const ProgramReport& report, ExpectationReport& out) {
  std::int64_t count = std::ssize(found);
  bool right =
      !expected.count || (expected.at_most ? count <= *expected.count : count == *expected.count);
  std::string text;
  if (!right) text = cat("expected ", expected, ", found ", count == 0 ? "none" : cat(count));
  std::int64_t bytes = bytes_of(found);
  if (expected.most_bytes && bytes > *expected.most_bytes) {
    if (right) text = cat("expected ", expected, ", found");
    append(text, right ? " " : " with ", bytes, " bytes");
  }
  if (text.empty())
    out.met.push_back(expected.to_string());
  else
    out.broken.push_back(cat(text, found.empty() ? "" : ":", blamed(found, report)));
}

// An expectation about a misspelled axis would hold forever if it were `no all-reduce over
// "modle"`.
void check_axis_names(const ExpectedCollectives& expected, const ProgramReport& report,
                      ExpectationReport& out) {
  if (!report.mesh()) return;
  std::vector<std::string> names;
  for (const MeshAxis& axis : report.mesh()->axes()) names.push_back(axis.name);
  for (const LogicalCollective& each : report.logical_collectives())  // of other meshes, too
    for (const AxisRef& axis : each.whole.axes.value_or(AxisList{}))
      if (std::ranges::find(names, axis.name) == names.end()) names.push_back(axis.name);
  for (const ExpectedCollective& one : expected.list())
    for (const AxisRef& axis : one.axes.value_or(AxisList{}))
      if (std::ranges::find(names, axis.name) == names.end())
        out.broken.push_back(cat("expected ", one, ", but no mesh of the program has an axis ",
                                 axis, "; ", nearest_text(axis.name, names)));
}

void check(const ExpectedCollectives& expected, const ProgramReport& report,
           ExpectationReport& out) {
  check_axis_names(expected, report, out);
  std::vector<std::vector<const Collective*>> found(expected.list().size());
  std::vector<const Collective*> others;
  for (const LogicalCollective& each : report.logical_collectives()) {
    const Collective& one = each.whole;
    std::ptrdiff_t claim = claimant(one, expected.list());
    (claim < 0 ? others : found[static_cast<std::size_t>(claim)]).push_back(&one);
  }
  for (std::size_t i = 0; i < found.size(); ++i) judge(expected.list()[i], found[i], report, out);
  if (expected.others_allowed()) return;
  if (others.empty())
    out.met.push_back(expected.list().empty() ? "no collectives" : "no other collectives");
  else
    out.broken.push_back(cat("expected no ", expected.list().empty() ? "" : "other ",
                             "collectives, found ", others.size(), ":", blamed(others, report)));
}

bool excepted(const FullReplicationOptions& options, std::string_view name) {
  return !name.empty() && std::ranges::any_of(options.except, [&](const std::string& one) {
    return matches_name(one, name);
  });
}

// A misspelled exception would be noticed only when its value is replicated.
void check_exceptions(const FullReplicationOptions& options, const ProgramReport& report,
                      ExpectationReport& out) {
  std::vector<std::string> names;
  auto add = [&](const std::vector<ValuePlacement>& values, std::string_view kind) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      names.push_back(cat(kind, " ", i));
      if (!values[i].name.empty()) names.push_back(values[i].name);
    }
  };
  const ProgramReport::Parts& parts = report.parts();
  add(parts.arguments, "argument");
  add(parts.results, "result");
  add(parts.intermediates, "intermediate");
  for (const Reshard& reshard : parts.reshards) names.push_back(reshard.instruction);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& one : options.except)
    if (std::ranges::none_of(names,
                             [&](const std::string& name) { return matches_name(one, name); }))
      out.broken.push_back(cat("no value of the program matches the exception \"", one, "\"; ",
                               nearest_text(one, names)));
}

// `axis "model" divides dimension 0`, for the first dimension that some axis can shard.
std::string possible_split(const ValuePlacement& value) {
  const Mesh& mesh = value.sharding->mesh();
  for (int d = 0; d < value.type.rank(); ++d)
    for (const MeshAxis& axis : mesh.axes())
      if (axis.size > 1 && value.type.shape[d] > 0 && value.type.shape[d] % axis.size == 0)
        return cat("axis ", AxisRef(axis.name), " divides dimension ", d);
  return "";
}

void check_value(const ValuePlacement& value, std::string_view kind, std::size_t number,
                 const FullReplicationOptions& options, std::vector<std::string>& blame) {
  if (!value.sharding || !value.sharding->is_fully_replicated() ||
      value.sharding->mesh().size() < 2 || value.type.bytes() < options.least_bytes)
    return;
  std::string called = cat(kind, " ", number);
  if (excepted(options, called) || excepted(options, value.name)) return;
  std::string possible = possible_split(value);
  if (possible.empty()) return;
  std::string text =
      cat("\n  ", called, value.name.empty() ? "" : cat(" ", value.name), " ", value.type, ", ",
          byte_text(value.type.bytes()), " on each of ", value.sharding->mesh().size(), " devices");
  if (value.chosen_by_compiler) append(text, ", the compiler's choice");
  if (!value.place.empty()) append(text, ", from ", value.place);
  blame.push_back(cat(text, ": ", possible));
}

void check(const FullReplicationOptions& options, const ProgramReport& report,
           ExpectationReport& out) {
  check_exceptions(options, report, out);
  std::vector<std::string> blame;
  const ProgramReport::Parts& parts = report.parts();
  for (auto [values, kind] :
       {std::pair(&parts.arguments, "argument"), std::pair(&parts.results, "result"),
        std::pair(&parts.intermediates, "intermediate")})
    for (std::size_t i = 0; i < values->size(); ++i)
      check_value((*values)[i], kind, i, options, blame);
  for (const Reshard& reshard : parts.reshards)
    if (reshard.kind == ReshardKind::kFullRematerialize && reshard.bytes >= options.least_bytes &&
        !excepted(options, reshard.instruction))
      blame.push_back(cat("\n  ", reshard));
  std::string expected = cat("no full replication above ", byte_text(options.least_bytes));
  if (blame.empty()) {
    out.met.push_back(expected);
    return;
  }
  out.broken.push_back(cat("expected ", expected, ", found ", blame.size(), ":", listed(blame)));
}

// True for the virtual devices of a CPU, which have no memory of their own.
bool is_cpu(const ProgramReport& report) {
  const std::string& name = report.parts().target.name;
  return name == "cpu" || name.starts_with("cpu:");
}

std::int64_t memory_of_machine() {
  return static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
}

void check_memory(double margin, const ProgramReport& report, ExpectationReport& out) {
  if (!(margin >= 0 && margin < 1))
    throw_invalid({}, "[expect_fits] the margin must be in [0, 1), got ", margin);
  const std::optional<MemoryUse>& memory = report.memory();
  if (!report.parts().out_of_memory.empty()) {
    out.broken.push_back(
        cat("expected the program to fit into a device's memory, but the compiler says: ",
            report.parts().out_of_memory));
    return;
  }
  if (!memory) {
    out.broken.push_back(
        "expected the program to fit into a device's memory, but the compiler did not report the "
        "memory that it needs");
    return;
  }
  std::optional<std::int64_t> capacity = memory->capacity;
  std::string whose;
  if (!capacity && is_cpu(report)) {
    std::int64_t devices = std::max<std::int64_t>(report.parts().target.devices, 1);
    capacity = memory_of_machine() / devices;
    whose = cat(" (this machine's memory by ", devices,
                devices == 1 ? " CPU device)" : " CPU devices)");
  }
  if (!capacity) {
    const std::string& name = report.parts().target.name;
    out.broken.push_back(
        cat("expected the program to fit into a device's memory, but the device's memory is not "
            "known",
            name.empty() ? "" : cat(" (", name, ")"),
            ": compile for hardware whose figures are known, such as topology v5e:4x4"));
    return;
  }
  // Rounds only the reserve, so that without a margin integers are compared exactly.
  auto reserve = static_cast<std::int64_t>(static_cast<double>(*capacity) * margin);
  std::int64_t allowed = *capacity - reserve;
  std::string room = cat(byte_text(*capacity),
                         margin > 0 ? cat(" less ", byte_text(reserve), " spare") : "", whose);
  if (memory->total() <= allowed)
    out.met.push_back(cat("fits into ", room));
  else
    out.broken.push_back(cat("expected the program to fit into ", room,
                             " of a device, but it needs ", byte_text(memory->total()), ", ",
                             memory->total() - allowed, " bytes too many\n  ", *memory));
}

}  // namespace

std::string ExpectationReport::to_string() const {
  if (!ok()) return join(broken, "\n");
  return cat(met.size(), met.size() == 1 ? " expectation holds" : " expectations hold");
}

ExpectationReport check_expectations(const ProgramReport& report, const Expectations& expected) {
  ExpectationReport out;
  if (expected.collectives) check(*expected.collectives, report, out);
  if (expected.no_full_replication) check(*expected.no_full_replication, report, out);
  if (expected.fits_margin) check_memory(*expected.fits_margin, report, out);
  return out;
}

void internal::throw_unless_met(const ProgramReport& report, const Expectations& expected,
                                std::string_view name, SourceLocation where) {
  ExpectationReport found = check_expectations(report, expected);
  if (found.ok()) return;
  std::string mesh = report.mesh() ? cat(" on ", *report.mesh()) : std::string(" on one device");
  throw Error(ErrorCode::kFailedPrecondition,
              cat("[", name, "] program ", report.name(), mesh, "\n", found), where);
}

}  // namespace meshard
