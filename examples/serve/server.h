// Many answers at once: one program runs step after step on a batch, and each place of the batch
// belongs to one request until that is answered.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace serve {

struct Serving {
  std::int64_t batch = 8;     ///< places
  std::int64_t length = 512;  ///< bytes that a place holds
  std::int64_t count = 100;   ///< bytes of an answer
  double temperature = 0.7;
  std::uint64_t seed = 1;
};

/// What has been done so far.
struct Progress {
  std::int64_t steps = 0, read = 0, written = 0;  ///< bytes of prompts and of answers
  std::int64_t answered = 0, at_work = 0;         ///< requests
};

/// Where requests come from and answers go to. All are called on the thread that runs.
struct Client {
  /// A further prompt, if there is one now. `wait`: nothing else is to be done until one comes.
  /// @return none if there is none (yet)
  std::function<std::optional<std::string>(bool wait)> next;
  /// A byte of the answer to request `number`, which are counted from 0 as they came.
  std::function<void(std::int64_t number, char byte)> byte;
  std::function<void(std::int64_t number)> done;
  std::function<void(const Progress& progress)> progress = {};
};

class Server {
 public:
  Server(gpt::Gpt model, const meshard::nn::AxisRules& rules, const Serving& serving);

  /// Answers requests until there are no more. An empty prompt is one line break. Prompts are cut
  /// at the beginning so that the answer has room.
  Progress run(const Client& client);

  /// The StableHLO module of a step.
  std::string module() const;

 private:
  struct Request {
    std::int64_t number = 0;
    std::string bytes;       // the prompt, then the answer
    std::size_t prompt = 0;  // how many of them are the prompt's
    std::size_t at = 0;      // how many the model has seen
    std::uint64_t random = 0;
  };
  using Step = std::function<std::pair<meshard::Tensor, gpt::Caches>(
      const gpt::Gpt&, const meshard::Tensor&, const gpt::Caches&, const meshard::Tensor&)>;

  void admit(const Client& client);
  void step(const Client& client);
  meshard::Tensor on_devices(std::vector<std::int32_t> values, meshard::Shape shape) const;

  gpt::Gpt model_;
  meshard::nn::AxisRules rules_;
  Serving serving_;
  gpt::Caches caches_;
  meshard::Jit<Step> step_;
  std::vector<std::optional<Request>> places_;
  std::int64_t requests_ = 0;
  bool ended_ = false;
  Progress progress_;
};

}  // namespace serve
