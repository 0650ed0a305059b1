#include "meshard/base/json_reader.h"

#include <charconv>
#include <unordered_set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/utf8.h"

namespace meshard {
namespace {

constexpr int kDeepestJson = 64;

bool is_digit_of_json(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

// Recursive-descent parser. Each read function starts at `at_` and returns false after recording an
// error.
class JsonText {
 public:
  JsonText(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  Result<JsonValue> whole() {
    JsonValue value;
    if (read_value(value, 0)) {
      skip_space();
      if (at_ == text_.size()) return value;
      fail("unexpected text after the value");
    }
    return wrong();
  }

  using OnMember = std::function<Result<void>(const std::string&, const JsonValue&)>;
  Result<void> members(const OnMember& on_member, JsonLimits limits) {
    std::optional<Error> refused;
    auto take_member = [&](std::string name) {
      JsonValue value;
      left_ = limits.values;
      if (!read_value(value, 1)) return false;
      if (Result<void> taken = on_member(name, value); !taken) {
        refused = taken.error();
        return fail("refused");
      }
      return true;
    };
    skip_space();
    if (at_ == text_.size() || text_[at_] != '{') {
      fail("expected an object");
      return wrong();
    }
    if (read_members(take_member)) {
      skip_space();
      if (at_ == text_.size()) return {};
      fail("unexpected text after the value");
    }
    return refused ? *refused : wrong();
  }

 private:
  Error wrong() const {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", place_, "] cannot parse JSON at byte ", wrong_at_, ": ", wrong_));
  }
  bool fail(std::string_view what) {
    wrong_ = what;
    wrong_at_ = at_;
    return false;
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }
  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return fail("expected a value");
    at_ += word.size();
    return true;
  }

  bool read_value(JsonValue& out, int depth) {
    skip_space();
    if (at_ == text_.size()) return fail("the text ends before a value");
    if (depth > kDeepestJson) return fail("nested too deeply");
    if (left_-- == 0) return fail("too many values");
    switch (text_[at_]) {
      case '{': return read_object(out, depth);
      case '[': return read_array(out, depth);
      case '"': out.kind = JsonValue::Kind::kString; return read_string(out.text);
      case 'n': return take_word("null");
      case 't':
      case 'f':
        out.kind = JsonValue::Kind::kBool;
        out.truth = text_[at_] == 't';
        return take_word(out.truth ? "true" : "false");
      default: return read_number(out);
    }
  }

  bool read_object(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kObject;
    return read_members([&](std::string name) {
      out.members.push_back({std::move(name), {}});
      return read_value(out.members.back().value, depth + 1);
    });
  }

  // `take_member` reads the value that follows a name.
  template <class TakeMember>
  bool read_members(TakeMember take_member) {
    ++at_;
    skip_space();
    if (take('}')) return true;
    std::unordered_set<std::string> names;
    while (true) {
      skip_space();
      std::string name;
      if (at_ == text_.size() || text_[at_] != '"') return fail("expected a member name in quotes");
      if (!read_string(name)) return false;
      if (!names.insert(name).second) return fail(cat("duplicate member name \"", name, "\""));
      skip_space();
      if (!take(':')) return fail("expected ':'");
      if (!take_member(std::move(name))) return false;
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return fail("expected ',' or '}'");
    }
  }

  bool read_array(JsonValue& out, int depth) {
    out.kind = JsonValue::Kind::kArray;
    ++at_;
    skip_space();
    if (take(']')) return true;
    while (true) {
      if (!read_value(out.elements.emplace_back(), depth + 1)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("expected ',' or ']'");
    }
  }

  bool read_string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20)
        return fail("unescaped control character in a string");
      if (c == '\\') {
        ++at_;
        if (!read_escape(out)) return false;
        continue;
      }
      std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) return fail("invalid UTF-8 in a string");
      out += text_.substr(at_, length);
      at_ += length;
    }
    return fail("the text ends inside a string");
  }

  bool read_escape(std::string& out) {
    if (at_ == text_.size()) return fail("the text ends inside a string");
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
    char letter = text_[at_++];
    if (std::size_t i = kLetters.find(letter); i != std::string_view::npos) {
      out += kMeaning[i];
      return true;
    }
    std::uint32_t code = 0, low = 0;
    if (letter != 'u') return fail("invalid escape sequence");
    if (!read_hex(code)) return false;
    if (code >= 0xDC00 && code < 0xE000) return fail("unpaired surrogate in a \\u escape");
    if (code >= 0xD800 && code < 0xDC00) {
      if (!take('\\') || !take('u')) return fail("unpaired surrogate in a \\u escape");
      if (!read_hex(low)) return false;
      if (low < 0xDC00 || low >= 0xE000) return fail("unpaired surrogate in a \\u escape");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool read_hex(std::uint32_t& out) {
    if (text_.size() - at_ < 4) return fail("the text ends inside a string");
    const char* first = text_.data() + at_;
    auto [last, wrong] = std::from_chars(first, first + 4, out, 16);
    if (wrong != std::errc() || last != first + 4)
      return fail("expected four hexadecimal digits after \\u");
    at_ += 4;
    return true;
  }

  bool read_digits() {
    if (at_ == text_.size() || !is_digit_of_json(text_[at_])) return fail("expected a digit");
    while (at_ < text_.size() && is_digit_of_json(text_[at_])) ++at_;
    return true;
  }

  bool read_number(JsonValue& out) {
    out.kind = JsonValue::Kind::kNumber;
    std::size_t begin = at_;
    bool negative = take('-');
    if (!negative && !is_digit_of_json(text_[at_])) return fail("expected a value");
    if (!take('0') && !read_digits()) return false;
    if (take('.') && !read_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!read_digits()) return false;
    }
    out.text = text_.substr(begin, at_ - begin);
    return true;
  }

  std::string_view text_, place_;
  std::size_t at_ = 0, wrong_at_ = 0;
  std::size_t left_ = static_cast<std::size_t>(-1);  // the number of values that may still be read
  std::string wrong_;
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const JsonMember& member : members)
    if (member.name == name) return &member.value;
  return nullptr;
}

std::optional<std::uint64_t> JsonValue::whole_number() const {
  if (kind != Kind::kNumber) return std::nullopt;
  std::uint64_t value = 0;
  auto [last, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || last != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<JsonValue> read_json(std::string_view text, std::string_view place) {
  return JsonText(text, place).whole();
}

Result<void> read_json_members(
    std::string_view text, std::string_view place,
    const std::function<Result<void>(const std::string& name, const JsonValue& value)>& on_member,
    JsonLimits limits) {
  return JsonText(text, place).members(on_member, limits);
}

}  // namespace meshard
