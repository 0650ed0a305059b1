#include "meshard/report/html.h"

#include <string_view>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/json_writer.h"
#include "meshard/report/json.h"

namespace meshard {
namespace {

#include "page_sources.inc"

// Escapes text for an HTML element: `&`, `<`, `>` and quotes. Replaces invalid UTF-8 and control
// characters, which HTML does not allow.
std::string html_text(std::string_view text) {
  std::string json, out;
  append_json_string(json, text);  // converts to valid UTF-8
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {
    char c = json[i];
    if (c == '\\') {
      c = json[++i];
      if (c == 'n' || c == 'r' || c == 't') c = c == 't' ? '\t' : '\n';
      if (c == 'u') {
        out += "\xEF\xBF\xBD";
        i += 4;
        continue;
      }
    }
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

// Makes JSON safe in a script element: `<` occurs only in strings, and must not start an end tag.
std::string script_safe(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string to_html(const ProgramReport& report) {
  std::string text = html_text(report.to_string());
  const std::pair<std::string_view, std::string> parts[] = {
      {"script_hash", std::string(kPageScriptHash)},
      {"style_hash", std::string(kPageStyleHash)},
      {"title", html_text(report.name())},
      {"style", std::string(kPageStyle)},
      {"text", std::move(text)},
      {"json", script_safe(to_json(report))},
      {"script", std::string(kPageScript)},
  };
  std::string page;
  std::string_view rest = kPageFrame;
  for (std::size_t begin = rest.find("{{"); begin != std::string_view::npos;
       begin = rest.find("{{")) {
    std::size_t close = rest.find("}}", begin);
    internal_check(close != std::string_view::npos, "the frame of the page ends in a name");
    std::string_view name = rest.substr(begin + 2, close - begin - 2);
    append(page, rest.substr(0, begin));
    for (const auto& part : parts)
      if (part.first == name) append(page, part.second);
    rest.remove_prefix(close + 2);
  }
  append(page, rest);
  return page;
}

}  // namespace meshard
