#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace llm {

/// Turns the "messages" of a chat into the text that the model continues.
/// @error std::invalid_argument if the model's template refuses them
using ChatTemplate = std::function<std::string(const nlohmann::json& messages)>;

/// The chat template of a downloaded folder: chat_template.jinja, or the "chat_template" of
/// tokenizer_config.json (of several, the one named "default"). Empty if the folder has none.
/// @error std::invalid_argument with the line of what is not supported (see jinja_template.h)
[[nodiscard]] ChatTemplate load_chat_template(const std::string& folder);

/// A template in Jinja. `tokens` are further variables, such as "bos_token".
[[nodiscard]] ChatTemplate make_chat_template(const std::string& source,
                                              const nlohmann::json& tokens);

}  // namespace llm
