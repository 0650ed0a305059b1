#include "meshard/report/diff_limits.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

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
  const auto* part = std::find_if(std::begin(parts), std::end(parts),
                                  [&](const auto& one) { return one.name == name; });
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
    auto found = std::find_if(sums.begin(), sums.end(), [&](const KindBytes& sum) {
      return sum.kind == one.kind && sum.axes == one.axes;
    });
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
    auto found = std::find_if(parts.begin(), parts.end(),
                              [&](const AmountChange& one) { return one.part == name; });
    if (found == parts.end() || found->before == 0 || found->after == 0)
      lines_.push_back(cat(to_string(limit.part), ": not known for both programs"));
    else
      amount(limit, found->before, found->after);
  }

  const ReportDiff& diff_;
  std::vector<std::string> lines_;
};

}  // namespace

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
