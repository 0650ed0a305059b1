// Errors as torch_xla's golden files record them: by the category of the condition.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/base/error.h"

namespace meshard::conformance {

/// An error of something that only the reference has, thrown by the code that stands in for it.
class ReferenceError : public Error {
 public:
  explicit ReferenceError(const std::string& category)
      : Error(ErrorCode::kInvalidArgument, category) {}
};

/// The code that torch_xla's golden files have for the condition that meshard reports;
/// `unclassified` for any other.
std::string error_category(const Error& error);

/// `{"expect": work()}`, or `{"expect_error": {"category", "message"}}` if it throws.
nlohmann::json answer_or_category(const std::function<nlohmann::json()>& work);

/// Where an answer and the recorded one differ; empty if they do not. Of errors the categories are
/// compared; a recorded `other` is any.
std::string answer_difference(const nlohmann::json& test, const nlohmann::json& answer);

}  // namespace meshard::conformance
