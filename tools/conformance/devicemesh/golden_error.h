// Errors as the golden files record them: `{"type": <Python exception>, "code": <condition>}`.
#pragma once
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// An error that only the reference reports; the adapter throws it.
class GoldenError : public std::exception {
 public:
  GoldenError(std::string type, std::string code)
      : type_(std::move(type)), code_(std::move(code)) {}
  Json json() const { return {{"type", type_}, {"code", code_}}; }
  const char* what() const noexcept override { return code_.c_str(); }

 private:
  std::string type_;
  std::string code_;
};

/// Translates our error into the golden files' form, according to the requested operation and the
/// message; `unclassified` if nothing matches.
Json golden_error(const Error& error, std::string_view operation = {});

/// `{"expect": work()}`, or `{"expect_error": ...}` if it throws an Error or a GoldenError.
Json answer_or_error(const std::function<Json()>& work);

/// Answers an input. The input's `fn` names the function.
using AnswerFunction = std::function<Json(const Json& input)>;
using Functions = std::map<std::string, AnswerFunction>;

/// The result or error of the function that the input names; null if there is none.
Json answer_by_name(const Functions& functions, const Json& input);

}  // namespace meshard::conformance
