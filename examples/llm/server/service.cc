#include "examples/llm/server/service.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json finish_reason(Finish finish) {
  if (finish == Finish::kStop) return "stop";
  if (finish == Finish::kLength) return "length";
  return nullptr;
}

}  // namespace

/// The answer to one request, which may have several texts. Its events come from the model's
/// thread.
class Service::Answer : public std::enable_shared_from_this<Answer> {
 public:
  Answer(Service& service, const ApiRequest& request, std::shared_ptr<HttpReply> reply)
      : scheduler_(service.scheduler_),
        tokenizer_(service.tokenizer_),
        model_(service.options_.model),
        metrics_(service.metrics_),
        reply_(std::move(reply)),
        chat_(request.chat),
        stream_(request.stream),
        include_usage_(request.include_usage),
        id_((chat_ ? "chatcmpl-" : "cmpl-") + std::to_string(++service.next_)),
        choices_(request.answers.size()),
        left_(request.answers.size()) {
    ++metrics_->open;
    const std::size_t n = request.answers.size() / static_cast<std::size_t>(request.prompts);
    for (std::size_t i = 0; i < request.answers.size(); i += n)
      prompt_tokens_ += static_cast<std::int64_t>(request.answers[i].prompt.size());
  }
  ~Answer() { --metrics_->open; }
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  /// @error QueueFull, std::invalid_argument; then nothing goes on
  void start(std::vector<GenerationRequest> requests) {
    try {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const auto id = scheduler_->submit(
            std::move(requests[i]),
            [self = shared_from_this(), i](const GenerationEvent& event) { self->take(i, event); });
        const std::lock_guard lock(mutex_);
        ids_.push_back(id);
      }
    } catch (...) {
      {
        const std::lock_guard lock(mutex_);
        done_ = true;
      }
      cancel();
      throw;
    }
    reply_->on_gone([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->metrics_->add("llm_disconnected_total", "");
      self->cancel();
    });
  }

 private:
  struct Choice {
    std::string text;
    std::vector<TokenLogprob> tokens;
    Finish finish = Finish::kNone;
    std::int64_t answer_tokens = 0, reused_tokens = 0;
    std::int64_t offset = 0;  ///< in the text, of the next token with log-probabilities
    bool begun = false;       ///< a first chunk was sent
  };

  void cancel() {
    const std::lock_guard lock(mutex_);
    for (const auto id : ids_) scheduler_->cancel(id);
  }

  void take(std::size_t index, const GenerationEvent& event) {
    {
      const std::lock_guard lock(mutex_);
      if (done_) return;
    }
    Choice& choice = choices_[index];
    choice.answer_tokens = event.answer_tokens;
    choice.reused_tokens = event.reused_tokens;
    choice.finish = event.finish;
    if (std::exchange(waiting_for_first_, false))
      metrics_->observe_seconds("llm_first_token_seconds", seconds_since(begin_));
    if (event.finish >= Finish::kTimeout) return fail(event);
    if (stream_) {
      send_chunk(index, event);
    } else {
      choice.text += event.text;
      choice.tokens.insert(choice.tokens.end(), event.tokens.begin(), event.tokens.end());
    }
    if (event.finish == Finish::kNone || --left_ > 0) return;
    metrics_->observe_seconds("llm_request_seconds", seconds_since(begin_));
    metrics_->add("llm_answers_total", "status=\"200\"");
    if (stream_) {
      if (include_usage_) {
        json last = head(true);
        last["choices"] = json::array();
        last["usage"] = usage();
        reply_->write("data: " + dump(last) + "\n\n");
      }
      reply_->write("data: [DONE]\n\n");
      reply_->end();
    } else {
      reply_->send(200, "application/json", dump(whole()));
    }
  }

  void fail(const GenerationEvent& event) {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    cancel();
    int status = 500;
    std::string message = "the model failed: " + event.error;
    if (event.finish == Finish::kTimeout) {
      status = 504;
      message = "the answer was not complete within the server's time limit";
    } else if (event.finish == Finish::kCancelled) {
      status = 503;
      message = "the server is shutting down";
    }
    metrics_->add("llm_answers_total", "status=\"" + std::to_string(status) + "\"");
    const std::string body = error_body(message, "server_error");
    if (stream_ && stream_begun_) {  // the status is sent already
      reply_->write("data: " + body + "\n\n");
      reply_->end();
    } else {
      reply_->send(status, "application/json", body);
    }
  }

  [[nodiscard]] json head(bool chunk) const {
    const std::string object =
        chat_ ? (chunk ? "chat.completion.chunk" : "chat.completion") : "text_completion";
    return {{"id", id_}, {"object", object}, {"created", created_}, {"model", model_}};
  }

  [[nodiscard]] json usage() const {
    std::int64_t answers = 0, reused = 0;
    for (const auto& choice : choices_) {
      answers += choice.answer_tokens;
      reused = std::max(reused, choice.reused_tokens);
    }
    return {{"prompt_tokens", prompt_tokens_},
            {"completion_tokens", answers},
            {"total_tokens", prompt_tokens_ + answers},
            {"prompt_tokens_details", {{"cached_tokens", reused}}}};
  }

  /// The text of a token alone. A token within a character has none; then, as the vocabulary writes
  /// it.
  [[nodiscard]] std::string text_of(std::int32_t token, bool& whole) const {
    std::string text = tokenizer_->decode({token}, false);
    whole = text.find("\uFFFD") == std::string::npos;
    return whole ? text : tokenizer_->token(token).value_or("");
  }

  [[nodiscard]] json shown(std::int32_t token, double logprob) const {
    bool whole = false;
    const std::string text = text_of(token, whole);
    json bytes;  // null for tokens within a character
    if (whole) bytes = std::vector<unsigned char>(text.begin(), text.end());
    return {{"token", text}, {"logprob", logprob}, {"bytes", bytes}};
  }

  json logprobs(Choice& choice, const std::vector<TokenLogprob>& tokens) const {
    if (tokens.empty()) return nullptr;
    if (chat_) {
      json content = json::array();
      for (const auto& token : tokens) {
        json entry = shown(token.token, token.logprob);
        entry["top_logprobs"] = json::array();
        for (const auto& [id, logprob] : token.top)
          entry["top_logprobs"].push_back(shown(id, logprob));
        content.push_back(std::move(entry));
      }
      return {{"content", std::move(content)}};
    }
    json result = {{"tokens", json::array()},
                   {"token_logprobs", json::array()},
                   {"top_logprobs", json::array()},
                   {"text_offset", json::array()}};
    for (const auto& token : tokens) {
      bool whole_text = false;
      const std::string text = text_of(token.token, whole_text);
      result["tokens"].push_back(text);
      result["token_logprobs"].push_back(token.logprob);
      json top = json::object();
      for (const auto& [id, logprob] : token.top) top[text_of(id, whole_text)] = logprob;
      result["top_logprobs"].push_back(std::move(top));
      result["text_offset"].push_back(choice.offset);
      choice.offset += static_cast<std::int64_t>(code_points(text).size());
    }
    return result;
  }

  void send_chunk(std::size_t index, const GenerationEvent& event) {
    Choice& choice = choices_[index];
    if (!std::exchange(stream_begun_, true)) reply_->begin_stream("text/event-stream");
    json chunk = head(true);
    json part = {{"index", index},
                 {"finish_reason", finish_reason(event.finish)},
                 {"logprobs", logprobs(choice, event.tokens)}};
    if (chat_) {
      part["delta"] = {{"content", event.text}};
      if (!std::exchange(choice.begun, true)) part["delta"]["role"] = "assistant";
    } else {
      part["text"] = event.text;
    }
    chunk["choices"] = json::array({std::move(part)});
    reply_->write("data: " + dump(chunk) + "\n\n");
  }

  json whole() {
    json answer = head(false);
    answer["choices"] = json::array();
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      json part = {{"index", i},
                   {"finish_reason", finish_reason(choice.finish)},
                   {"logprobs", logprobs(choice, choice.tokens)}};
      if (chat_) {
        part["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
      } else {
        part["text"] = choice.text;
      }
      answer["choices"].push_back(std::move(part));
    }
    answer["usage"] = usage();
    return answer;
  }

  Scheduler* scheduler_;
  const Tokenizer* tokenizer_;
  std::string model_;
  std::shared_ptr<Shared> metrics_;
  std::shared_ptr<HttpReply> reply_;
  bool chat_, stream_, include_usage_;
  std::string id_;
  std::time_t created_ = std::time(nullptr);
  Clock::time_point begin_ = Clock::now();
  std::int64_t prompt_tokens_ = 0;
  std::vector<Choice> choices_;
  std::size_t left_;
  bool stream_begun_ = false, waiting_for_first_ = true;
  std::mutex mutex_;  // of the following
  std::vector<std::uint64_t> ids_;
  bool done_ = false;
};

Service::Service(Scheduler& scheduler, const Tokenizer& tokenizer, ApiOptions options)
    : scheduler_(&scheduler), tokenizer_(&tokenizer), options_(std::move(options)) {}

void Service::refuse(const std::shared_ptr<HttpReply>& reply, int status, const std::string& type,
                     const std::string& message) {
  metrics_->add("llm_answers_total", "status=\"" + std::to_string(status) + "\"");
  reply->send(status, "application/json", error_body(message, type));
}

void Service::generate(const HttpRequest& request, bool chat,
                       const std::shared_ptr<HttpReply>& reply) {
  if (draining_) return refuse(reply, 503, "server_error", "the server is shutting down");
  try {
    ApiRequest parsed =
        parse_api_request(request.body, chat, *tokenizer_, scheduler_->limits(), options_);
    const auto answer = std::make_shared<Answer>(*this, parsed, reply);
    answer->start(std::move(parsed.answers));
  } catch (const ApiError& error) {
    refuse(reply, error.status(), error.type(), error.what());
  } catch (const QueueFull& error) {
    refuse(reply, 429, "rate_limit_error", error.what());
  } catch (const std::invalid_argument& error) {
    refuse(reply, 400, "invalid_request_error", error.what());
  }
}

std::string Service::metrics() const {
  const SchedulerCounts counts = scheduler_->counts();
  const auto number = [](std::int64_t count) { return static_cast<double>(count); };
  return metrics_->text({{"llm_sequences_total", number(counts.requests)},
                         {"llm_prompt_tokens_total", number(counts.prompt_tokens)},
                         {"llm_reused_prompt_tokens_total", number(counts.reused_tokens)},
                         {"llm_answer_tokens_total", number(counts.answer_tokens)},
                         {"llm_drafted_tokens_total", number(counts.drafted_tokens)},
                         {"llm_accepted_tokens_total", number(counts.accepted_tokens)},
                         {"llm_preemptions_total", number(counts.preemptions)},
                         {"llm_steps_total", number(counts.steps)}},
                        {{"llm_running_sequences", number(counts.running)},
                         {"llm_waiting_sequences", number(counts.waiting)},
                         {"llm_open_requests", static_cast<double>(open_requests())},
                         {"llm_pages", number(scheduler_->limits().pages)},
                         {"llm_pages_used", number(counts.pages_used)},
                         {"llm_pages_kept", number(counts.pages_kept)}});
}

void Service::handle(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const bool completions = request.path == "/v1/completions",
             chat = request.path == "/v1/chat/completions";
  const bool known = completions || chat || request.path == "/v1/models" ||
                     request.path == "/health" || request.path == "/metrics" ||
                     request.path == "/v1/models/" + options_.model;
  if (!known)
    return refuse(reply, 404, "not_found_error", "there is no " + request.path.substr(0, 200));
  const std::string method = completions || chat ? "POST" : "GET";
  if (request.method != method)
    return refuse(reply, 405, "invalid_request_error",
                  request.path + " is for " + method + " only");
  if (completions || chat) return generate(request, chat, reply);
  if (request.path == "/health") {
    const bool draining = draining_;
    return reply->send(draining ? 503 : 200, "application/json",
                       draining ? R"({"status":"draining"})" : R"({"status":"ok"})");
  }
  if (request.path == "/metrics") return reply->send(200, "text/plain; version=0.0.4", metrics());
  const json model = {{"id", options_.model},
                      {"object", "model"},
                      {"created", 0},
                      {"owned_by", "local"},
                      {"max_model_len", scheduler_->limits().context}};
  reply->send(
      200, "application/json",
      dump(request.path == "/v1/models" ? json{{"object", "list"}, {"data", json::array({model})}}
                                        : model));
}

void read_token(const std::string& token_file, ServeOptions& options) {
  if (token_file.empty()) return;
  std::ifstream file(token_file);
  if (!(file >> options.http.token))
    throw std::runtime_error("[server] the file of the token, " + token_file +
                             ", is empty or cannot be read");
}

void serve(Runner& runner, const Tokenizer& tokenizer, const ServeOptions& options,
           const std::function<void(std::uint16_t)>& started) {
  Scheduler scheduler(runner, tokenizer, options.scheduler);
  Service service(scheduler, tokenizer, options.api);
  HttpServer server(options.http,
                    [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
                      service.handle(request, reply);
                    });
  started(server.port());
  std::thread model([&] { scheduler.run(); });
  std::thread drain;
  std::atomic<bool> over{false};
  const auto finish = [&] {
    over = true;
    if (drain.joinable()) drain.join();
    scheduler.stop();
    model.join();
  };
  try {
    server.run([&] {
      service.drain();
      server.drain();  // it ends after the last answer
      drain = std::thread([&] {
        const auto end = Clock::now() + std::chrono::duration<double>(options.drain_seconds);
        while (!over && Clock::now() < end)
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (!over) server.stop();
      });
    });
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

}  // namespace llm
