#include "examples/serve/server.h"

#include <algorithm>
#include <span>

#include "examples/gpt/sample.h"
#include "examples/gpt/text.h"

namespace serve {

using namespace meshard;

Server::Server(gpt::Gpt model, const nn::AxisRules& rules, const Serving& serving)
    : model_(std::move(model)),
      rules_(rules),
      serving_(serving),
      // The caches are given away: each step writes into those of the one before.
      step_(jit(Step(&gpt::next_byte), {.name = "next_byte", .donate = {2}})),
      places_(static_cast<std::size_t>(serving.batch)) {
  if (serving.count >= serving.length)
    throw Error(ErrorCode::kInvalidArgument,
                cat("[serve] an answer of ", serving.count,
                    " bytes leaves no room for a prompt in ", serving.length));
  for (const gpt::Block& block : model_.blocks)
    caches_.push_back(nn::make_cache(rules_, block.attention, serving.batch, serving.length));
}

Tensor Server::on_devices(std::vector<std::int32_t> values, Shape shape) const {
  return rules_.mark(from_host(std::move(values), std::move(shape)), P("batch"));
}

// Requests to free places. Only an idle server waits for one.
void Server::admit(const Client& client) {
  for (std::optional<Request>& place : places_) {
    if (place || ended_) continue;
    std::optional<std::string> prompt = client.next(progress_.at_work == 0);
    if (!prompt) {
      ended_ = progress_.at_work == 0;
      return;
    }
    auto room = static_cast<std::size_t>(serving_.length - serving_.count);
    if (prompt->empty()) *prompt = "\n";
    if (prompt->size() > room) prompt->erase(0, prompt->size() - room);
    std::size_t size = prompt->size();
    // Draws depend on the request alone, not on the place or the company.
    place = Request{requests_, std::move(*prompt), size, 0,
                    serving_.seed + static_cast<std::uint64_t>(requests_) * 0x9E3779B97F4A7C15u};
    ++requests_;
    ++progress_.at_work;
  }
}

// One byte more of every request: of its prompt, or drawn.
void Server::step(const Client& client) {
  std::vector<std::int32_t> bytes(places_.size(), 0), starts(places_.size(), 0);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i]) continue;
    bytes[i] = static_cast<unsigned char>(places_[i]->bytes[places_[i]->at]);
    starts[i] = static_cast<std::int32_t>(places_[i]->at);
  }
  auto [logits, caches] = step_(model_, on_devices(std::move(bytes), {serving_.batch, 1}), caches_,
                                on_devices(std::move(starts), {serving_.batch}));
  caches_ = std::move(caches);
  HostArray scores = logits.to_host();
  std::span<const float> all = scores.data<float>();
  ++progress_.steps;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i]) continue;
    Request& request = *places_[i];
    if (request.at < request.prompt) ++progress_.read;
    if (++request.at < request.bytes.size()) continue;  // the prompt goes on
    auto row = all.subspan(i * gpt::kBytes, gpt::kBytes);
    request.bytes += static_cast<char>(gpt::drawn(row, serving_.temperature, request.random));
    ++progress_.written;
    client.byte(request.number, request.bytes.back());
    if (request.bytes.size() - request.prompt < static_cast<std::size_t>(serving_.count)) continue;
    client.done(request.number);
    ++progress_.answered;
    --progress_.at_work;
    places_[i].reset();
  }
}

Progress Server::run(const Client& client) {
  while (true) {
    admit(client);
    if (progress_.at_work == 0) return progress_;
    step(client);
    if (client.progress) client.progress(progress_);
  }
}

std::string Server::module() const {
  return module_text(
      step_, model_, on_devices(std::vector<std::int32_t>(places_.size()), {serving_.batch, 1}),
      caches_, on_devices(std::vector<std::int32_t>(places_.size()), {serving_.batch}));
}

}  // namespace serve
