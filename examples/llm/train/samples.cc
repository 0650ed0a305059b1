// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/train/samples.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "meshard/base/json_reader.h"

namespace llm {

using namespace meshard;

namespace {

Result<std::vector<std::int32_t>> integers_of(const JsonValue& value, std::string_view name) {
  std::vector<std::int32_t> numbers;
  for (const JsonValue& each : value.elements) {
    bool number = each.is(JsonValue::Kind::kNumber);
    std::int64_t found = 0;
    try {
      if (number) found = std::stoll(each.text);
    } catch (const std::exception&) {
      number = false;
    }
    if (!number || each.text != std::to_string(found) || found != static_cast<std::int32_t>(found))
      return Error(ErrorCode::kInvalidArgument, cat(name, " must be a list of 32-bit integers"));
    numbers.push_back(static_cast<std::int32_t>(found));
  }
  return numbers;
}

Result<std::vector<std::int32_t>> tokens_of(const JsonValue& value, std::string_view name,
                                            const Tokenize& tokenize) {
  if (!value.is(JsonValue::Kind::kString))
    return Error(ErrorCode::kInvalidArgument, cat(name, " must be a string"));
  if (!tokenize)
    return Error(ErrorCode::kInvalidArgument,
                 cat("has ", name, ", but there is no tokenizer: write input_ids"));
  return tokenize(value.text);
}

Result<Sample> sample_of(const JsonValue& object, const Tokenize& tokenize) {
  Sample sample;
  const JsonValue *ids = object.find("input_ids"), *labels = object.find("labels"),
                  *text = object.find("text"), *prompt = object.find("prompt"),
                  *completion = object.find("completion");
  if (ids) {
    MESHARD_ASSIGN_OR_RETURN(sample.tokens, integers_of(*ids, "input_ids"));
    sample.labels = sample.tokens;
    if (labels) {
      MESHARD_ASSIGN_OR_RETURN(sample.labels, integers_of(*labels, "labels"));
    }
    if (sample.labels.size() != sample.tokens.size())
      return Error(
          ErrorCode::kInvalidArgument,
          cat("has ", sample.tokens.size(), " input_ids, but ", sample.labels.size(), " labels"));
  } else if (text) {
    MESHARD_ASSIGN_OR_RETURN(sample.tokens, tokens_of(*text, "text", tokenize));
    sample.labels = sample.tokens;
  } else if (prompt && completion) {
    MESHARD_ASSIGN_OR_RETURN(sample.tokens, tokens_of(*prompt, "prompt", tokenize));
    MESHARD_ASSIGN_OR_RETURN(std::vector<std::int32_t> rest,
                             tokens_of(*completion, "completion", tokenize));
    sample.labels.assign(sample.tokens.size(), kIgnored);
    sample.labels.insert(sample.labels.end(), rest.begin(), rest.end());
    sample.tokens.insert(sample.tokens.end(), rest.begin(), rest.end());
  } else {
    return Error(ErrorCode::kInvalidArgument,
                 "must have input_ids; or text; or prompt and completion");
  }
  return sample;
}

Result<void> check(const Sample& sample, std::int64_t vocabulary) {
  if (sample.tokens.size() < 2)
    return Error(ErrorCode::kInvalidArgument, "has fewer than two tokens");
  for (std::int32_t token : sample.tokens)
    if (token < 0 || token >= vocabulary)
      return Error(ErrorCode::kInvalidArgument,
                   cat("has token ", token, "; the vocabulary has ", vocabulary));
  for (std::int32_t label : sample.labels)
    if (label != kIgnored && (label < 0 || label >= vocabulary))
      return Error(ErrorCode::kInvalidArgument,
                   cat("has label ", label, "; the vocabulary has ", vocabulary));
  return {};
}

}  // namespace

Result<std::vector<Sample>> read_samples(const std::string& path, std::int64_t vocabulary,
                                         const Tokenize& tokenize) {
  MESHARD_ASSIGN_OR_RETURN(std::string text, read_whole_file(path));
  std::vector<Sample> samples;
  std::size_t line = 0, first = 0;
  while (first < text.size()) {
    std::size_t end = std::min(text.find('\n', first), text.size());
    std::string_view part = std::string_view(text).substr(first, end - first);
    first = end + 1;
    ++line;
    if (part.find_first_not_of(" \t\r") == part.npos) continue;
    std::string place = cat(path, ":", line);
    MESHARD_ASSIGN_OR_RETURN(JsonValue object, read_json(part, place));
    Result<Sample> sample = sample_of(object, tokenize);
    if (sample)
      if (Result<void> good = check(*sample, vocabulary); !good) sample = good.error();
    if (!sample)
      return Error(sample.error().code(),
                   cat("[", place, "] the sample ", sample.error().message()));
    samples.push_back(*std::move(sample));
  }
  if (samples.empty())
    return Error(ErrorCode::kInvalidArgument, cat("[", path, "] there are no samples"));
  return samples;
}

Batch batch_of_step(const std::vector<Sample>& samples, std::int64_t rows, std::int64_t length,
                    std::uint64_t seed, std::int64_t step) {
  auto count = static_cast<std::int64_t>(samples.size());
  auto size = static_cast<std::size_t>(length);
  Batch batch;
  std::int64_t shuffled = -1;
  std::vector<std::size_t> order(samples.size());
  for (std::int64_t i = step * rows; i < (step + 1) * rows; ++i) {
    if (std::int64_t epoch = i / count; epoch != shuffled) {
      shuffled = epoch;
      std::iota(order.begin(), order.end(), 0u);
      std::mt19937_64 random(seed * 1'000'003 + static_cast<std::uint64_t>(epoch));
      // std::shuffle differs between libraries.
      for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random() % k]);
    }
    const Sample& sample = samples[order[static_cast<std::size_t>(i % count)]];
    std::size_t kept = std::min(size, sample.tokens.size());
    for (std::size_t k = 0; k < size; ++k) {
      batch.tokens.push_back(k < kept ? sample.tokens[k] : 0);
      batch.labels.push_back(k < kept ? sample.labels[k] : kIgnored);
    }
  }
  return batch;
}

}  // namespace llm
