#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/report/expect.h"

namespace meshard {
namespace {

constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

// Unlike byte_text(), does not round, so that printed text parses to the same value.
std::string exact_bytes(std::int64_t bytes) {
  std::size_t unit = 0;
  while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return cat(bytes, " ", kUnits[unit]);
}

std::string sorted_text(const AxisList& axes) {
  std::vector<std::string> texts;
  for (const AxisRef& axis : axes) texts.push_back(axis.to_string());
  std::ranges::sort(texts);
  return join(texts, ", ");
}

bool same_target(const ExpectedCollective& a, const ExpectedCollective& b) {
  return a.kind == b.kind && a.axes.has_value() == b.axes.has_value() &&
         (!a.axes || sorted_text(*a.axes) == sorted_text(*b.axes));
}

// A decimal number: digits * 10^-places.
struct Decimal {
  std::int64_t digits = 0;
  int places = 0;
};

std::int64_t read_whole(TextScanner& scanner) {
  std::int64_t whole = scanner.integer();
  if (whole < 0) scanner.fail("expected a nonnegative number");
  return whole;
}

// Reads the digits after a decimal point; empty without a point.
Decimal read_fraction(TextScanner& scanner) {
  if (!scanner.accept(".")) return {};
  std::string_view digits = scanner.rest();
  std::size_t count = std::min(digits.find_first_not_of("0123456789"), digits.size());
  if (count == 0 || count > 13) scanner.fail("expected 1 to 13 digits after the decimal point");
  return {scanner.integer(), static_cast<int>(count)};
}

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

std::int64_t read_bytes(TextScanner& scanner) {
  std::int64_t whole = read_whole(scanner);
  Decimal fraction = read_fraction(scanner);
  std::int64_t unit = 1;
  bool found = false;
  for (std::size_t i = kUnits.size(); i-- > 0 && !found;) {
    found = scanner.accept(kUnits[i]);
    if (found) unit = std::int64_t{1} << (10 * i);
  }
  if (whole >= std::numeric_limits<std::int64_t>::max() / unit)
    scanner.fail("the number of bytes is too large");
  return whole * unit + std::llround(static_cast<double>(fraction.digits) /
                                     power_of_ten(fraction.places) * static_cast<double>(unit));
}

// A single division of two exact numbers, so that each fraction has one text.
double read_margin(TextScanner& scanner) {
  std::int64_t whole = read_whole(scanner);
  Decimal fraction = read_fraction(scanner);
  scanner.expect("%");
  if (whole >= 100) scanner.fail("expected less than 100%");
  double power = power_of_ten(fraction.places);
  return (static_cast<double>(whole) * power + static_cast<double>(fraction.digits)) /
         (100 * power);
}

// The shortest percentage that read_margin() reads as this fraction, or the nearest possible.
std::string percent_text(double margin) {
  int places = 0;
  double digits = 0;
  for (;; ++places) {
    digits = std::round(margin * 100 * power_of_ten(places));
    if (places == 13 || digits / (100 * power_of_ten(places)) == margin) break;
  }
  std::string text = cat(static_cast<std::int64_t>(digits));
  auto least = static_cast<std::size_t>(places) + 1;
  if (text.size() < least) text.insert(0, least - text.size(), '0');
  if (places > 0) text.insert(text.size() - static_cast<std::size_t>(places), ".");
  return text + "%";
}

CollectiveKind read_kind(TextScanner& scanner) {
  // The order does not matter: no name is a prefix of another.
  for (const auto& [kind, name] : EnumNames<CollectiveKind>::kNames)
    if (scanner.accept(name)) {
      if (scanner.rest().starts_with("s")) scanner.accept("s");
      return kind;
    }
  std::vector<std::string_view> names;
  for (const auto& each : EnumNames<CollectiveKind>::kNames) names.push_back(each.name);
  scanner.fail(cat("expected a collective (", join(names, ", "), ")"));
}

AxisRef read_axis(TextScanner& scanner) {
  if (scanner.peek("\"")) return AxisRef::read(scanner);
  std::string name(scanner.rest());
  name.resize(std::min(name.find_first_of(" \t\r,;\"'"), name.size()));
  if (name.empty()) scanner.fail("expected the name of a mesh axis");
  scanner.expect(name);
  return AxisRef(std::move(name));
}

ExpectedCollective read_collective(TextScanner& scanner) {
  ExpectedCollective one;
  if (scanner.accept("no ")) {
    one.count = 0;
  } else if (scanner.accept("any ")) {
    one.count.reset();
  } else {
    one.at_most = scanner.accept("at most");
    if (!scanner.peek_integer())
      scanner.fail(
          "expected a number, `no`, `any`, `at most`, `others allowed`, `no full replication` or "
          "`fits`");
    one.count = read_whole(scanner);
  }
  one.kind = read_kind(scanner);
  bool more = false;  // a comma was read, and no axis follows
  if (scanner.accept("over ")) {
    one.axes.emplace();
    do {
      one.axes->push_back(read_axis(scanner));
      more = scanner.accept(",");
    } while (more && !scanner.peek("at most"));
  } else {
    more = scanner.accept(",");
  }
  if (more) {
    scanner.expect("at most");
    one.most_bytes = read_bytes(scanner);
  }
  return one;
}

std::string quoted(std::string_view name) {
  std::string text = "\"";
  for (char c : name) {
    if (c == '"' || c == '\\') text.push_back('\\');
    if (c == '\n') {
      append(text, "\\n");
    } else {
      text.push_back(c);
    }
  }
  text.push_back('"');
  return text;
}

std::string read_quoted(TextScanner& scanner) {
  scanner.expect("\"");
  std::string_view rest = scanner.rest();
  std::string name;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      scanner.expect(rest.substr(0, i + 1));
      return name;
    }
    if (rest[i] == '\\' && i + 1 < rest.size()) {
      ++i;
      name.push_back(rest[i] == 'n' ? '\n' : rest[i]);
    } else {
      name.push_back(rest[i]);
    }
  }
  scanner.fail("the quote is not closed");
}

// The parsed expectations, and the line they came from.
struct Reading {
  Expectations made;
  std::vector<ExpectedCollective> list;
  bool others = false;
  bool none = false;
};

void read_item(TextScanner& scanner, Reading& reading) {
  if (scanner.accept("others allowed")) {
    reading.others = true;
  } else if (scanner.accept("no collectives")) {
    reading.none = true;
  } else if (scanner.accept("no full replication")) {
    if (reading.made.no_full_replication) scanner.fail("`no full replication` is specified twice");
    FullReplicationOptions& options = reading.made.no_full_replication.emplace();
    if (scanner.accept("above")) options.least_bytes = read_bytes(scanner);
    if (scanner.accept("except")) do {
        options.except.push_back(read_quoted(scanner));
      } while (scanner.accept(","));
  } else if (scanner.accept("fits")) {
    if (reading.made.fits_margin) scanner.fail("`fits` is specified twice");
    reading.made.fits_margin = 0;
    if (scanner.accept("with")) {
      reading.made.fits_margin = read_margin(scanner);
      scanner.expect("spare");
    }
  } else {
    ExpectedCollective one = read_collective(scanner);
    for (const ExpectedCollective& other : reading.list)
      if (same_target(one, other))
        scanner.fail(cat("the same collectives are already specified as `", other, "`"));
    reading.list.push_back(std::move(one));
  }
  if (reading.none && (!reading.list.empty() || reading.others))
    scanner.fail("`no collectives` cannot be combined with other collective expectations");
}

void read_line(std::string_view place, std::string_view line, Reading& reading) {
  TextScanner scanner(place, line);
  while (!scanner.at_end()) {
    read_item(scanner, reading);
    if (!scanner.accept(";") && !scanner.at_end()) scanner.fail("expected `;`");
  }
}

Expectations finished(Reading reading) {
  if (reading.none || reading.others || !reading.list.empty())
    reading.made.collectives.emplace(std::move(reading.list), reading.others);
  return std::move(reading.made);
}

// A `#` outside quotes starts a comment.
std::string_view without_comment(std::string_view line) {
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && inside) {
      ++i;
    } else if (line[i] == '"') {
      inside = !inside;
    } else if (line[i] == '#' && !inside) {
      return line.substr(0, i);
    }
  }
  return line;
}

}  // namespace

std::string ExpectedCollective::to_string() const {
  std::string text;
  if (!count)
    text = "any ";
  else if (*count == 0)
    text = "no ";
  else
    text = cat(at_most ? "at most " : "", *count, " ");
  bool many =
      count != 1 && count != 0 && kind != CollectiveKind::kSend && kind != CollectiveKind::kReceive;
  append(text, meshard::to_string(kind), many ? "s" : "");
  if (axes) append(text, " over ", join(*axes, ", "));
  if (most_bytes) append(text, ", at most ", exact_bytes(*most_bytes));
  return text;
}

ExpectedCollectives::ExpectedCollectives(std::vector<ExpectedCollective> list, bool others_allowed)
    : list_(std::move(list)), others_allowed_(others_allowed) {
  for (std::size_t i = 0; i < list_.size(); ++i) {
    if (list_[i].count.value_or(0) < 0 || list_[i].most_bytes.value_or(0) < 0)
      throw_invalid({}, "[expectations] `", list_[i], "` has a negative number");
    if (list_[i].axes && list_[i].axes->empty())
      throw_invalid({}, "[expectations] `", list_[i],
                    "` has an empty list of axes: omit `over` instead");
    for (std::size_t j = 0; j < i; ++j)
      if (same_target(list_[i], list_[j]))
        throw_invalid({}, "[expectations] `", list_[j], "` and `", list_[i],
                      "` match the same collectives");
    // A count of 0 or none ignores at_most: normalized, so that equal expectations compare equal.
    if (list_[i].count == 0 || !list_[i].count) list_[i].at_most = false;
  }
}

ExpectedCollectives::ExpectedCollectives(const char* text, SourceLocation where) {
  *this = parse(text).value(where);
}

std::string ExpectedCollectives::to_string() const {
  if (list_.empty()) return others_allowed_ ? "others allowed" : "no collectives";
  return cat(join(list_, "; "), others_allowed_ ? "; others allowed" : "");
}

Result<ExpectedCollectives> ExpectedCollectives::parse(std::string_view text) {
  return caught([&] {
    Reading reading;
    read_line("expected collectives", text, reading);
    Expectations made = finished(std::move(reading));
    if (made.no_full_replication || made.fits_margin || !made.collectives)
      throw_invalid({},
                    "[parse expected collectives] only collective expectations are allowed in `",
                    text, "`");
    return *std::move(made.collectives);
  });
}

std::string Expectations::to_string() const {
  std::string text;
  if (collectives) {
    for (const ExpectedCollective& one : collectives->list()) append(text, one, "\n");
    if (collectives->others_allowed()) append(text, "others allowed\n");
    if (collectives->list().empty() && !collectives->others_allowed())
      append(text, "no collectives\n");
  }
  if (no_full_replication) {
    append(text, "no full replication above ", exact_bytes(no_full_replication->least_bytes));
    std::vector<std::string> names;
    for (const std::string& name : no_full_replication->except) names.push_back(quoted(name));
    if (!names.empty()) append(text, " except ", join(names, ", "));
    append(text, "\n");
  }
  if (fits_margin) {
    append(text, "fits");
    if (*fits_margin > 0) append(text, " with ", percent_text(*fits_margin), " spare");
    append(text, "\n");
  }
  return text;
}

Result<Expectations> Expectations::parse(std::string_view text) {
  return caught([&] {
    Reading reading;
    std::size_t number = 0;
    while (!text.empty()) {
      std::size_t end = std::min(text.find('\n'), text.size());
      read_line(cat("expectations, line ", ++number), without_comment(text.substr(0, end)),
                reading);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return finished(std::move(reading));
  });
}

Result<double> parse_margin(std::string_view text) {
  return parse_whole("margin", text, read_margin);
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  return parse_whole("bytes", text, read_bytes);
}

}  // namespace meshard
