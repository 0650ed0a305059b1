#include "examples/gpt/model.h"

#include <algorithm>
#include <cmath>

namespace gpt {

using namespace meshard;

namespace {
const nn::Attending kAttending{.causal = true, .rotary = nn::Rotary{}};
const PartitionSpec kStream = P("batch", "time", none);  // of the values between layers

nn::Embedding make_bytes(nn::Maker& make, const Sizes& sizes) {
  return nn::make_embedding(make, kBytes, sizes.width, nn::init::normal(0.5));
}

Block make_block(nn::Maker& make, const Sizes& sizes) {
  // Layers that add to the residual stream start smaller in deeper models (Radford et al., 2019).
  auto into_stream = [&](std::int64_t inputs) {
    return nn::init::normal(1 / std::sqrt(static_cast<double>(2 * sizes.layers * inputs)));
  };
  Block block;
  block.attention_norm = nn::make_rms_norm(make, sizes.width);
  block.attention = nn::make_attention(make, sizes.width,
                                       {.heads = sizes.heads, .out = into_stream(sizes.width)});
  block.mlp_norm = nn::make_rms_norm(make, sizes.width);
  block.mlp = nn::make_gated_mlp(make, sizes.width, sizes.hidden,
                                 {.bias = false, .down = into_stream(sizes.hidden)});
  return block;
}

nn::Linear make_head(nn::Maker& make, const Sizes& sizes) {
  return nn::make_linear(
      make, sizes.width, kBytes,
      {.in = "embed", .out = "vocabulary", .bias = false, .weight = nn::init::normal(0.02)});
}
}  // namespace

Gpt make_gpt(nn::Maker& make, const Sizes& sizes) {
  Gpt model;
  model.bytes = make_bytes(make, sizes);
  model.blocks = nn::make_layers(make, sizes.layers,
                                 [&](nn::Maker& layer) { return make_block(layer, sizes); });
  model.norm = nn::make_rms_norm(make, sizes.width);
  model.head = make_head(make, sizes);
  return model;
}

Decoder make_decoder(nn::Maker& make, const Sizes& sizes) {
  Decoder model;
  model.bytes = make_bytes(make, sizes);
  for (std::int64_t i = 0; i < sizes.layers; ++i) model.blocks.push_back(make_block(make, sizes));
  model.norm = nn::make_rms_norm(make, sizes.width);
  model.head = make_head(make, sizes);
  return model;
}

Decoder decoder_of(const Gpt& model) {
  return {model.bytes, model.blocks.unstacked(), model.norm, model.head};
}

nn::AxisRules rules_for(const Mesh& mesh, bool sequence) {
  std::vector<nn::AxisRules::Rule> rules{
      {"batch", "data"}, {"heads", "model"}, {"key_heads", "model"}, {"hidden", "model"}};
  if (sequence) rules.push_back({"time", "model"});
  return nn::AxisRules(mesh, std::move(rules));
}

Tensor loss_of(const Gpt& model, const Tensor& windows, const nn::AxisRules& rules) {
  // In this order, as in gpt.py: C++ leaves that of arguments open.
  Tensor inputs = inputs_of(windows), targets = targets_of(windows);
  return cross_entropy(logits_of(model, inputs, rules), targets);
}

Tensor logits_of(const Gpt& model, const Tensor& bytes, const nn::AxisRules& rules) {
  return to_logits(model.norm, model.head,
                   through(model.blocks, embed(model.bytes, bytes, rules), rules));
}

Tensor inputs_of(const Tensor& windows) { return index(windows, {whole, range(0, -1)}); }
Tensor targets_of(const Tensor& windows) { return index(windows, {whole, range(1, none)}); }

Tensor embed(const nn::Embedding& table, const Tensor& bytes, const nn::AxisRules& rules) {
  return rules.mark(nn::embedding(table, bytes), kStream);
}

Tensor through(const nn::Layers<Block>& blocks, Tensor x, const nn::AxisRules& rules) {
  auto spread = [&](const Tensor& stream) { return rules.mark(stream, kStream); };
  for (const Block& block : blocks) {
    x = spread(x +
               nn::attention(block.attention, nn::rms_norm(block.attention_norm, x), kAttending));
    x = spread(x + nn::gated_mlp(block.mlp, nn::rms_norm(block.mlp_norm, x)));
  }
  return x;
}

Tensor to_logits(const nn::RmsNorm& norm, const nn::Linear& head, const Tensor& x) {
  return nn::linear(head, nn::rms_norm(norm, x));
}

Caches make_caches(const Decoder& model, const nn::AxisRules& rules, std::int64_t batch,
                   std::int64_t length) {
  Caches caches;
  for (const Block& block : model.blocks)
    caches.push_back(nn::make_cache(rules, block.attention, batch, length));
  return caches;
}

std::pair<Tensor, Caches> next_byte(const Decoder& model, const Tensor& bytes, const Caches& caches,
                                    const Tensor& start, const Tensor& last,
                                    Static<std::int64_t> read) {
  nn::Attending how = kAttending;
  how.read = read;
  Tensor x = nn::embedding(model.bytes, bytes);
  Caches next;
  for (std::size_t i = 0; i < model.blocks.size(); ++i) {
    const Block& block = model.blocks[i];
    auto [attended, cache] = nn::attention(block.attention, nn::rms_norm(block.attention_norm, x),
                                           caches.at(i), start, how);
    next.push_back(cache);
    x = x + attended;
    x = x + nn::gated_mlp(block.mlp, nn::rms_norm(block.mlp_norm, x));
  }
  // Selects each row's last byte by comparing positions: each device does this for its own rows.
  Tensor numbers = arange(bytes.dim(1));
  Tensor chosen = expand_dims(equal(reshape(last, {bytes.dim(0), 1}), numbers), 2);
  x = sum(where(chosen, x, 0.0), {1});
  return {nn::linear(model.head, nn::rms_norm(model.norm, x)), next};
}

std::int64_t positions_to_read(std::int64_t most, std::int64_t length) {
  std::int64_t read = 64;
  while (read < most) read *= 2;
  return std::min(read, length);
}

}  // namespace gpt
