#include "examples/gpt/text.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <unordered_set>

namespace gpt {
namespace {

using meshard::cat;
using Hashes = std::unordered_set<std::uint64_t>;

constexpr const char* kFolder = "/usr/share/common-licenses";
constexpr std::size_t kRow = 10;  // number of consecutive words that count as copied

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Paragraphs: lines between empty lines (or lines of one dot, as in copyright files), joined by
// spaces.
std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> out(1);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::size_t first = line.find_first_not_of(" \t\r"), last = line.find_last_not_of(" \t\r");
    bool empty = first == line.npos || line.substr(first) == ".";
    if (empty && !out.back().empty()) out.emplace_back();
    if (empty) continue;
    if (!out.back().empty()) out.back() += ' ';
    out.back() += line.substr(first, last - first + 1);
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

// Hashes (FNV-1a) of the words, ignoring case and punctuation.
std::vector<std::uint64_t> words_of(const std::string& paragraph) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325, kPrime = 0x100000001b3;
  std::vector<std::uint64_t> words;
  std::uint64_t hash = kOffset;
  for (char c : paragraph + " ") {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      hash =
          (hash ^ static_cast<std::uint64_t>(std::tolower(static_cast<unsigned char>(c)))) * kPrime;
    } else if (hash != kOffset) {
      words.push_back(hash);
      hash = kOffset;
    }
  }
  return words;
}

// Hashes of each sequence of `length` words; of the whole text if it is shorter.
std::vector<std::uint64_t> rows_of(const std::vector<std::uint64_t>& words, std::size_t length) {
  std::vector<std::uint64_t> rows;
  length = std::min(length, words.size());
  for (std::size_t i = 0; i + length <= words.size(); ++i) {
    std::uint64_t hash = 0;
    for (std::size_t j = i; j < i + length; ++j) hash = hash * 0x9E3779B97F4A7C15 + words[j];
    rows.push_back(hash);
  }
  return rows;
}

// True for ASCII paragraphs that are long and mostly lowercase words: excludes file lists, names
// and addresses.
bool is_prose(const std::string& paragraph) {
  if (paragraph.size() < 100 || paragraph.find('@') != paragraph.npos) return false;
  for (char c : paragraph)
    if (c < ' ' || c > '~') return false;
  std::istringstream words(paragraph);
  std::int64_t all = 0, small = 0;
  for (std::string word; words >> word; ++all) {
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back()))) word.pop_back();
    small += !word.empty() &&
             std::all_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
  }
  return small * 10 >= all * 7;
}

bool is_held_back(const std::string& name) {
  return name.starts_with("GFDL") || name.starts_with("MPL");
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.is_regular_file(none) && !entry.is_symlink(none)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::filesystem::path> copyright_files() {
  std::vector<std::filesystem::path> files;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/share/doc", none)) {
    std::filesystem::path file = entry.path() / "copyright";
    if (std::filesystem::is_regular_file(file, none)) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Collects paragraphs without duplicates.
class Collection {
 public:
  void add_held_back(const std::string& text) {
    for (const std::string& paragraph : paragraphs_of(text)) {
      std::vector<std::uint64_t> words = words_of(paragraph);
      for (std::uint64_t row : rows_of(words, kRow)) held_back_rows_.insert(row);
      if (is_prose(paragraph) && is_new(words)) text_.held_back += paragraph + "\n\n";
    }
  }
  void add_train(const std::string& text) {
    for (const std::string& paragraph : paragraphs_of(text)) {
      std::vector<std::uint64_t> words = words_of(paragraph);
      if (!is_prose(paragraph) || !is_new(words)) continue;
      std::vector<std::uint64_t> rows = rows_of(words, kRow);
      bool copied = std::any_of(rows.begin(), rows.end(),
                                [&](std::uint64_t row) { return held_back_rows_.count(row) > 0; });
      if (!copied) text_.train += paragraph + "\n\n";
    }
  }
  Text& text() { return text_; }

 private:
  bool is_new(const std::vector<std::uint64_t>& words) {
    return seen_.insert(rows_of(words, words.size()).at(0)).second;
  }
  Text text_;
  Hashes held_back_rows_, seen_;
};

// The number of start positions of windows with `length` + 1 bytes.
std::int64_t places_in(const std::string& text, std::int64_t length) {
  return static_cast<std::int64_t>(text.size()) - length;
}

void append_window(std::vector<std::int32_t>& out, const std::string& text, std::int64_t start,
                   std::int64_t length) {
  for (std::int64_t i = start; i <= start + length; ++i)
    out.push_back(static_cast<unsigned char>(text[static_cast<std::size_t>(i)]));
}

}  // namespace

std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

meshard::Result<Text> license_text() {
  Collection all;
  std::vector<std::filesystem::path> licenses = files_of(kFolder), copyrights = copyright_files();
  for (const auto& file : licenses)
    if (is_held_back(file.filename().string())) all.add_held_back(contents(file));
  for (const auto& file : licenses)
    if (!is_held_back(file.filename().string())) all.add_train(contents(file));
  for (const auto& file : copyrights) all.add_train(contents(file));
  Text& text = all.text();
  if (text.train.size() < 10000 || text.held_back.size() < 1000)
    return meshard::Error(
        meshard::ErrorCode::kNotFound,
        cat("[gpt] ", kFolder, " and /usr/share/doc/*/copyright have ", text.train.size(),
            " bytes of text, which is too little: specify a file with --data"));
  text.about = cat("licenses of this system, ", copyrights.size(),
                   " packages; the families GFDL and MPL are held out");
  return std::move(text);
}

meshard::Result<Text> text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return meshard::Error(meshard::ErrorCode::kNotFound, cat("[gpt] no file ", path));
  std::string all{std::istreambuf_iterator<char>(file), {}};
  if (all.size() < 10000)
    return meshard::Error(
        meshard::ErrorCode::kInvalidArgument,
        cat("[gpt] ", path, " has ", all.size(), " bytes; at least 10000 are needed"));
  std::size_t cut = all.size() / 10 * 9;
  return Text{all.substr(0, cut), all.substr(cut), cat(path, "; its last tenth is held out")};
}

std::vector<std::int32_t> windows_of_step(const std::string& text, std::int64_t count,
                                          std::int64_t length, std::uint64_t seed,
                                          std::int64_t step) {
  std::uint64_t state = seed * 0xD1B54A32D192ED03 + static_cast<std::uint64_t>(step);
  state = next_random(state);
  std::vector<std::int32_t> out;
  for (std::int64_t i = 0; i < count; ++i)
    append_window(out, text,
                  static_cast<std::int64_t>(next_random(state) %
                                            static_cast<std::uint64_t>(places_in(text, length))),
                  length);
  return out;
}

std::vector<std::int32_t> windows_in_order(const std::string& text, std::int64_t count,
                                           std::int64_t length, std::int64_t first) {
  std::vector<std::int32_t> out;
  for (std::int64_t i = first; i < first + count; ++i)
    append_window(out, text, i * length % places_in(text, length), length);
  return out;
}

}  // namespace gpt
