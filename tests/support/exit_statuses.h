// For tests that look at the exit statuses of processes, as death tests do: they may be started
// where SIGCHLD is ignored, and then the system keeps none. Including this is enough.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>

namespace meshard {

/// Gives SIGCHLD its default before the tests of a program.
class DefaultSigchld : public testing::Environment {
 public:
  void SetUp() override { ::signal(SIGCHLD, SIG_DFL); }
};

inline const auto* const default_sigchld = testing::AddGlobalTestEnvironment(new DefaultSigchld);

}  // namespace meshard
