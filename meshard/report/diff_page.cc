// Writes a diff as JSON and as an HTML page.
// Tested in meshard/report/diff_test.cc.
#include <string>

#include "meshard/base/cat.h"
#include "meshard/base/json_fields.h"
#include "meshard/explain/byte_text.h"
#include "meshard/report/diff.h"
#include "meshard/report/diff_text.h"

namespace meshard {
namespace {

constexpr std::string_view kDiffPageHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What changed</title>
<style>
:root { color-scheme: light dark; --line: #8886; --more: #b3261e; --less: #1a7f37; }
@media (prefers-color-scheme: dark) { :root { --more: #ff8a80; --less: #7ee2a0; } }
body { font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.more { color: var(--more); } td.less { color: var(--less); }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
</style></head><body>
)";

std::string page_text(std::string_view text) {
  std::string out;
  for (char c : text) switch (c) {
      case '&': append(out, "&amp;"); break;
      case '<': append(out, "&lt;"); break;
      case '>': append(out, "&gt;"); break;
      case '"': append(out, "&quot;"); break;
      case '\'': append(out, "&#39;"); break;
      default: out.push_back(c);
    }
  return out;
}

std::string page_code(std::string_view text) { return cat("<code>", page_text(text), "</code>"); }

std::string page_cell(std::string_view inside) { return cat("<td>", inside, "</td>"); }

std::string number_cell(std::string_view text) {
  return cat("<td class=\"number\">", page_text(text), "</td>");
}

// In a diff, a larger number is always worse: bytes, seconds, collectives.
std::string change_cell(double before, double after, std::string_view text) {
  std::string_view direction = after > before ? " more" : after < before ? " less" : "";
  return cat("<td class=\"number", direction, "\">", page_text(text), "</td>");
}

void open_table(std::string& out, std::string_view title,
                std::initializer_list<std::string_view> columns) {
  append(out, "<h2>", title, "</h2><div class=\"wide\"><table><thead><tr>");
  for (std::string_view column : columns) append(out, "<th scope=\"col\">", column, "</th>");
  append(out, "</tr></thead><tbody>\n");
}

void close_table(std::string& out) { append(out, "</tbody></table></div>\n"); }

void amounts_table(std::string& out, std::string_view title,
                   const std::vector<AmountChange>& changes, bool bytes) {
  if (changes.empty()) return;
  auto text = [&](double amount) { return amount_text(amount, bytes); };
  open_table(out, title, {"part", "before", "after", "difference"});
  for (const AmountChange& one : changes) {
    double more = one.after - one.before;
    std::string difference =
        one.changed() ? cat(more > 0 ? "+" : "-", text(more > 0 ? more : -more)) : "";
    append(out, "<tr>", page_cell(page_text(one.part)), number_cell(text(one.before)),
           number_cell(text(one.after)), change_cell(one.before, one.after, difference), "</tr>\n");
  }
  close_table(out);
}

void collectives_table(std::string& out, const ReportDiff& diff) {
  open_table(out, "Collectives",
             {"kind", "axes", "from", "before", "after", "bytes before", "bytes after"});
  auto count = [](const CollectiveChange::Side& side) {
    return side.executions == side.count ? cat(side.count)
                                         : cat(side.count, " (", side.executions, " runs)");
  };
  for (const CollectiveChange& one : diff.collectives) {
    auto bytes = [](const CollectiveChange::Side& side) { return static_cast<double>(side.bytes); };
    append(out, "<tr>", page_cell(to_string(one.kind)), page_cell(page_code(one.axes)),
           page_cell(page_code(one.place)), number_cell(count(one.before)),
           number_cell(count(one.after)), number_cell(byte_text(one.before.bytes)),
           change_cell(bytes(one.before), bytes(one.after), byte_text(one.after.bytes)), "</tr>\n");
  }
  close_table(out);
}

void texts_table(std::string& out, std::string_view title, std::string_view what,
                 const std::vector<TextChange>& changes) {
  if (changes.empty()) return;
  open_table(out, title, {what, "before", "after"});
  for (const TextChange& one : changes)
    append(out, "<tr>", page_cell(page_code(one.text)), number_cell(cat(one.before)),
           change_cell(static_cast<double>(one.before), static_cast<double>(one.after),
                       cat(one.after)),
           "</tr>\n");
  close_table(out);
}

}  // namespace

std::string to_json(const ReportDiff& diff) {
  JsonWriter json;
  auto member = [&](std::string_view name, const auto& value) {
    json.key(name);
    write_json(json, value);
  };
  json.begin_object().member("schema", "meshard.diff").member("version", 1);
  json.member("same", diff.same());
  member("before", diff.before);
  member("after", diff.after);
  member("collectives", diff.collectives);
  json.key("memory_bytes").begin_array();
  for (const AmountChange& one : diff.memory) {
    json.begin_object().member("part", one.part);
    json.member("before", static_cast<std::int64_t>(one.before));
    json.member("after", static_cast<std::int64_t>(one.after)).end_object();
  }
  json.end_array();
  member("seconds", diff.times);
  member("estimated_seconds", diff.estimates);
  member("placements", diff.placements);
  member("reshards", diff.reshards);
  member("largest_buffers", diff.buffers);
  json.end_object();
  return std::move(json).text();
}

std::string to_html(const ReportDiff& diff) {
  std::string out(kDiffPageHead);
  append(out, "<h1>What changed</h1><p>before: ", page_code(diff.before.program),
         "<br>after: ", page_code(diff.after.program), "</p>\n");
  if (diff.same()) append(out, "<p><strong>No difference.</strong></p>\n");
  amounts_table(out, "Time by the schedule", diff.estimates, false);
  amounts_table(out, "Time by the roofline", diff.times, false);
  amounts_table(out, "Memory per device", diff.memory, true);
  collectives_table(out, diff);
  if (!diff.placements.empty()) {
    open_table(out, "Shardings that changed", {"value", "before", "after"});
    for (const PlacementChange& one : diff.placements)
      append(out, "<tr>", page_cell(page_code(one.value)), page_cell(page_code(one.before)),
             page_cell(page_code(one.after)), "</tr>\n");
    close_table(out);
  }
  texts_table(out, "Reshards, new and gone", "reshard", diff.reshards);
  texts_table(out, "Largest buffers", "buffer", diff.buffers);
  append(out, "</body></html>\n");
  return out;
}

}  // namespace meshard
