#include "meshard/report/diff.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/module_layout.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

std::string axes_of(const Collective& one) {
  if (!one.axes) return one.group_size > 0 ? "no mesh axes" : "unknown axes";
  return one.axes->empty() ? "no axes" : join(*one.axes, ", ");
}

std::string places_of(const CollectiveOrigin& origin) {
  std::string text;
  for (const OriginPlace& place : origin.places) {
    std::string one = place.to_string();
    if (text.find(one) == std::string::npos) append(text, text.empty() ? "" : ", ", one);
  }
  return text;
}

using CollectiveKey = std::tuple<CollectiveKind, std::string, std::string>;  // kind, axes, place

// `known`: the positions in `out`.
void count_collectives(const ProgramReport& report, bool after, std::vector<CollectiveChange>& out,
                       std::map<CollectiveKey, std::size_t>& known) {
  for (const LogicalCollective& each : report.logical_collectives()) {
    const Collective& one = each.whole;
    std::string axes = axes_of(one), place = places_of(one.origin);
    auto [position, is_new] = known.try_emplace({one.kind, axes, place}, out.size());
    if (is_new)
      out.push_back({.kind = one.kind, .axes = axes, .place = place, .before = {}, .after = {}});
    CollectiveChange& change = out[position->second];
    CollectiveChange::Side& side = after ? change.after : change.before;
    ++side.count;
    side.executions += one.executions;
    side.bytes += one.bytes() * one.executions;
  }
}

std::vector<AmountChange> memory_changes(const ProgramReport& before, const ProgramReport& after) {
  if (!before.memory() && !after.memory()) return {};
  MemoryUse a = before.memory().value_or(MemoryUse{}), b = after.memory().value_or(MemoryUse{});
  auto bytes = [](std::string part, std::int64_t x, std::int64_t y) {
    return AmountChange{std::move(part), static_cast<double>(x), static_cast<double>(y)};
  };
  return {bytes("total", a.total(), b.total()),
          bytes("peak", a.peak, b.peak),
          bytes("arguments", a.arguments, b.arguments),
          bytes("outputs", a.outputs, b.outputs),
          bytes("aliased", a.aliased, b.aliased),
          bytes("temporaries", a.temporaries, b.temporaries),
          bytes("code", a.code, b.code)};
}

void add_times(const ProgramReport& report, bool after, std::vector<AmountChange>& out) {
  const std::optional<Roofline>& roofline = report.parts().roofline;
  if (!roofline) return;
  auto add = [&](const std::string& part, double seconds) {
    auto found = std::ranges::find(out, part, &AmountChange::part);
    if (found == out.end()) found = out.insert(out.end(), {.part = part});
    (after ? found->after : found->before) += seconds;
  };
  add("at least", roofline->seconds());
  add("in sequence", roofline->seconds_in_sequence());
  add("compute", roofline->compute_seconds);
  add("memory", roofline->memory_seconds);
  for (const LinkTime& link : roofline->links)
    add(cat(link.axes.empty() ? "unknown axes" : link.axes, " on ", link.link), link.seconds);
}

std::vector<AmountChange> estimates_of(const ProgramReport& before, const ProgramReport& after) {
  const std::optional<Schedule>&a = before.parts().schedule, &b = after.parts().schedule;
  if (!a || !b) return {};
  return {{"estimated", a->seconds, b->seconds},
          {"compute and memory", a->busy_seconds, b->busy_seconds},
          {"exposed communication", a->links.exposed_seconds, b->links.exposed_seconds},
          {"hidden communication", a->links.hidden_seconds, b->links.hidden_seconds}};
}

// True if every value has a unique name.
bool named(const std::vector<ValuePlacement>& values) {
  std::set<std::string> names;
  for (const ValuePlacement& value : values)
    if (value.name.empty() || !names.insert(value.name).second) return false;
  return true;
}

std::string placement_text(const ValuePlacement& value) {
  return cat(value, value.donated ? ", donated" : "");
}

// Pairs of values before and after; null if a value exists on one side only.
using Pairing = std::vector<std::pair<const ValuePlacement*, const ValuePlacement*>>;

Pairing paired(const std::vector<ValuePlacement>& before,
               const std::vector<ValuePlacement>& after) {
  Pairing pairs;
  if (!named(before) || !named(after)) {
    for (std::size_t i = 0; i < std::max(before.size(), after.size()); ++i)
      pairs.emplace_back(i < before.size() ? &before[i] : nullptr,
                         i < after.size() ? &after[i] : nullptr);
    return pairs;
  }
  std::map<std::string_view, const ValuePlacement*> second;
  for (const ValuePlacement& value : after) second[value.name] = &value;
  for (const ValuePlacement& value : before) {
    auto found = second.find(value.name);
    pairs.emplace_back(&value, found == second.end() ? nullptr : found->second);
    if (found != second.end()) second.erase(found);
  }
  for (const ValuePlacement& value : after)
    if (second.count(value.name)) pairs.emplace_back(nullptr, &value);
  return pairs;
}

void add_placements(std::string_view kind, const std::vector<ValuePlacement>& before,
                    const std::vector<ValuePlacement>& after, std::vector<PlacementChange>& out) {
  for (const auto& [a, b] : paired(before, after)) {
    std::string first = a ? placement_text(*a) : "", second = b ? placement_text(*b) : "";
    if (first == second) continue;
    const ValuePlacement& shown = a ? *a : *b;
    std::ptrdiff_t position = a ? a - before.data() : b - after.data();
    out.push_back({.value = cat(kind, " ", position, shown.name.empty() ? "" : " ", shown.name),
                   .before = std::move(first),
                   .after = std::move(second)});
  }
}

void add_text(std::string text, bool after, std::vector<TextChange>& out) {
  auto found = std::ranges::find(out, text, &TextChange::text);
  if (found == out.end()) found = out.insert(out.end(), {.text = std::move(text)});
  ++(after ? found->after : found->before);
}

ReportDiff::Heading diff_heading(const ProgramReport& report) {
  ReportDiff::Heading out;
  const ProgramReport::Parts& parts = report.parts();
  // Only the axes: a list of devices would fill the line.
  out.program =
      cat(report.name(),
          report.mesh() ? cat(" on mesh<", axes_text(report.mesh()->axes(), ", "), ">") : "",
          parts.target.name.empty() ? "" : cat(" for ", parts.target.name));
  out.collectives = std::ssize(report.logical_collectives());
  out.collective_bytes = report.collective_bytes();
  if (parts.roofline) {
    out.seconds = parts.roofline->seconds();
    out.bound_by = parts.roofline->bound_by();
  }
  return out;
}

template <class Changes>
bool any_changed(const Changes& changes) {
  return std::ranges::any_of(changes, [](const auto& one) { return one.changed(); });
}

std::string_view without_spaces_around(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r";
  std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

// A percentage without an upper end: growth by 200% is possible. Negative: none.
double growth_in(std::string_view text) {
  if (!text.ends_with('%')) return -1;
  std::string number(without_spaces_around(text.substr(0, text.size() - 1)));
  if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) return -1;
  char* end = nullptr;
  double percent = std::strtod(number.c_str(), &end);
  return *end == 0 && std::isfinite(percent) ? percent / 100 : -1;
}

Error limit_error(std::string_view item, std::string_view why) {
  return {ErrorCode::kInvalidArgument, cat("limit `", item, "`: ", why)};
}

Result<DiffLimit> limit_in(std::string_view item) {
  std::size_t space = item.find_first_of(" \t");
  std::string_view name = item.substr(0, space);
  std::string_view rest =
      space == std::string_view::npos ? "" : without_spaces_around(item.substr(space));
  const auto& parts = EnumNames<DiffLimitPart>::kNames;
  const auto* part = std::ranges::find_if(parts, [&](const auto& one) { return one.name == name; });
  if (part == std::end(parts))
    return limit_error(item,
                       "expected collectives, bytes, memory, time or shardings, and perhaps a "
                       "percentage, such as `bytes 5%`");
  DiffLimit limit{.part = part->value};
  if (rest.empty()) return limit;
  limit.fraction = growth_in(rest);
  if (limit.fraction < 0 || limit.part == DiffLimitPart::kShardings)
    return limit_error(item, limit.part == DiffLimitPart::kShardings
                                 ? "shardings have no percentage"
                                 : "expected a percentage after the name, such as `bytes 5%`");
  return limit;
}

std::string growth_text(const DiffLimit& limit) {
  return limit.fraction > 0 ? cat("at most ", growth_percent(limit.fraction), " more") : "no more";
}

// Bytes of one kind of collective over the same axes, from all places.
struct KindBytes {
  CollectiveKind kind;
  std::string axes;
  std::int64_t before = 0, after = 0;
};

std::vector<KindBytes> bytes_by_kind(const ReportDiff& diff) {
  std::vector<KindBytes> sums;
  for (const CollectiveChange& one : diff.collectives) {
    auto found = std::ranges::find_if(
        sums, [&](const KindBytes& sum) { return sum.kind == one.kind && sum.axes == one.axes; });
    if (found == sums.end()) found = sums.insert(sums.end(), {one.kind, one.axes});
    found->before += one.before.bytes;
    found->after += one.after.bytes;
  }
  return sums;
}

class LimitCheck {
 public:
  explicit LimitCheck(const ReportDiff& diff) : diff_(diff) {}

  void check(const DiffLimit& limit) {
    switch (limit.part) {
      case DiffLimitPart::kCollectives: return collectives(limit);
      case DiffLimitPart::kBytes:
        return amount(limit, static_cast<double>(diff_.before.collective_bytes),
                      static_cast<double>(diff_.after.collective_bytes));
      case DiffLimitPart::kMemory: return of(limit, diff_.memory, "total");
      case DiffLimitPart::kTime:
        return diff_.estimates.empty() ? of(limit, diff_.times, "at least")
                                       : of(limit, diff_.estimates, "estimated");
      case DiffLimitPart::kShardings:
        if (!diff_.placements.empty())
          lines_.push_back(cat("shardings: ", diff_.placements.size(), " changed"));
        return;
    }
  }
  std::vector<std::string> lines() && { return std::move(lines_); }

 private:
  static bool over(const DiffLimit& limit, double before, double after) {
    return after > before * (1 + limit.fraction);
  }

  void collectives(const DiffLimit& limit) {
    for (const KindBytes& sum : bytes_by_kind(diff_)) {
      auto before = static_cast<double>(sum.before), after = static_cast<double>(sum.after);
      if (over(limit, before, after))
        lines_.push_back(cat(to_string(sum.kind), " on ", sum.axes, ": ",
                             bytes_growth_text(before, after), ", ", growth_text(limit)));
    }
  }

  void amount(const DiffLimit& limit, double before, double after) {
    bool time = limit.part == DiffLimitPart::kTime;
    if (over(limit, before, after))
      lines_.push_back(
          cat(to_string(limit.part), ": ",
              time ? seconds_change_text(before, after) : bytes_growth_text(before, after), ", ",
              growth_text(limit)));
  }

  // A side without figures has none of the parts, or only zeros.
  void of(const DiffLimit& limit, const std::vector<AmountChange>& parts, std::string_view name) {
    auto found = std::ranges::find(parts, name, &AmountChange::part);
    if (found == parts.end() || found->before == 0 || found->after == 0)
      lines_.push_back(cat(to_string(limit.part), ": not known for both programs"));
    else
      amount(limit, found->before, found->after);
  }

  const ReportDiff& diff_;
  std::vector<std::string> lines_;
};

}  // namespace

bool ReportDiff::same() const {
  return !any_changed(collectives) && !any_changed(memory) && !any_changed(times) &&
         !any_changed(estimates) && placements.empty() && reshards.empty();
}

ReportDiff diff(const ProgramReport& before, const ProgramReport& after) {
  ReportDiff out;
  out.before = diff_heading(before);
  out.after = diff_heading(after);
  std::map<CollectiveKey, std::size_t> known;
  count_collectives(before, false, out.collectives, known);
  count_collectives(after, true, out.collectives, known);
  out.memory = memory_changes(before, after);
  out.estimates = estimates_of(before, after);
  add_times(before, false, out.times);
  add_times(after, true, out.times);
  add_placements("argument", before.arguments(), after.arguments(), out.placements);
  add_placements("result", before.results(), after.results(), out.placements);
  for (const Reshard& one : before.parts().reshards) add_text(one.to_string(), false, out.reshards);
  for (const Reshard& one : after.parts().reshards) add_text(one.to_string(), true, out.reshards);
  std::erase_if(out.reshards, [](const TextChange& one) { return !one.changed(); });
  for (const BufferUse& one : before.parts().largest_buffers)
    add_text(one.to_string(), false, out.buffers);
  for (const BufferUse& one : after.parts().largest_buffers)
    add_text(one.to_string(), true, out.buffers);
  return out;
}

std::string DiffLimit::to_string() const {
  return cat(meshard::to_string(part), fraction > 0 ? cat(" ", growth_percent(fraction)) : "");
}

Result<std::vector<DiffLimit>> parse_diff_limits(std::string_view text) {
  std::vector<DiffLimit> limits;
  while (!text.empty()) {
    std::size_t end = text.find(';');
    std::string_view item = without_spaces_around(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (item.empty()) continue;
    Result<DiffLimit> limit = limit_in(item);
    if (!limit.ok()) return limit.error();
    limits.push_back(*limit);
  }
  return limits;
}

std::vector<std::string> over_limits(const ReportDiff& diff, const std::vector<DiffLimit>& limits) {
  LimitCheck check(diff);
  for (const DiffLimit& limit : limits) check.check(limit);
  return std::move(check).lines();
}

}  // namespace meshard
