#include "meshard/target/child_group.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

namespace meshard {
namespace {

// A process that leads its own group, with one variable in its environment.
pid_t start_sleeper(std::string variable) {
  char program[] = "sleep", seconds[] = "1000";
  char* arguments[] = {program, seconds, nullptr};
  char* environment[] = {variable.data(), nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = 0;
  EXPECT_EQ(::posix_spawn(&process, "/bin/sleep", nullptr, &attributes, arguments, environment), 0);
  posix_spawnattr_destroy(&attributes);
  return process;
}

int signal_that_ended(pid_t process) {
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(ChildGroup, MarksDiffer) { EXPECT_NE(child_mark(), child_mark()); }

// The id of a group may have been reused for unrelated processes.
TEST(ChildGroup, OnlyMarkedProcessesAreEnded) {
  std::string mark = child_mark();
  pid_t stranger = start_sleeper(mark + "0");
  EXPECT_EQ(end_marked_processes(stranger, mark), 0);
  EXPECT_EQ(::waitpid(stranger, nullptr, WNOHANG), 0) << "a stranger was ended";
  ::kill(stranger, SIGTERM);
  EXPECT_EQ(signal_that_ended(stranger), SIGTERM);

  pid_t ours = start_sleeper(mark);
  EXPECT_EQ(end_marked_processes(ours + 1, mark), 0) << "a process of another group";
  EXPECT_GE(end_marked_processes(ours, mark), 1);
  ::kill(ours, SIGTERM);  // in case it was not ended
  EXPECT_EQ(signal_that_ended(ours), SIGKILL);
}

}  // namespace
}  // namespace meshard
