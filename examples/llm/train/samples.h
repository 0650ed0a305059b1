// Training data: lines of JSON.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/meshard.h"

namespace llm {

/// The label of a token that is not learned.
inline constexpr std::int32_t kIgnored = -100;

/// Tokens, and for each the token that it should have been, or kIgnored: as `labels` of
/// transformers, so that the label of a token is compared with the prediction of the one before.
struct Sample {
  std::vector<std::int32_t> tokens, labels;
};

/// The tokens of a text.
using Tokenize = std::function<meshard::Result<std::vector<std::int32_t>>(std::string_view)>;

/// Reads lines of JSON, each an object with `input_ids` and perhaps `labels`; or `text`; or
/// `prompt` and `completion`, of which the completion is learned.
/// @param tokenize null: texts are an error
/// @error invalid argument, with the line's number: another form; tokens outside of the vocabulary;
/// an empty sample
meshard::Result<std::vector<Sample>> read_samples(const std::string& path, std::int64_t vocabulary,
                                                  const Tokenize& tokenize);

/// The rows of a step, each of `length` tokens: cut off, or padded with 0 and kIgnored.
struct Batch {
  std::vector<std::int32_t> tokens, labels;
};

/// The batch of a step: each epoch takes all samples in another order, which follows from the seed.
/// The same in every run, so that a resumed training continues where it was.
/// @pre there are samples; `rows` and `length` are positive
Batch batch_of_step(const std::vector<Sample>& samples, std::int64_t rows, std::int64_t length,
                    std::uint64_t seed, std::int64_t step);

}  // namespace llm
