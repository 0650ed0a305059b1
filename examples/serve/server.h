// Continuous batching: one program runs step after step on a batch, and each batch slot belongs to
// one request until it is answered.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "examples/gpt/model.h"
#include "examples/gpt/sample.h"
#include "meshard/meshard.h"

namespace serve {

struct Serving {
  std::int64_t batch = 8;    ///< number of batch slots
  std::int64_t chunk = 16;   ///< maximum number of prompt bytes that one step reads
  std::int64_t count = 100;  ///< maximum number of bytes of an answer
  std::string until = {};    ///< a byte sequence that ends an answer early; empty: none
  double temperature = 0.5;
  std::uint64_t seed = 1;
};

/// Counters of the work done so far.
struct Progress {
  std::int64_t steps = 0, read = 0, written = 0;                   ///< bytes
  std::int64_t begun = 0, answered = 0, refused = 0, at_work = 0;  ///< requests
  double waited = 0;  ///< seconds from taking a request to its answer's first byte, summed
};

/// Callbacks for requests and answers, called on the thread that calls run().
struct Client {
  /// Returns the next prompt, if there is one now. With `wait`, may block, because the server is
  /// idle.
  /// @return none if there are no more prompts, or, without `wait`, none yet
  std::function<std::optional<std::string>(bool wait)> next;
  /// Receives a byte of the answer to request `number`; requests are numbered from 0 as they
  /// arrive.
  std::function<void(std::int64_t number, char byte)> byte;
  std::function<void(std::int64_t number)> done;
  /// Called instead of answering, with the reason why the request is invalid.
  std::function<void(std::int64_t number, const std::string& why)> refused;
  std::function<void(const Progress& progress)> progress = {};
};

class Server {
 public:
  /// @error invalid argument: a context of less than two bytes, or a batch, chunk or count of less
  /// than one.
  Server(gpt::Trained model, const meshard::nn::AxisRules& rules, const Serving& serving);

  /// Compiles the programs that run() needs, so that the first request does not wait for it.
  void warm_up();
  /// Answers requests until there are no more. Prompts that are empty or longer than kLongestPrompt
  /// bytes are refused.
  Progress run(const Client& client);

  static constexpr std::size_t kLongestPrompt = 1 << 16;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    std::int64_t number = 0;
    std::string bytes;       // the prompt, then the answer
    std::size_t prompt = 0;  // number of bytes of the prompt
    gpt::Window window;
    std::uint64_t random = 0;
    Clock::time_point taken;
  };
  using Step = std::function<std::pair<meshard::Tensor, gpt::Caches>(
      const gpt::Decoder&, const meshard::Tensor&, const gpt::Caches&, const meshard::Tensor&,
      const meshard::Tensor&, meshard::Static<std::int64_t>)>;

  void admit(const Client& client);
  std::optional<Request> taken(const Client& client);
  void step(const Client& client);
  meshard::Tensor run_step(std::vector<std::int32_t> bytes, std::vector<std::int32_t> starts,
                           std::vector<std::int32_t> lasts, std::int64_t read);
  bool add_byte(Request& request, std::span<const float> logits, const Client& client);

  gpt::Decoder model_;
  std::int64_t context_;
  meshard::nn::AxisRules rules_;
  Serving serving_;
  gpt::Caches caches_;
  meshard::Jit<Step> step_;
  std::vector<std::optional<Request>> places_;
  std::int64_t requests_ = 0;
  bool ended_ = false;
  Progress progress_;
};

/// The StableHLO module of the step that generates one byte per answer. For `meshard explain`: the
/// model has these sizes; neither weights nor devices are needed.
std::string step_module(const gpt::Sizes& sizes, std::int64_t context,
                        const meshard::nn::AxisRules& rules, const Serving& serving);

}  // namespace serve
