#include "examples/serve/server.h"

#include <algorithm>
#include <utility>

#include "examples/gpt/text.h"

namespace serve {

using namespace meshard;

Server::Server(gpt::Trained model, const nn::AxisRules& rules, const Serving& serving)
    : model_(std::move(model.model)),
      context_(model.context),
      rules_(rules),
      serving_(serving),
      // The caches are donated: each step updates the previous step's caches in place.
      step_(jit(Step(&gpt::next_byte), {.name = "next_byte", .donate = {2}})) {
  if (context_ < 2 || serving.batch < 1 || serving.chunk < 1 || serving.count < 1)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[serve] a context of ", context_, " bytes (at least 2), a batch of ",
                    serving.batch, ", a chunk of ", serving.chunk, " and answers of ",
                    serving.count, " bytes (at least 1)"));
  serving_.chunk = std::min(serving.chunk, context_);
  places_.resize(static_cast<std::size_t>(serving.batch));
  caches_ = gpt::make_caches(model_, rules_, serving.batch, context_);
}

void Server::warm_up() {
  for (std::int64_t time : {std::int64_t{1}, serving_.chunk})
    for (std::int64_t read = 0; read < context_;) {
      read = gpt::positions_to_read(read + 1, context_);
      std::vector<std::int32_t> zeros(places_.size(), 0);
      // The cache entries that this writes are overwritten before they are read.
      run_step(std::vector<std::int32_t>(places_.size() * static_cast<std::size_t>(time)), zeros,
               zeros, read)
          .to_host();
    }
}

// The next valid request. Waits for one only if the server is idle.
std::optional<Server::Request> Server::taken(const Client& client) {
  while (std::optional<std::string> prompt = client.next(progress_.at_work == 0)) {
    std::int64_t number = requests_++;
    std::size_t size = prompt->size();
    if (size > 0 && size <= kLongestPrompt) {
      // Sampling depends on the request only, not on its batch slot or the other requests.
      std::uint64_t random =
          serving_.seed + static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u;
      return Request{number, std::move(*prompt), size, {}, random, Clock::now()};
    }
    ++progress_.refused;
    client.refused(number,
                   size == 0 ? std::string("the prompt is empty")
                             : cat("the prompt has ", size, " bytes, more than ", kLongestPrompt));
  }
  return std::nullopt;
}

// Assigns requests to free batch slots.
void Server::admit(const Client& client) {
  for (std::optional<Request>& place : places_) {
    if (place || ended_) continue;
    place = taken(client);
    if (!place) {
      ended_ = progress_.at_work == 0;
      return;
    }
    ++progress_.at_work;
  }
}

// The logits of the byte after each slot's newest byte. All rows of `bytes` have the same length.
Tensor Server::run_step(std::vector<std::int32_t> bytes, std::vector<std::int32_t> starts,
                        std::vector<std::int32_t> lasts, std::int64_t read) {
  auto on_devices = [&](std::vector<std::int32_t> values, Shape shape) {
    return rules_.mark(from_host(std::move(values), std::move(shape)), P("batch"));
  };
  std::int64_t time = static_cast<std::int64_t>(bytes.size()) / serving_.batch;
  auto [logits, caches] = step_(model_, on_devices(std::move(bytes), {serving_.batch, time}),
                                caches_, on_devices(std::move(starts), {serving_.batch}),
                                on_devices(std::move(lasts), {serving_.batch}), Static{read});
  caches_ = std::move(caches);
  return logits;
}

// Feeds the unread bytes of each request, at most one chunk; requests that are fully read get a
// byte.
void Server::step(const Client& client) {
  std::int64_t most = 1;
  for (std::optional<Request>& place : places_) {
    if (!place) continue;
    auto size = static_cast<std::int64_t>(place->bytes.size());
    place->window.fit(size, context_);
    most = std::max(most, size - place->window.first - place->window.read);
  }
  // Two programs for each number of positions that are read.
  std::size_t time = most > 1 ? static_cast<std::size_t>(serving_.chunk) : 1;
  std::int64_t last_position = 0;
  std::vector<std::int32_t> bytes(places_.size() * time), starts(places_.size()),
      lasts(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i]) continue;
    Request& request = *places_[i];
    auto from = static_cast<std::size_t>(request.window.first + request.window.read);
    std::size_t count = std::min(time, request.bytes.size() - from);
    for (std::size_t k = 0; k < count; ++k)
      bytes[i * time + k] = static_cast<unsigned char>(request.bytes[from + k]);
    starts[i] = static_cast<std::int32_t>(request.window.read);
    lasts[i] = static_cast<std::int32_t>(count) - 1;
    request.window.read += static_cast<std::int64_t>(count);
    last_position = std::max(last_position, request.window.read);
    progress_.read += static_cast<std::int64_t>(count);
  }
  HostArray scores = run_step(std::move(bytes), std::move(starts), std::move(lasts),
                              gpt::positions_to_read(last_position, context_))
                         .to_host();
  ++progress_.steps;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i]) continue;
    const gpt::Window& window = places_[i]->window;
    if (static_cast<std::size_t>(window.first + window.read) < places_[i]->bytes.size()) continue;
    auto row = scores.data<float>().subspan(i * gpt::kBytes, gpt::kBytes);
    if (add_byte(*places_[i], row, client)) places_[i].reset();
  }
}

// Returns true if the answer is complete.
bool Server::add_byte(Request& request, std::span<const float> logits, const Client& client) {
  if (request.bytes.size() == request.prompt) {
    ++progress_.begun;
    progress_.waited += std::chrono::duration<double>(Clock::now() - request.taken).count();
  }
  request.bytes += static_cast<char>(gpt::drawn(logits, serving_.temperature, request.random));
  ++progress_.written;
  client.byte(request.number, request.bytes.back());
  std::size_t size = request.bytes.size() - request.prompt;
  bool ended = !serving_.until.empty() && size >= serving_.until.size() &&
               request.bytes.ends_with(serving_.until);
  if (!ended && size < static_cast<std::size_t>(serving_.count)) return false;
  client.done(request.number);
  ++progress_.answered;
  --progress_.at_work;
  return true;
}

Progress Server::run(const Client& client) {
  while (true) {
    admit(client);
    if (progress_.at_work == 0) return progress_;
    step(client);
    if (client.progress) client.progress(progress_);
  }
}

std::string step_module(const gpt::Sizes& sizes, std::int64_t context, const nn::AxisRules& rules,
                        const Serving& serving) {
  gpt::Decoder model =
      nn::describe(rules, [&](nn::Maker& make) { return gpt::make_decoder(make, sizes); });
  auto cache = [&](const Tensor& weight) {
    Shape shape{serving.batch, weight.dim(1), context, weight.dim(2)};
    return abstract_tensor(TensorType{weight.dtype(), shape},
                           rules.sharding(P("batch", "key_heads", none, "head")));
  };
  gpt::Caches caches;
  for (const gpt::Block& block : model.blocks)
    caches.push_back({cache(block.attention.key), cache(block.attention.value)});
  auto row = [&](Shape shape) {
    return abstract_tensor(TensorType{DType::i32, std::move(shape)}, rules.sharding(P("batch")));
  };
  auto step = jit(&gpt::next_byte, {.name = "next_byte", .donate = {2}});
  return module_text(step, model, row({serving.batch, 1}), caches, row({serving.batch}),
                     row({serving.batch}), Static{context});
}

}  // namespace serve
