// Errors in the form of torch_xla's golden files: the category of the condition.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "meshard/base/error.h"

namespace meshard::conformance {

/// An error that only the reference reports; the adapter throws it.
class ReferenceError : public Error {
 public:
  explicit ReferenceError(const std::string& category)
      : Error(ErrorCode::kInvalidArgument, category) {}
};

/// The golden files' category for the condition that meshard reports; `unclassified` if there is
/// none.
std::string error_category(const Error& error);

/// `{"expect": work()}`, or `{"expect_error": {"category", "message"}}` if it throws.
nlohmann::json answer_or_category(const std::function<nlohmann::json()>& work);

/// The difference between an answer and the recorded one; empty if there is none. Errors are
/// compared by category; the recorded category `other` matches any.
std::string answer_difference(const nlohmann::json& test, const nlohmann::json& answer);

}  // namespace meshard::conformance
