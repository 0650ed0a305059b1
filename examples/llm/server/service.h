#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "examples/llm/server/api_request.h"
#include "examples/llm/server/http_server.h"
#include "examples/llm/server/metrics.h"
#include "examples/llm/server/scheduler.h"

namespace llm {

/// OpenAI's API over a scheduler: /v1/completions, /v1/chat/completions, /v1/models, /health,
/// /metrics.
class Service {
 public:
  /// @pre scheduler and tokenizer outlive it
  Service(Scheduler& scheduler, const Tokenizer& tokenizer, ApiOptions options);

  /// Answers a request, now or when its tokens are there.
  void handle(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply);
  /// From now on, new requests get 503; those that were taken go on.
  void drain() { draining_ = true; }
  [[nodiscard]] std::size_t open_requests() const { return metrics_->open; }

 private:
  class Answer;
  struct Shared : Metrics {
    std::atomic<std::size_t> open{0};
  };

  void generate(const HttpRequest& request, bool chat, const std::shared_ptr<HttpReply>& reply);
  void refuse(const std::shared_ptr<HttpReply>& reply, int status, const std::string& type,
              const std::string& message);
  [[nodiscard]] std::string metrics() const;

  Scheduler* scheduler_;
  const Tokenizer* tokenizer_;
  ApiOptions options_;
  std::shared_ptr<Shared> metrics_ = std::make_shared<Shared>();
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> draining_{false};
};

struct ServeOptions {
  HttpOptions http;
  ApiOptions api;
  SchedulerOptions scheduler;
  double drain_seconds = 30;  ///< how long answers may go on after SIGTERM
};

/// Reads the access token of a file; does nothing without a name.
/// @error std::runtime_error if the file is empty
void read_token(const std::string& token_file, ServeOptions& options);

/// Serves until SIGTERM or SIGINT, then finishes the answers that were begun. `started` is called
/// with the port when the server listens.
/// @error std::runtime_error if it cannot listen
void serve(Runner& runner, const Tokenizer& tokenizer, const ServeOptions& options,
           const std::function<void(std::uint16_t)>& started);

}  // namespace llm
