#include "examples/llm/server/api_request.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace llm {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& message) {
  throw ApiError(400, "invalid_request_error", message);
}

/// The fields of a body. Each is read once; what nobody read is an error.
class Fields {
 public:
  explicit Fields(const json& body) : body_(body) {
    if (!body.is_object()) refuse("the body is not a JSON object");
  }

  /// Null if the field is missing or null.
  const json& take(const std::string& name) {
    static const json null;
    known_.insert(name);
    const auto found = body_.find(name);
    return found == body_.end() ? null : *found;
  }
  double number(const std::string& name, double fallback, double low, double high) {
    const json& value = take(name);
    if (value.is_null()) return fallback;
    if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high))
      refuse(name + " is " + shown(value) + "; it must be a number from " + shown(low) + " to " +
             shown(high));
    return value.get<double>();
  }
  std::int64_t integer(const std::string& name, std::int64_t fallback, std::int64_t low,
                       std::int64_t high) {
    const json& value = take(name);
    if (value.is_null()) return fallback;
    if (!value.is_number_integer() || value < low || value > high)
      refuse(name + " is " + shown(value) + "; it must be an integer from " + std::to_string(low) +
             " to " + std::to_string(high));
    return value.get<std::int64_t>();
  }
  bool boolean(const std::string& name, bool fallback) {
    const json& value = take(name);
    if (value.is_null()) return fallback;
    if (!value.is_boolean()) refuse(name + " is " + shown(value) + "; it must be true or false");
    return value.get<bool>();
  }
  /// A field that only has the value that changes nothing.
  void only(const std::string& name, const std::vector<json>& allowed, const std::string& why) {
    const json& value = take(name);
    if (value.is_null() || std::find(allowed.begin(), allowed.end(), value) != allowed.end())
      return;
    refuse(name + " is " + shown(value) + "; " + why);
  }
  void finish() const {
    for (const auto& [name, value] : body_.items())
      if (!known_.contains(name) && !value.is_null())
        refuse("the field \"" + name + "\" is not supported");
  }

  static std::string shown(const json& value) {
    std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
    if (text.size() > 100) text = text.substr(0, 100) + "...";
    return text;
  }

 private:
  const json& body_;
  std::set<std::string> known_;
};

std::vector<std::string> stops_of(Fields& fields) {
  const json& value = fields.take("stop");
  std::vector<std::string> stops;
  if (value.is_null()) return stops;
  const json list = value.is_array() ? value : json::array({value});
  if (list.size() > 16)
    refuse("stop has " + std::to_string(list.size()) + " texts; at most 16 are allowed");
  for (const json& stop : list) {
    if (!stop.is_string() || stop.get<std::string>().empty())
      refuse("stop has " + Fields::shown(stop) +
             "; it must be a text or an array of texts that are not empty");
    stops.push_back(stop);
  }
  return stops;
}

SamplingOptions sampling_of(Fields& fields, const RunnerLimits& limits) {
  SamplingOptions sampling;
  sampling.temperature = fields.number("temperature", 1, 0, 100);
  sampling.top_p = fields.number("top_p", 1, 0, 1);
  sampling.top_k = fields.integer("top_k", 0, 0, limits.vocabulary);
  sampling.min_p = fields.number("min_p", 0, 0, 1);
  sampling.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  sampling.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  sampling.repetition_penalty = fields.number("repetition_penalty", 1, 0.01, 100);
  sampling.seed = static_cast<std::uint64_t>(fields.integer(
      "seed", static_cast<std::int64_t>(std::random_device()()), INT64_MIN, INT64_MAX));
  const json& bias = fields.take("logit_bias");
  if (bias.is_null()) return sampling;
  if (!bias.is_object()) refuse("logit_bias is " + Fields::shown(bias) + "; it must be an object");
  for (const auto& [token, value] : bias.items()) {
    if (token.empty() || token.size() > 9 ||
        token.find_first_not_of("0123456789") != std::string::npos ||
        std::stoll(token) >= limits.vocabulary)
      refuse("logit_bias has the token \"" + token.substr(0, 20) +
             "\"; the model has tokens 0 to " + std::to_string(limits.vocabulary - 1));
    if (!value.is_number() || std::abs(value.get<double>()) > 100)
      refuse("logit_bias of token " + token + " is " + Fields::shown(value) +
             "; it must be a number from -100 to 100");
    sampling.bias[std::stoi(token)] = value;
  }
  return sampling;
}

std::vector<std::int32_t> tokens_of(const json& prompt, const Tokenizer& tokenizer) {
  if (prompt.is_string()) return tokenizer.encode(prompt.get<std::string>(), true);
  std::vector<std::int32_t> tokens;
  for (const json& token : prompt) {
    if (!token.is_number_integer() || token < 0 || token > INT32_MAX)
      refuse("prompt has " + Fields::shown(token) +
             "; it must be a text, tokens, or an array of these");
    tokens.push_back(token);
  }
  return tokens;
}

std::vector<std::vector<std::int32_t>> prompts_of(Fields& fields, const Tokenizer& tokenizer,
                                                  std::int64_t most) {
  const json& prompt = fields.take("prompt");
  if (!prompt.is_string() && !prompt.is_array())
    refuse("prompt is " + Fields::shown(prompt) +
           "; it must be a text, tokens, or an array of these");
  if (prompt.is_string() || (!prompt.empty() && prompt[0].is_number()))
    return {tokens_of(prompt, tokenizer)};
  if (prompt.empty() || static_cast<std::int64_t>(prompt.size()) > most)
    refuse("prompt has " + std::to_string(prompt.size()) + " prompts; 1 to " +
           std::to_string(most) + " are allowed");
  std::vector<std::vector<std::int32_t>> prompts;
  for (const json& one : prompt) {
    if (!one.is_string() && !one.is_array())
      refuse("prompt has " + Fields::shown(one) +
             "; it must be a text, tokens, or an array of these");
    prompts.push_back(tokens_of(one, tokenizer));
  }
  return prompts;
}

std::vector<std::int32_t> chat_prompt(Fields& fields, const Tokenizer& tokenizer,
                                      const ApiOptions& options) {
  if (!options.chat_template) refuse("this model has no chat template; use /v1/completions");
  const json& messages = fields.take("messages");
  if (!messages.is_array() || messages.empty())
    refuse("messages must be an array that is not empty");
  json plain = json::array();
  for (const json& message : messages) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      refuse("messages has " + Fields::shown(message) + "; each must be an object with a role");
    json copy = message;
    const json content = message.value("content", json());
    if (content.is_array()) {  // parts, of which text is supported
      std::string text;
      for (const json& part : content) {
        if (!part.is_object() || part.value("type", "") != "text" ||
            !part.value("text", json()).is_string())
          refuse("a message has the part " + Fields::shown(part) + "; only text is supported");
        text += part["text"].get<std::string>();
      }
      copy["content"] = text;
    } else if (!content.is_string()) {
      refuse("a message has the content " + Fields::shown(content) + "; it must be a text");
    }
    plain.push_back(std::move(copy));
  }
  return tokenizer.encode(options.chat_template(plain), false);
}

std::int64_t logprobs_of(Fields& fields, bool chat) {
  if (!chat) return fields.integer("logprobs", -1, 0, 20);
  const bool wanted = fields.boolean("logprobs", false);
  const std::int64_t top = fields.integer("top_logprobs", 0, 0, 20);
  if (top > 0 && !wanted)
    refuse("top_logprobs is " + std::to_string(top) + "; it needs logprobs: true");
  return wanted ? top : -1;
}

void refuse_what_is_unsupported(Fields& fields) {
  const json& format = fields.take("response_format");
  if (!format.is_null() && format != json{{"type", "text"}})
    refuse("response_format is " + Fields::shown(format) +
           "; output constrained to JSON or a grammar is not supported");
  const std::string no_tools = "tools and functions are not supported";
  fields.only("tools", {json::array()}, no_tools);
  fields.only("functions", {json::array()}, no_tools);
  fields.only("tool_choice", {"none", "auto"}, no_tools);
  fields.only("function_call", {"none", "auto"}, no_tools);
  fields.only("best_of", {1}, "only 1 is supported");
  fields.only("echo", {false}, "the prompt is not part of the answer");
  fields.only("suffix", {""}, "text after the answer is not supported");
  for (const char* harmless : {"user", "metadata", "store", "service_tier"}) fields.take(harmless);
}

std::int64_t max_tokens_of(Fields& fields, bool chat, const RunnerLimits& limits) {
  const std::int64_t most = limits.context;
  std::int64_t wanted = fields.integer("max_tokens", chat ? 0 : 16, 1, most);
  if (chat) wanted = fields.integer("max_completion_tokens", wanted, 1, most);
  return wanted;
}

ApiRequest parse(const json& body, bool chat, const Tokenizer& tokenizer,
                 const RunnerLimits& limits, const ApiOptions& options) {
  Fields fields(body);
  const json& model = fields.take("model");
  if (!model.is_null() && model != options.model)
    throw ApiError(
        404, "not_found_error",
        "model is " + Fields::shown(model) + "; this server has \"" + options.model + "\"");
  ApiRequest request;
  request.chat = chat;
  refuse_what_is_unsupported(fields);
  request.stream = fields.boolean("stream", false);
  if (const json& more = fields.take("stream_options"); !more.is_null()) {
    Fields inner(more);
    request.include_usage = inner.boolean("include_usage", false);
    inner.finish();
  }
  GenerationRequest answer;
  answer.sampling = sampling_of(fields, limits);
  answer.stops = stops_of(fields);
  answer.logprobs = logprobs_of(fields, chat);
  if (!fields.boolean("ignore_eos", false)) answer.end_tokens = options.end_tokens;
  const std::int64_t max_tokens = max_tokens_of(fields, chat, limits);
  const std::int64_t n = fields.integer("n", 1, 1, options.choices);
  std::vector<std::vector<std::int32_t>> prompts;
  if (chat) {
    prompts.push_back(chat_prompt(fields, tokenizer, options));
  } else {
    prompts = prompts_of(fields, tokenizer, options.choices / n);
  }
  fields.finish();
  answer.deadline =
      std::chrono::steady_clock::now() +
      std::chrono::milliseconds(static_cast<std::int64_t>(options.request_seconds * 1000));
  request.prompts = static_cast<std::int64_t>(prompts.size());
  const std::uint64_t seed = answer.sampling.seed;
  for (auto& prompt : prompts) {
    answer.prompt = std::move(prompt);
    const std::int64_t room = limits.context - static_cast<std::int64_t>(answer.prompt.size());
    answer.max_tokens = max_tokens > 0 ? max_tokens : std::max<std::int64_t>(room, 1);
    if (options.max_tokens > 0) {
      if (max_tokens > options.max_tokens)
        refuse("max_tokens is " + std::to_string(max_tokens) + "; this server allows " +
               std::to_string(options.max_tokens));
      answer.max_tokens = std::min(answer.max_tokens, options.max_tokens);
    }
    for (std::int64_t i = 0; i < n; ++i) {
      answer.sampling.seed = seed + request.answers.size();
      request.answers.push_back(answer);
    }
  }
  return request;
}

}  // namespace

ApiRequest parse_api_request(const std::string& body, bool chat, const Tokenizer& tokenizer,
                             const RunnerLimits& limits, const ApiOptions& options) {
  // The parser is recursive only for its own stack of containers, but what reads the result is not.
  int depth = 0;
  const auto limit = [&](int level, json::parse_event_t, json&) {
    depth = std::max(depth, level);
    if (level > 32) refuse("the body has more than 32 levels");
    return true;
  };
  try {
    return parse(json::parse(body, limit), chat, tokenizer, limits, options);
  } catch (const json::exception& error) {
    refuse(std::string("the body is not JSON: ") + error.what());
  } catch (const std::invalid_argument& error) {
    refuse(error.what());
  }
}

}  // namespace llm
