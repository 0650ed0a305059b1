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

/// An error of an operation that only the reference has, thrown by the code that stands in for it.
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

/// Our error in the golden's words, by the operation that was asked for and what the message says;
/// `unclassified` where no word fits.
Json golden_error(const Error& error, std::string_view operation = {});

/// `{"expect": work()}`, or `{"expect_error": ...}` if it throws an Error or a GoldenError.
Json answer_or_error(const std::function<Json()>& work);

/// What answers an input, by the `fn` it names.
using Function = std::function<Json(const Json& input)>;
using Functions = std::map<std::string, Function>;

/// The answer, or error, of the function that the input names; null if there is none.
Json answer_by_name(const Functions& functions, const Json& input);

}  // namespace meshard::conformance
