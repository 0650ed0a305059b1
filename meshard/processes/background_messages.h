// Messages between processes that no thread of the program waits for.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "meshard/processes/communicator.h"

namespace meshard {

/// How messages in the background behave.
struct BackgroundMessagesOptions {
  /// Messages use `tags` consecutive tags from `first_tag` on, cyclically.
  int first_tag = 0, tags = 2048;
  /// How long receives may wait while no message at all is sent or received.
  std::chrono::milliseconds limit = std::chrono::minutes(10);
  /// Why nothing more comes from a process; nothing as long as it may. Called about once a second
  /// for each process that is waited for, on the thread of the messages.
  std::function<std::optional<Error>(int process)> failure_of = {};
  /// Called with the name of a message that has not arrived for a second, and with null after the
  /// next message is sent or received; on the thread of the messages.
  std::function<void(const std::string* what)> on_wait = {};
  /// Called once, on the thread of the messages, with the error that has ended all of them.
  std::function<void(const Error&)> on_failure = {};
};

/// Owner of a thread that sends and receives messages. Each pair of processes has an order of its
/// messages, which both sides must agree on: the order of the calls of next_tag_to() in one, and of
/// receive() in the other. When a message is sent, and when it arrives, has nothing to do with that
/// order. Thread-safe.
///
/// After the first error, everything that is received fails with the same error, because the
/// processes no longer agree on which message is next.
class BackgroundMessages {
 public:
  using Done = std::function<void(const Result<void>&)>;

  /// @pre the communicator lives longer. The thread starts with the first message.
  BackgroundMessages(ProcessCommunicator& communicator, BackgroundMessagesOptions options);
  /// Cancels pending receives. Messages that are being sent must be complete first.
  ~BackgroundMessages();
  BackgroundMessages(const BackgroundMessages&) = delete;
  BackgroundMessages& operator=(const BackgroundMessages&) = delete;

  /// The place of a message to `process` in the order of messages. Each must be followed by send().
  int next_tag_to(int process);
  /// Sends a message at its place. `keep` owns the memory until it has been sent.
  void send(const OutgoingMessage& message, std::shared_ptr<const void> keep);
  /// Receives the next message from `process`, and calls `done` on the thread of the messages. That
  /// must not wait.
  /// @param what is received, for errors: `f32[4,8] for stage 1`
  void receive(int process, void* data, std::size_t bytes, std::string what, Done done);
  /// Calls `work` on the thread of the messages. It must not wait.
  void run(std::function<void()> work);

  /// Ends everything with an error. Messages that are being sent are not interrupted. Nothing after
  /// the first time.
  void fail(const Error& error);
  /// The error that has ended everything.
  std::optional<Error> failure() const;

  /// Call it before the process ends or leaves the run. Waits until all messages with a place in
  /// the order are being sent, and cancels receives. No function is called afterward.
  void finish();

 private:
  struct Active;
  void work();
  bool poll();
  void say_wait(const std::string* what);
  void look_for_failures(std::chrono::steady_clock::time_point now);
  void end_receives(const Error& error);

  ProcessCommunicator& communicator_;
  const BackgroundMessagesOptions options_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::vector<std::function<void()>> tasks_;
  std::map<int, std::uint64_t> sent_to_, received_from_;
  std::size_t unsent_ = 0;  // places without a message
  std::optional<Error> failure_;
  bool is_finished_ = false, stops_ = false;
  std::thread thread_;

  // Of the thread.
  std::vector<std::unique_ptr<Active>> active_;
  std::chrono::steady_clock::time_point progress_{}, looked_{};
  bool says_it_waits_ = false;
};

}  // namespace meshard
