#include "meshard/report/diff_markdown.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

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
      append(out, cat("&#", static_cast<int>(c), ";"));
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
  if (!growth.empty()) append(text, cat(" (", growth, ")"));
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
    if (omitted_ > 0) append(out, cat("\nand ", omitted_, " more\n"));
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
  auto found = std::find_if(parts.begin(), parts.end(),
                            [&](const AmountChange& one) { return one.part == name; });
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

std::string to_markdown(const ReportDiff& diff, const DiffMarkdownOptions& options) {
  std::string out =
      cat("### ", markdown_code(diff.after.program), "\n\n**", verdict_of(diff), "**\n");
  if (diff.before.program != diff.after.program)
    append(out, cat("\nbefore: ", markdown_code(diff.before.program), "\n"));
  if (!options.over_limits.empty()) {
    append(out, "\nOver the limits:\n\n");
    std::size_t shown = std::min(options.over_limits.size(), options.most_rows);
    for (std::size_t i = 0; i < shown; ++i)
      append(out, cat("- ", markdown_code(options.over_limits[i]), "\n"));
    if (shown < options.over_limits.size())
      append(out, cat("- and ", options.over_limits.size() - shown, " more\n"));
  }
  if (diff.same()) return out;
  append(out, cat("\n", totals_table(diff)));
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
    append(out, cat("\n", omitted, omitted == 1 ? " table is" : " tables are",
                    " left out, because the page would be too long.\n"));
  return out;
}

}  // namespace meshard
