#include "meshard/base/json_writer.h"

#include <cmath>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/utf8.h"

namespace meshard {
namespace {

void append_escape(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  auto code = static_cast<unsigned char>(c);
  out += "\\u00";
  out += kHex[code >> 4];
  out += kHex[code & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t i = 0;
  while (i < text.size()) {
    char c = text[i];
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\' || c == 0x7F) {
      append_escape(out, c);
      ++i;
      continue;
    }
    std::size_t length = utf8_length(text.substr(i));
    out += length == 0 ? std::string_view("\xEF\xBF\xBD") : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  out += '"';
}

void JsonWriter::new_line() {
  if (indent_ == 0) return;
  out_ += '\n';
  out_.append(indent_ * open_.size(), ' ');
}

void JsonWriter::separate() {
  if (!open_.back().empty) out_ += ',';
  open_.back().empty = false;
  new_line();
}

void JsonWriter::before_value() {
  internal_check(!done_, "JSON: more than one top-level value");
  if (open_.empty()) return;
  if (open_.back().closing == '}') {
    internal_check(have_key_, "JSON: a member without a key");
    have_key_ = false;
    return;
  }
  separate();
}

JsonWriter& JsonWriter::raw(std::string_view text) {
  before_value();
  out_ += text;
  done_ = open_.empty();
  return *this;
}

JsonWriter& JsonWriter::begin(char opening) {
  before_value();
  out_ += opening;
  open_.push_back({opening == '{' ? '}' : ']'});
  return *this;
}

JsonWriter& JsonWriter::end(char closing) {
  internal_check(!open_.empty() && open_.back().closing == closing && !have_key_,
                 "JSON: the end does not match the object or array that is open");
  bool empty = open_.back().empty;
  open_.pop_back();
  if (!empty) new_line();
  out_ += closing;
  done_ = open_.empty();
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  internal_check(!open_.empty() && open_.back().closing == '}' && !have_key_,
                 "JSON: a key outside an object");
  separate();
  append_json_string(out_, name);
  out_ += indent_ == 0 ? ":" : ": ";
  have_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  before_value();
  append_json_string(out_, text);
  done_ = open_.empty();
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  return std::isfinite(number) ? raw(cat(number)) : raw("null");
}

JsonWriter& JsonWriter::signed_value(std::int64_t number) { return raw(cat(number)); }
JsonWriter& JsonWriter::unsigned_value(std::uint64_t number) { return raw(cat(number)); }

std::string JsonWriter::text() && {
  internal_check(done_, "JSON: an object or array is still open");
  return std::move(out_);
}

}  // namespace meshard
