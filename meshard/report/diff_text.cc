#include "meshard/report/diff_text.h"

#include <array>
#include <cmath>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {
namespace {

std::string_view plural(const CollectiveChange& change, std::int64_t count) {
  return count == 1 || change.kind == CollectiveKind::kSend ||
                 change.kind == CollectiveKind::kReceive
             ? ""
             : "s";
}

std::string side_text(const CollectiveChange::Side& side) {
  std::string text = byte_text(side.bytes);
  if (side.executions != side.count) append(text, cat(" in ", side.executions, " runs"));
  return text;
}

// Prints the first `most` lines, and the number of omitted ones.
class Lines {
 public:
  Lines(std::string& out, std::size_t most) : out_(out), most_(most) {}
  void add(const std::string& line) {
    if (most_ == 0 || count_ < most_) append(out_, cat("  ", line, "\n"));
    ++count_;
  }
  void end() {
    if (most_ != 0 && count_ > most_) append(out_, cat("  and ", count_ - most_, " more\n"));
  }

 private:
  std::string& out_;
  std::size_t most_, count_ = 0;
};

std::string number_change(std::int64_t before, std::int64_t after) {
  return before == after ? cat(after) : cat(before, " → ", after);
}

void append_collectives(std::string& out, const ReportDiff& diff, std::size_t most) {
  append(out,
         cat("collectives: ", number_change(diff.before.collectives, diff.after.collectives), ", ",
             bytes_change_text(static_cast<double>(diff.before.collective_bytes),
                               static_cast<double>(diff.after.collective_bytes)),
             " per device and run\n"));
  Lines lines(out, most);
  std::size_t unchanged = 0;
  for (const CollectiveChange& change : diff.collectives) {
    if (change.changed())
      lines.add(change.to_string());
    else
      unchanged += static_cast<std::size_t>(change.after.count);
  }
  lines.end();
  if (unchanged > 0) append(out, cat("  ", unchanged, " unchanged\n"));
}

void append_amounts(std::string& out, std::string_view title,
                    const std::vector<AmountChange>& changes, std::string (*text)(double, double)) {
  if (changes.empty()) return;
  append(out, cat(title, ": ", text(changes[0].before, changes[0].after), "\n"));
  for (std::size_t i = 1; i < changes.size(); ++i)
    if (changes[i].changed())
      append(out, cat("  ", changes[i].part, " ", text(changes[i].before, changes[i].after), "\n"));
}

}  // namespace

std::string seconds_text(double seconds) {
  constexpr std::array<std::pair<double, std::string_view>, 4> kUnits = {
      {{1, " s"}, {1e-3, " ms"}, {1e-6, " us"}, {1e-9, " ns"}}};
  std::size_t unit = 0;
  while (unit + 1 < kUnits.size() && std::abs(seconds) < kUnits[unit].first) ++unit;
  double value = seconds / kUnits[unit].first;
  double step = 1;  // keeps three digits: 1.23, 12.3, 123
  if (std::abs(value) < 10)
    step = 100;
  else if (std::abs(value) < 100)
    step = 10;
  return cat(std::round(value * step) / step, kUnits[unit].second);
}

std::string amount_text(double amount, bool bytes) {
  return bytes ? byte_text(static_cast<std::int64_t>(amount)) : seconds_text(amount);
}

std::string bytes_change_text(double before, double after) {
  auto whole = [](double bytes) { return static_cast<std::int64_t>(bytes); };
  if (before == after) return byte_text(whole(after));
  double more = after - before;
  return cat(byte_text(whole(before)), " → ", byte_text(whole(after)), " (", more > 0 ? "+" : "-",
             byte_text(whole(std::abs(more))), ")");
}

std::string growth_percent(double fraction) { return cat(std::round(fraction * 1000) / 10, "%"); }

std::string relative_growth_text(double before, double after) {
  if (before <= 0 || std::abs(after / before - 1) < 0.0005) return "";
  return cat(after > before ? "+" : "", growth_percent(after / before - 1));
}

std::string bytes_growth_text(double before, double after) {
  std::string text = bytes_change_text(before, after);
  std::string growth = relative_growth_text(before, after);
  if (growth.empty()) return text;
  text.pop_back();  // the bracket
  return cat(text, ", ", growth, ")");
}

std::string seconds_change_text(double before, double after) {
  if (before == after) return seconds_text(after);
  std::string text = cat(seconds_text(before), " → ", seconds_text(after));
  if (before > 0)
    append(text, cat(" (", after > before ? "+" : "", growth_percent(after / before - 1), ")"));
  return text;
}

std::string CollectiveChange::to_string() const {
  bool fresh = before.count == 0, gone = after.count == 0;
  std::string name = cat(meshard::to_string(kind), plural(*this, gone ? before.count : after.count),
                         " on ", axes, ", ");
  std::string text;
  if (fresh || gone) {
    const Side& side = gone ? before : after;
    text = cat(gone ? "- " : "+ ", side.count, " ", name, side_text(side));
  } else {
    text = cat("~ ", number_change(before.count, after.count), " ", name, side_text(before), " → ",
               side_text(after));
  }
  return cat(text, ", from ", place.empty() ? "an unknown place" : place);
}

std::string PlacementChange::to_string() const {
  if (before.empty()) return cat("+ ", value, ": ", after);
  if (after.empty()) return cat("- ", value, ": ", before);
  return cat("~ ", value, ": ", before, "\n      → ", after);
}

std::string ReportDiff::to_string(std::size_t most_lines) const {
  std::string out = cat("before: ", before.program, "\nafter:  ", after.program, "\n");
  if (same()) return cat(out, "no difference\n");
  append_amounts(out, "estimated time, by the schedule", estimates, seconds_change_text);
  append_amounts(out, "time at least, by the roofline", times, seconds_change_text);
  if (!before.bound_by.empty() && !after.bound_by.empty() && before.bound_by != after.bound_by)
    append(out, cat("  bound by ", before.bound_by, " → ", after.bound_by, "\n"));
  append_amounts(out, "memory per device", memory, bytes_change_text);
  append_collectives(out, *this, most_lines);
  if (!placements.empty()) append(out, cat("shardings: ", placements.size(), " changed\n"));
  Lines placed(out, most_lines);
  for (const PlacementChange& change : placements) placed.add(change.to_string());
  placed.end();
  if (!reshards.empty()) append(out, "reshards\n");
  Lines moved(out, most_lines);
  for (const TextChange& change : reshards) {
    std::int64_t more = change.after - change.before;
    std::int64_t times_more = more > 0 ? more : -more;
    moved.add(
        cat(more > 0 ? "+ " : "- ", times_more == 1 ? "" : cat(times_more, " of "), change.text));
  }
  moved.end();
  if (!buffers.empty()) append(out, "largest buffers, new (+) and gone (-)\n");
  Lines kept(out, most_lines == 0 ? 0 : (most_lines + 1) / 2);
  for (const TextChange& change : buffers)
    if (change.changed()) kept.add(cat(change.after > change.before ? "+ " : "- ", change.text));
  kept.end();
  return out;
}

}  // namespace meshard
