// Matchers for errors: the message must say what was wrong, with the values.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "meshard/base/error.h"

namespace meshard {

/// Passes if `action` throws an Error with this code whose what() contains all of `parts`.
template <class Action>
::testing::AssertionResult throws_error(Action&& action, ErrorCode code,
                                        const std::vector<std::string>& parts) {
  try {
    action();
  } catch (const Error& error) {
    if (error.code() != code)
      return ::testing::AssertionFailure()
             << "wrong code " << static_cast<int>(error.code()) << ": " << error.what();
    for (const std::string& part : parts)
      if (std::string(error.what()).find(part) == std::string::npos)
        return ::testing::AssertionFailure() << "\"" << part << "\" is not in: " << error.what();
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "no error was thrown";
}

}  // namespace meshard
