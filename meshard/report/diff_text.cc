#include "meshard/report/diff_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
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
  if (side.executions != side.count) append(text, " in ", side.executions, " runs");
  return text;
}

// Prints the first `most` lines, and the number of omitted ones.
class Lines {
 public:
  Lines(std::string& out, std::size_t most) : out_(out), most_(most) {}
  void add(const std::string& line) {
    if (most_ == 0 || count_ < most_) append(out_, "  ", line, "\n");
    ++count_;
  }
  void end() {
    if (most_ != 0 && count_ > most_) append(out_, "  and ", count_ - most_, " more\n");
  }

 private:
  std::string& out_;
  std::size_t most_, count_ = 0;
};

std::string number_change(std::int64_t before, std::int64_t after) {
  return before == after ? cat(after) : cat(before, " → ", after);
}

void append_collectives(std::string& out, const ReportDiff& diff, std::size_t most) {
  append(out, "collectives: ", number_change(diff.before.collectives, diff.after.collectives), ", ",
         bytes_change_text(static_cast<double>(diff.before.collective_bytes),
                           static_cast<double>(diff.after.collective_bytes)),
         " per device and run\n");
  Lines lines(out, most);
  std::size_t unchanged = 0;
  for (const CollectiveChange& change : diff.collectives) {
    if (change.changed())
      lines.add(change.to_string());
    else
      unchanged += static_cast<std::size_t>(change.after.count);
  }
  lines.end();
  if (unchanged > 0) append(out, "  ", unchanged, " unchanged\n");
}

void append_amounts(std::string& out, std::string_view title,
                    const std::vector<AmountChange>& changes, std::string (*text)(double, double)) {
  if (changes.empty()) return;
  append(out, title, ": ", text(changes[0].before, changes[0].after), "\n");
  for (std::size_t i = 1; i < changes.size(); ++i)
    if (changes[i].changed())
      append(out, "  ", changes[i].part, " ", text(changes[i].before, changes[i].after), "\n");
}

constexpr std::size_t kLongestCell = 240;

// Bytes of UTF-8 sequences are kept together.
std::string_view shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

bool starts_autolink(std::string_view text, std::size_t at) {
  auto low = [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); };
  if (text[at] == ':') return at + 1 < text.size() && text[at + 1] == '/';
  return text[at] == '.' && at >= 3 && low(text[at - 1]) == 'w' && low(text[at - 2]) == 'w' &&
         low(text[at - 3]) == 'w';
}

// Text of a module as code. Punctuation with a meaning in Markdown or HTML is written as character
// references, which CommonMark never reads as markup; GitHub finds no mentions in <code>.
std::string markdown_code(std::string_view text) {
  std::string out = "<code>";
  std::string_view shown = shortened(text, kLongestCell);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    char c = shown[i];
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out.push_back(' ');
    else if (std::string_view("&<>|`*_~[]\\#@$").find(c) != std::string_view::npos ||
             starts_autolink(shown, i))
      append(out, "&#", static_cast<int>(c), ";");
    else
      out.push_back(c);
  }
  return cat(out, shown.size() < text.size() ? "…" : "", "</code>");
}

std::string with_sign(std::int64_t more) { return cat(more > 0 ? "+" : "", more); }

// `+2 KiB (+40%)`; empty if unchanged.
std::string change_text(double before, double after, bool bytes) {
  if (before == after) return "";
  double more = after > before ? after - before : before - after;
  std::string text = cat(after > before ? "+" : "-", amount_text(more, bytes));
  std::string growth = relative_growth_text(before, after);
  if (!growth.empty()) append(text, " (", growth, ")");
  return text;
}

class MarkdownTable {
 public:
  MarkdownTable(std::initializer_list<std::string_view> columns, std::size_t most_rows)
      : columns_(columns.begin(), columns.end()), most_(most_rows) {}

  void add(std::vector<std::string> cells) {
    if (rows_.size() < most_)
      rows_.push_back(std::move(cells));
    else
      ++omitted_;
  }
  std::size_t size() const { return rows_.size() + omitted_; }

  // Columns from `numbers` on are aligned to the right.
  std::string text(std::size_t numbers) const {
    std::string out = row(columns_);
    for (std::size_t i = 0; i < columns_.size(); ++i) append(out, i < numbers ? "|---" : "|--:");
    append(out, "|\n");
    for (const std::vector<std::string>& cells : rows_) append(out, row(cells));
    if (omitted_ > 0) append(out, "\nand ", omitted_, " more\n");
    return out;
  }

 private:
  static std::string row(const std::vector<std::string>& cells) {
    return cat("| ", join(cells, " | "), " |\n");
  }

  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t most_, omitted_ = 0;
};

std::string folded(std::string_view summary, const std::string& inside) {
  return cat("\n<details><summary>", summary, "</summary>\n\n", inside, "\n</details>\n");
}

const AmountChange* part_of(const std::vector<AmountChange>& parts, std::string_view name) {
  auto found = std::ranges::find(parts, name, &AmountChange::part);
  return found == parts.end() ? nullptr : &*found;
}

// The totals, in words: `collectives +2; bytes +3 KiB (+20%); peak memory +1 KiB (+5%)`.
std::string verdict_of(const ReportDiff& diff) {
  if (diff.same()) return "No difference";
  std::vector<std::string> parts;
  auto add = [&](std::string_view name, const std::string& change) {
    if (!change.empty()) parts.push_back(cat(name, " ", change));
  };
  std::int64_t more = diff.after.collectives - diff.before.collectives;
  add("collectives", more == 0 ? "" : with_sign(more));
  add("collective bytes", change_text(static_cast<double>(diff.before.collective_bytes),
                                      static_cast<double>(diff.after.collective_bytes), true));
  if (const AmountChange* one = part_of(diff.memory, "total"))
    add("memory", change_text(one->before, one->after, true));
  if (const AmountChange* one = part_of(diff.memory, "peak"))
    add("peak memory", change_text(one->before, one->after, true));
  if (const AmountChange* one = part_of(diff.estimates, "estimated"))
    add("estimated time", change_text(one->before, one->after, false));
  else if (const AmountChange* least = part_of(diff.times, "at least"))
    add("time", change_text(least->before, least->after, false));
  if (parts.empty()) return "The totals are the same; parts changed";
  return join(parts, "; ");
}

std::string totals_table(const ReportDiff& diff) {
  MarkdownTable table({"per device and run", "before", "after", "change"}, 10);
  std::int64_t before = diff.before.collectives, after = diff.after.collectives;
  table.add(
      {"collectives", cat(before), cat(after), before == after ? "" : with_sign(after - before)});
  auto add = [&](std::string name, double from, double to, bool bytes) {
    table.add({std::move(name), amount_text(from, bytes), amount_text(to, bytes),
               change_text(from, to, bytes)});
  };
  add("collective bytes", static_cast<double>(diff.before.collective_bytes),
      static_cast<double>(diff.after.collective_bytes), true);
  if (const AmountChange* one = part_of(diff.memory, "total"))
    add("memory", one->before, one->after, true);
  if (const AmountChange* one = part_of(diff.memory, "peak"))
    add("peak memory", one->before, one->after, true);
  if (const AmountChange* one = part_of(diff.estimates, "estimated"))
    add("estimated time", one->before, one->after, false);
  if (const AmountChange* one = part_of(diff.times, "at least"))
    add("time at least", one->before, one->after, false);
  if (!diff.before.bound_by.empty() && !diff.after.bound_by.empty())
    table.add({"bound by", diff.before.bound_by, diff.after.bound_by, ""});
  return table.text(1);
}

std::string collectives_section(const ReportDiff& diff, std::size_t most) {
  MarkdownTable table({"", "kind", "axes", "from", "count", "bytes before", "bytes after"}, most);
  std::int64_t unchanged = 0;
  for (const CollectiveChange& one : diff.collectives) {
    if (!one.changed()) {
      unchanged += one.after.count;
      continue;
    }
    bool fresh = one.before.count == 0, gone = one.after.count == 0;
    table.add({fresh  ? "new"
               : gone ? "gone"
                      : "changed",
               std::string(to_string(one.kind)), markdown_code(one.axes),
               one.place.empty() ? std::string("unknown") : markdown_code(one.place),
               one.before.count == one.after.count ? cat(one.after.count)
                                                   : cat(one.before.count, " → ", one.after.count),
               byte_text(one.before.bytes), byte_text(one.after.bytes)});
  }
  if (table.size() == 0) return "";
  return folded(cat("Collectives: ", table.size(), " changed, ", unchanged, " the same"),
                table.text(4));
}

std::string amounts_section(std::string_view title, const std::vector<AmountChange>& parts,
                            bool bytes, std::size_t most) {
  MarkdownTable table({"part", "before", "after", "change"}, most);
  for (const AmountChange& one : parts)
    if (one.changed())
      table.add({markdown_code(one.part), amount_text(one.before, bytes),
                 amount_text(one.after, bytes), change_text(one.before, one.after, bytes)});
  return table.size() == 0 ? "" : folded(title, table.text(1));
}

std::string placements_section(const ReportDiff& diff, std::size_t most) {
  if (diff.placements.empty()) return "";
  MarkdownTable table({"value", "before", "after"}, most);
  auto side = [](const std::string& text) {
    return text.empty() ? std::string("none") : markdown_code(text);
  };
  for (const PlacementChange& one : diff.placements)
    table.add({markdown_code(one.value), side(one.before), side(one.after)});
  return folded(cat("Shardings: ", table.size(), " changed"), table.text(3));
}

std::string reshards_section(const ReportDiff& diff, std::size_t most) {
  if (diff.reshards.empty()) return "";
  MarkdownTable table({"reshard", "before", "after"}, most);
  for (const TextChange& one : diff.reshards)
    table.add({markdown_code(one.text), cat(one.before), cat(one.after)});
  return folded(cat("Reshards: ", table.size(), " changed"), table.text(1));
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
    append(text, " (", after > before ? "+" : "", growth_percent(after / before - 1), ")");
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
    append(out, "  bound by ", before.bound_by, " → ", after.bound_by, "\n");
  append_amounts(out, "memory per device", memory, bytes_change_text);
  append_collectives(out, *this, most_lines);
  if (!placements.empty()) append(out, "shardings: ", placements.size(), " changed\n");
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

std::string to_markdown(const ReportDiff& diff, const DiffMarkdownOptions& options) {
  std::string out =
      cat("### ", markdown_code(diff.after.program), "\n\n**", verdict_of(diff), "**\n");
  if (diff.before.program != diff.after.program)
    append(out, "\nbefore: ", markdown_code(diff.before.program), "\n");
  if (!options.over_limits.empty()) {
    append(out, "\nOver the limits:\n\n");
    std::size_t shown = std::min(options.over_limits.size(), options.most_rows);
    for (std::size_t i = 0; i < shown; ++i)
      append(out, "- ", markdown_code(options.over_limits[i]), "\n");
    if (shown < options.over_limits.size())
      append(out, "- and ", options.over_limits.size() - shown, " more\n");
  }
  if (diff.same()) return out;
  append(out, "\n", totals_table(diff));
  std::size_t omitted = 0;
  for (const std::string& section :
       {collectives_section(diff, options.most_rows),
        amounts_section("Memory per device", diff.memory, true, options.most_rows),
        amounts_section("Time by the schedule", diff.estimates, false, options.most_rows),
        amounts_section("Time by the roofline", diff.times, false, options.most_rows),
        placements_section(diff, options.most_rows), reshards_section(diff, options.most_rows)}) {
    if (out.size() + section.size() <= options.most_characters)
      append(out, section);
    else
      ++omitted;
  }
  if (omitted > 0)
    append(out, "\n", omitted, omitted == 1 ? " table is" : " tables are",
           " left out, because the page would be too long.\n");
  return out;
}

}  // namespace meshard
