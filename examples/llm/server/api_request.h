#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/llm/server/scheduler.h"
#include "examples/llm/text/chat_template.h"
#include "examples/llm/text/tokenizer.h"

namespace llm {

/// What a request may ask for, and how its text becomes tokens.
struct ApiOptions {
  std::string model;                  ///< the name that requests use
  std::int64_t max_tokens = 0;        ///< of one answer; 0: as many as the context holds
  std::int64_t choices = 16;          ///< answers of one request
  double request_seconds = 600;       ///< until an answer ends with an error
  std::set<std::int32_t> end_tokens;  ///< that end an answer
  ChatTemplate chat_template;         ///< empty: /v1/chat/completions is refused
};

/// A request that is refused, with the status and the type of OpenAI's API.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, std::string type, const std::string& message)
      : std::runtime_error(message), status_(status), type_(std::move(type)) {}
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] const std::string& type() const { return type_; }

 private:
  int status_;
  std::string type_;
};

/// A request to /v1/completions or /v1/chat/completions.
struct ApiRequest {
  bool chat = false;
  bool stream = false;
  bool include_usage = false;              ///< a streamed answer ends with the usage
  std::vector<GenerationRequest> answers;  ///< n for each prompt
  std::int64_t prompts = 1;
};

/// Reads a body. Fields that are unknown or have no effect here are refused by name.
/// @error ApiError
[[nodiscard]] ApiRequest parse_api_request(const std::string& body, bool chat,
                                           const Tokenizer& tokenizer, const RunnerLimits& limits,
                                           const ApiOptions& options);

}  // namespace llm
