#include "examples/llm/text/chat_template.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/jinja_template.h"
#include "examples/llm/text/tokenizer.h"

namespace llm {
namespace {

/// The template among those of a tokenizer_config.json; empty if there is none.
std::string template_of(const nlohmann::json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return {};
  if (found->is_string()) return *found;
  for (const auto& entry : *found)
    if (entry.at("name") == "default") return entry.at("template");
  throw std::invalid_argument(
      "[chat template] tokenizer_config.json has several, none of them named \"default\"");
}

/// bos_token and the like, which are texts or objects with a "content".
nlohmann::json special_tokens(const nlohmann::json& config) {
  nlohmann::json tokens = nlohmann::json::object();
  for (const char* name : {"bos_token", "eos_token", "unk_token", "pad_token"}) {
    const auto found = config.find(name);
    if (found == config.end() || found->is_null()) continue;
    tokens[name] = found->is_object() ? found->at("content") : *found;
  }
  return tokens;
}

}  // namespace

ChatTemplate make_chat_template(const std::string& source, const nlohmann::json& tokens) {
  return [compiled = std::make_shared<jinja::Template>(source),
          tokens](const nlohmann::json& messages) {
    nlohmann::ordered_json variables = tokens;
    variables["messages"] = messages;
    variables["add_generation_prompt"] = true;
    variables["tools"] = nullptr;
    variables["documents"] = nullptr;
    return compiled->render(variables);
  };
}

ChatTemplate load_chat_template(const std::string& folder) {
  const std::filesystem::path root(folder);
  nlohmann::json config = nlohmann::json::object();
  if (std::filesystem::exists(root / "tokenizer_config.json"))
    config = read_json(root / "tokenizer_config.json");
  std::string source = template_of(config);
  if (std::ifstream file(root / "chat_template.jinja", std::ios::binary); file)
    source.assign(std::istreambuf_iterator<char>(file), {});
  if (source.empty()) return {};
  return make_chat_template(source, special_tokens(config));
}

}  // namespace llm
