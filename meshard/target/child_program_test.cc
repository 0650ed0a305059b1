#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "meshard/target/compile_workers.h"
#include "tests/support/exit_statuses.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

struct ChildRun {
  std::vector<std::string> arguments = {};
  std::chrono::milliseconds time_limit{0};
  std::function<void(std::string_view line)> on_line = {};
  std::function<void()> on_tick = {};
};

ChildRun shell(std::string script, int seconds = 60) {
  ChildRun options;
  options.arguments = {"/bin/sh", "-c", std::move(script)};
  options.time_limit = std::chrono::seconds(seconds);
  return options;
}

Result<ChildEnd> run_child_program(const ChildRun& options) {
  MESHARD_ASSIGN_OR_RETURN(ChildProgram child, ChildProgram::start(options.arguments));
  ChildWatch watch{.time_limit = options.time_limit, .on_line = {}, .on_tick = options.on_tick};
  watch.on_line = [&](std::string_view line) {
    if (options.on_line) options.on_line(line);
    return false;
  };
  child.watch(watch);
  return child.end();
}

TEST(ChildProgram, LinesLogAndExitCode) {
  ChildRun options = shell("echo one; echo two; printf words >&2; printf rest; exit 3");
  std::vector<std::string> lines;
  options.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  ChildEnd end = run_child_program(options).value();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.log, "words");
  EXPECT_EQ(lines, (std::vector<std::string>{"one", "two"}));
}

TEST(ChildProgram, ASignal) {
  ChildEnd end = run_child_program(shell("kill -SEGV $$")).value();
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(end.exit_code, -1);
}

// The shell's own child holds the pipes and ignores TERM, INT and HUP.
TEST(ChildProgram, NoProcessOfTheGroupIsLeft) {
  std::string number;
  auto remember = [&](std::string_view line) { number = line; };
  auto is_gone = [&] {  // a killed orphan may be a zombie for a moment
    for (int i = 0; i < 200 && ::kill(std::stoi(number), 0) == 0; ++i) ::usleep(20000);
    return ::kill(std::stoi(number), 0) != 0;
  };
  ChildRun ends = shell("(trap '' TERM INT HUP; sleep 1000) & echo $!");
  ends.on_line = remember;
  EXPECT_EQ(run_child_program(ends).value().exit_code, 0);
  EXPECT_TRUE(is_gone()) << number;

  ChildRun hangs = shell("(trap '' TERM INT HUP; sleep 1000) & echo $!; wait", 1);
  hangs.on_line = remember;
  EXPECT_TRUE(run_child_program(hangs).value().timed_out);
  EXPECT_TRUE(is_gone()) << number;
}

TEST(ChildProgram, AConversation) {
  ChildProgram child =
      ChildProgram::start({"/bin/sh", "-c",
                           "while read line; do echo \"about $line\"; echo \"log $line\" >&2; "
                           "echo done; echo late; done; exit 4"})
          .value();
  std::vector<std::string> lines;
  ChildWatch watch{.time_limit = std::chrono::seconds(60), .on_line = {}, .on_tick = {}};
  watch.on_line = [&](std::string_view line) {
    lines.emplace_back(line);
    return line == "done";
  };
  for (std::string word : {"one", "two"}) {
    child.write(word + "\n").value();
    EXPECT_EQ(child.watch(watch), ChildPause::kLine);
    EXPECT_EQ(child.take_log(), "log " + word + "\n");
  }
  EXPECT_EQ(lines, (std::vector<std::string>{"about one", "done", "late", "about two", "done"}));
  ChildWatch short_watch{.time_limit = std::chrono::milliseconds(10), .on_line = {}, .on_tick = {}};
  EXPECT_EQ(child.watch(short_watch), ChildPause::kTimeLimit);
  EXPECT_TRUE(child.end().timed_out);
}

TEST(ChildProgram, WritingToOneThatHasEnded) {
  ChildProgram child =
      ChildProgram::start({"/bin/sh", "-c", "exec <&-; echo closed; exit 5"}).value();
  ChildWatch watch{.time_limit = std::chrono::seconds(60), .on_line = {}, .on_tick = {}};
  EXPECT_EQ(child.watch(watch), ChildPause::kEnded);
  EXPECT_FALSE(child.write("a line\n").ok());  // and no SIGPIPE
  EXPECT_EQ(child.end().exit_code, 5);
}

// A host program that ignores SIGCHLD, as daemons do: the system then reaps its children.
class IgnoredSigchld {
 public:
  IgnoredSigchld() : previous_(::signal(SIGCHLD, SIG_IGN)) {}
  ~IgnoredSigchld() { ::signal(SIGCHLD, previous_); }

 private:
  void (*previous_)(int);
};

TEST(ChildProgram, WithoutAStatusTheRestIsKept) {
  IgnoredSigchld ignored;
  ChildRun options =
      shell("echo line; echo words >&2; (trap '' TERM; sleep 1000) & echo $!; exit 3");
  std::vector<std::string> lines;
  options.on_line = [&](std::string_view line) { lines.emplace_back(line); };
  ChildEnd end = run_child_program(options).value();
  EXPECT_TRUE(end.status_lost);
  EXPECT_EQ(end.exit_code, -1);
  EXPECT_EQ(end.signal, 0);
  EXPECT_FALSE(end.timed_out);
  EXPECT_EQ(end.log, "words\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "line");
  pid_t left = std::stoi(lines[1]);
  for (int i = 0; i < 500 && ::kill(left, 0) == 0; ++i) ::usleep(20000);
  EXPECT_NE(::kill(left, 0), 0) << "a process of the group was left";
}

TEST(ChildProgram, ATimeLimitHoldsWhereSigchldIsIgnored) {
  IgnoredSigchld ignored;
  ChildEnd end = run_child_program(shell("sleep 1000", 1)).value();
  EXPECT_TRUE(end.timed_out);
  EXPECT_FALSE(end.status_lost);
}

TEST(ChildProgram, ItsInputEndsOnlyWithUs) {
  EXPECT_TRUE(run_child_program(shell("cat", 1)).value().timed_out);
}

TEST(ChildProgram, ClosedPipesAreNoEnd) {
  ChildEnd end = run_child_program(shell("exec >&- 2>&-; sleep 0.3; exit 7")).value();
  EXPECT_EQ(end.exit_code, 7);
}

TEST(ChildProgram, MuchOutputIsCutInTheMiddle) {
  ChildEnd end =
      run_child_program(shell("yes 0123456789abcde | head -c 4000000 >&2; echo last >&2")).value();
  EXPECT_LT(end.log.size(), 800000u);
  EXPECT_NE(end.log.find("bytes omitted"), std::string::npos);
  EXPECT_TRUE(end.log.ends_with("last\n"));
  EXPECT_TRUE(end.log.starts_with("0123456789abcde\n"));
}

TEST(ChildProgram, WhatCannotBeStarted) {
  ChildRun options;
  options.arguments = {"/no/such/program"};
  EXPECT_TRUE(throws_error([&] { run_child_program(options).value(); }, ErrorCode::kUnavailable,
                           {"/no/such/program", "No such file"}));
}

TEST(BoundedText, KeepsTheEnds) {
  BoundedText text(4, 3);
  text.append("ab");
  text.append("cdef");
  EXPECT_EQ(text.text(), "abcdef");
  text.append("ghijklmnopq");
  EXPECT_EQ(text.text(), "abcd\n... 10 bytes omitted ...\nopq");
}

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
