// Many answers at once: one program runs step after step on a batch, and each place of the batch
// belongs to one request until that is answered.
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
  std::int64_t batch = 8;    ///< places
  std::int64_t chunk = 16;   ///< bytes of a prompt that a step reads at most
  std::int64_t count = 100;  ///< bytes of an answer at most
  std::string until = {};    ///< bytes that end an answer before; empty: none
  double temperature = 0.5;
  std::uint64_t seed = 1;
};

/// What has been done so far.
struct Progress {
  std::int64_t steps = 0, read = 0, written = 0;                   ///< bytes
  std::int64_t begun = 0, answered = 0, refused = 0, at_work = 0;  ///< requests
  double waited = 0;  ///< seconds from taking a request to the first byte of its answer, summed
};

/// Where requests come from and answers go to. All are called on the thread that runs.
struct Client {
  /// A further prompt, if there is one now. `wait`: nothing else is to be done until one comes.
  /// @return none if there is none (yet)
  std::function<std::optional<std::string>(bool wait)> next;
  /// A byte of the answer to request `number`, which are counted from 0 as they came.
  std::function<void(std::int64_t number, char byte)> byte;
  std::function<void(std::int64_t number)> done;
  /// Instead of an answer: what is wrong with the request.
  std::function<void(std::int64_t number, const std::string& why)> refused;
  std::function<void(const Progress& progress)> progress = {};
};

class Server {
 public:
  /// @error invalid argument: a context of less than two bytes, or a batch, a chunk or a count of
  /// less than one.
  Server(gpt::Trained model, const meshard::nn::AxisRules& rules, const Serving& serving);

  /// Compiles what run() needs, so that the first request does not wait for it.
  void warm_up();
  /// Answers requests until there are no more. Refused is a prompt that is empty or has more than
  /// kLongestPrompt bytes.
  Progress run(const Client& client);

  static constexpr std::size_t kLongestPrompt = 1 << 16;

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    std::int64_t number = 0;
    std::string bytes;       // the prompt, then the answer
    std::size_t prompt = 0;  // how many of them are the prompt's
    gpt::Window window;
    std::uint64_t random = 0;
    Clock::time_point taken;
  };
  using Step = std::function<std::pair<meshard::Tensor, gpt::Caches>(
      const gpt::Gpt&, const meshard::Tensor&, const gpt::Caches&, const meshard::Tensor&,
      const meshard::Tensor&)>;

  void admit(const Client& client);
  std::optional<Request> taken(const Client& client);
  void step(const Client& client);
  meshard::Tensor run_step(std::vector<std::int32_t> bytes, std::vector<std::int32_t> starts,
                           std::vector<std::int32_t> lasts);
  bool add_byte(Request& request, std::span<const float> logits, const Client& client);

  gpt::Gpt model_;
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

/// The StableHLO module of the step that adds a byte to each answer, for `meshard explain`: of a
/// model of these sizes, which needs neither weights nor devices.
std::string step_module(const gpt::Sizes& sizes, std::int64_t context,
                        const meshard::nn::AxisRules& rules, const Serving& serving);

}  // namespace serve
