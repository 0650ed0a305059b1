// For tests that check exit statuses of processes, such as death tests: if SIGCHLD is ignored when
// the tests start, the system discards exit statuses. Including this file is sufficient.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>

namespace meshard {

/// Resets SIGCHLD to its default before the tests of a program.
class DefaultSigchld : public testing::Environment {
 public:
  void SetUp() override { ::signal(SIGCHLD, SIG_DFL); }
};

inline const auto* const default_sigchld = testing::AddGlobalTestEnvironment(new DefaultSigchld);

}  // namespace meshard
