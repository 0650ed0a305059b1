#include "examples/llm/text/decoder.h"

#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "examples/llm/text/normalizer.h"
#include "examples/llm/text/pre_tokenizer.h"
#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const auto& token : tokens) text += token;
  return text;
}

std::vector<std::string> byte_level(std::vector<std::string> tokens) {
  static const std::unordered_map<std::string, char> bytes = [] {
    std::unordered_map<std::string, char> result;
    for (std::size_t byte = 0; byte < 256; ++byte)
      result[byte_characters()[byte]] = static_cast<char>(byte);
    return result;
  }();
  std::string text;
  for (const auto& token : tokens) {
    std::string part;
    for (std::size_t at = 0; at < token.size();) {
      const std::size_t length = utf8_length(token[at]);
      const auto found = bytes.find(token.substr(at, length));
      if (found == bytes.end()) {  // an added token, which is not written in these characters
        part = token;
        break;
      }
      part += found->second;
      at += length;
    }
    text += part;
  }
  return {replace_invalid_utf8(text)};
}

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

std::vector<std::string> byte_fallback(std::vector<std::string> tokens) {
  std::vector<std::string> result;
  std::string bytes;
  const auto flush = [&] {
    if (valid_utf8(bytes)) {
      if (!bytes.empty()) result.push_back(bytes);
    } else {
      for (std::size_t i = 0; i < bytes.size(); ++i) result.emplace_back("\uFFFD");
    }
    bytes.clear();
  };
  for (auto& token : tokens) {
    if (token.size() == 6 && token.starts_with("<0x") && token.ends_with('>')) {
      const int high = hexadecimal(token[3]), low = hexadecimal(token[4]);
      if (high >= 0 && low >= 0) {
        bytes.push_back(static_cast<char>(high * 16 + low));
        continue;
      }
    }
    flush();
    result.push_back(std::move(token));
  }
  flush();
  return result;
}

Decoder make_strip(const nlohmann::json& description) {
  const auto content = description.at("content").get<std::string>();
  const auto start = description.at("start").get<std::size_t>();
  const auto stop = description.at("stop").get<std::size_t>();
  if (content.empty()) throw std::invalid_argument("[tokenizer.json] Strip: the content is empty");
  return [=](std::vector<std::string> tokens) {
    for (auto& token : tokens) {
      for (std::size_t i = 0; i < start && token.starts_with(content); ++i)
        token.erase(0, content.size());
      for (std::size_t i = 0; i < stop && token.ends_with(content); ++i)
        token.erase(token.size() - content.size());
    }
    return tokens;
  };
}

Decoder make_metaspace_decoder(const nlohmann::json& description) {
  const auto replacement = description.at("replacement").get<std::string>();
  const std::string scheme = description.value(
      "prepend_scheme", description.value("add_prefix_space", true) ? "always" : "never");
  return [replacement, strip = scheme != "never"](std::vector<std::string> tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string text;
      for (std::size_t at = 0; at < tokens[i].size();) {
        const std::size_t length = utf8_length(tokens[i][at]);
        const std::string point = tokens[i].substr(at, length);
        at += length;
        if (point != replacement) {
          text += point;
        } else if (i != 0 || !strip) {
          text += ' ';
        }
      }
      tokens[i] = std::move(text);
    }
    return tokens;
  };
}

}  // namespace

Decoder make_decoder(const nlohmann::json& description) {
  if (description.is_null())
    return [](std::vector<std::string> tokens) {
      for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
      return tokens;
    };
  const auto type = description.at("type").get<std::string>();
  if (type == "ByteLevel") return byte_level;
  if (type == "ByteFallback") return byte_fallback;
  if (type == "Strip") return make_strip(description);
  if (type == "Metaspace") return make_metaspace_decoder(description);
  if (type == "Fuse")
    return [](std::vector<std::string> tokens) { return std::vector{joined(tokens)}; };
  if (type == "Replace")
    return [replace = make_replacement(description.at("pattern"), description.at("content"))](
               std::vector<std::string> tokens) {
      for (auto& token : tokens) token = replace(token);
      return tokens;
    };
  if (type == "Sequence") {
    std::vector<Decoder> parts;
    for (const auto& part : description.at("decoders")) parts.push_back(make_decoder(part));
    return [parts = std::move(parts)](std::vector<std::string> tokens) {
      for (const auto& part : parts) tokens = part(std::move(tokens));
      return tokens;
    };
  }
  throw std::invalid_argument("[tokenizer.json] unsupported decoder \"" + type + "\"");
}

}  // namespace llm
