#include "meshard/plan/journal.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// The number is that of the format. Version 1 had no given candidate and no return_seconds; the
// seconds of version 2 are those of the roofline.
constexpr std::string_view kJournalHead = "meshard plan 3 ", kJournalName = "meshard plan ";

Error file_error(std::string_view what, const std::string& path) {
  return Error(ErrorCode::kUnavailable,
               cat("[plan] cannot ", what, " the journal ", path, ": ", std::strerror(errno)));
}

// Replaces tabs, which separate fields, and newlines, which separate lines.
std::string in_one_field(std::string_view text) {
  std::string out;
  for (char c : text.substr(0, 2000)) out.push_back(c == '\t' || c == '\n' || c == '\r' ? ' ' : c);
  return out;
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// The fields of a verdict, each after a tab. The last field is a period, so that truncated lines
// are recognized.
std::string line_of(const std::string& candidate, const PlanVerdict& verdict) {
  std::string line = candidate;
  visit_fields(verdict, [&](std::string_view, const auto& field) {
    using Field = std::remove_cvref_t<decltype(field)>;
    line += '\t';
    if constexpr (NamedEnum<Field>)
      append(line, enum_name(field));
    else if constexpr (std::is_same_v<Field, std::string>)
      append(line, in_one_field(field));
    else
      append(line, field);
  });
  return line + "\t.\n";
}

template <class T>
bool read_field(std::string_view text, T& out) {
  if constexpr (NamedEnum<T>) {
    for (const auto& [value, name] : EnumNames<T>::kNames)
      if (text == name) return out = value, true;
    return false;
  } else if constexpr (std::is_same_v<T, std::string>) {
    out = text;
    return true;
  } else {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
  }
}

std::optional<PlanVerdict> read_line(const std::vector<std::string_view>& fields) {
  PlanVerdict verdict;
  std::size_t count = 1;
  bool is_sound = true;
  visit_fields(verdict, [&](std::string_view, auto& field) {
    is_sound = is_sound && count < fields.size() && read_field(fields[count], field);
    ++count;
  });
  if (!is_sound || fields.size() != count + 1 || fields[count] != ".") return std::nullopt;
  return verdict;
}

}  // namespace

Result<PlanJournal> PlanJournal::open(const std::string& path, const std::string& problem) {
  PlanJournal journal;
  journal.path_ = path;
  journal.file_.reset(std::fopen(path.c_str(), "a+b"));
  if (!journal.file_) return file_error("open", path);
  std::FILE* file = journal.file_.get();
  std::rewind(file);
  std::string text;
  std::array<char, 65536> block;
  while (std::size_t count = std::fread(block.data(), 1, block.size(), file))
    text.append(block.data(), count);
  if (std::ferror(file)) return file_error("read", path);
  std::string head = cat(kJournalHead, problem);
  if (text.empty()) {
    std::string line = head + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file) != line.size() || std::fflush(file) != 0)
      return file_error("write", path);
    return journal;
  }
  std::vector<std::string_view> lines = split(text, '\n');
  bool is_other_version = lines[0].starts_with(kJournalName) && !lines[0].starts_with(kJournalHead);
  if (is_other_version)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plan] the journal ", path,
                     " was written by another version of meshard, in a "
                     "format that this one does not read: remove it or choose another file"));
  if (lines[0] != head)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[plan] the journal ", path, " belongs to another search (",
                     lines[0].substr(0, kJournalHead.size()) == kJournalHead
                         ? "the module, the target or the free arguments changed"
                         : "the file is not a journal",
                     "): remove it or choose another file"));
  for (std::string_view line : lines) {
    std::vector<std::string_view> fields = split(line, '\t');
    if (std::optional<PlanVerdict> verdict = read_line(fields))
      journal.verdicts_[std::string(fields[0])] = *verdict;
  }
  // Ends a truncated last line, so that the next entry starts on its own line.
  if (text.back() != '\n' && (std::fputc('\n', file) == EOF || std::fflush(file) != 0))
    return file_error("write", path);
  return journal;
}

Result<void> PlanJournal::add(const std::string& candidate, const PlanVerdict& verdict) {
  std::string line = line_of(candidate, verdict);
  if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() ||
      std::fflush(file_.get()) != 0)
    return file_error("write", path_);
  return {};
}

}  // namespace meshard
