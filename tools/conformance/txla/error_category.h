// Which of the reference's errors an error of ours is.
#pragma once
#include <string>

#include "meshard/base/error.h"

namespace meshard::conformance {

/// The code that torch_xla's golden files have for the condition that meshard reports;
/// `unclassified` for any other.
std::string error_category(const Error& error);

}  // namespace meshard::conformance
