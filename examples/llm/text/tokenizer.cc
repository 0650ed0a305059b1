#include "examples/llm/text/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

#include "examples/llm/text/added_tokens.h"
#include "examples/llm/text/decoder.h"
#include "examples/llm/text/token_model.h"
#include "examples/llm/text/unicode.h"

namespace llm {
namespace {

/// The tokens before and after a text.
struct Frame {
  std::vector<std::int32_t> before, after;
};

Frame template_frame(const nlohmann::json& description) {
  Frame frame;
  bool seen = false;
  for (const auto& part : description.at("single")) {
    if (part.contains("Sequence")) {
      seen = true;
      continue;
    }
    const auto name = part.at("SpecialToken").at("id").get<std::string>();
    for (const std::int32_t id : description.at("special_tokens").at(name).at("ids"))
      (seen ? frame.after : frame.before).push_back(id);
  }
  if (!seen)
    throw std::invalid_argument("[tokenizer.json] TemplateProcessing: \"single\" has no Sequence");
  return frame;
}

Frame make_frame(const nlohmann::json& description) {
  if (description.is_null()) return {};
  const auto type = description.at("type").get<std::string>();
  if (type == "ByteLevel") return {};  // changes offsets only
  if (type == "TemplateProcessing") return template_frame(description);
  if (type == "BertProcessing" || type == "RobertaProcessing")
    return {{description.at("cls").at(1)}, {description.at("sep").at(1)}};
  if (type == "Sequence") {
    Frame frame;
    for (const auto& part : description.at("processors")) {
      const Frame outer = make_frame(part);
      frame.before.insert(frame.before.begin(), outer.before.begin(), outer.before.end());
      frame.after.insert(frame.after.end(), outer.after.begin(), outer.after.end());
    }
    return frame;
  }
  throw std::invalid_argument("[tokenizer.json] unsupported post_processor \"" + type + "\"");
}

class JsonTokenizer : public Tokenizer {
 public:
  explicit JsonTokenizer(const nlohmann::json& description)
      : normalizer_(make_normalizer(description.value("normalizer", nlohmann::json()))),
        pre_tokenizer_(make_pre_tokenizer(description.value("pre_tokenizer", nlohmann::json()))),
        model_(make_token_model(description.at("model"))),
        decoder_(make_decoder(description.value("decoder", nlohmann::json()))),
        frame_(make_frame(description.value("post_processor", nlohmann::json()))) {
    std::vector<AddedToken> added;
    size_ = model_->size();
    for (const auto& entry : description.value("added_tokens", nlohmann::json::array())) {
      AddedToken token{
          entry.at("id"),     entry.at("content"),    entry.at("single_word"), entry.at("lstrip"),
          entry.at("rstrip"), entry.at("normalized"), entry.at("special"),     {}};
      const auto known = model_->id(token.content);
      if (known && *known != token.id)
        throw std::invalid_argument("[tokenizer.json] the added token \"" + token.content +
                                    "\" has the id " + std::to_string(token.id) +
                                    ", in the model " + std::to_string(*known));
      size_ = std::max<std::int64_t>(size_, token.id + 1);
      added.push_back(std::move(token));
    }
    added_ = AddedTokens(std::move(added), normalizer_);
  }

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 bool special) const override {
    check_utf8(text);
    std::vector<std::int32_t> ids;
    if (special) ids = frame_.before;
    for (auto& section : added_.split(text, normalizer_)) {
      if (section.id >= 0) {
        ids.push_back(section.id);
        continue;
      }
      for (const Piece& piece : pre_tokenizer_({std::move(section.piece)}))
        model_->tokenize(piece.text, ids);
    }
    if (special) ids.insert(ids.end(), frame_.after.begin(), frame_.after.end());
    return ids;
  }

  [[nodiscard]] std::string decode(const std::vector<std::int32_t>& ids,
                                   bool skip_special) const override {
    std::vector<std::string> tokens;
    for (const std::int32_t id : ids) {
      const AddedToken* added = added_.find(id);
      if (added && added->special && skip_special) continue;
      if (auto text = token(id)) tokens.push_back(std::move(*text));
    }
    std::string text;
    for (const auto& part : decoder_(std::move(tokens))) text += part;
    return text;
  }

  [[nodiscard]] std::optional<std::int32_t> id(const std::string& token) const override {
    if (const AddedToken* added = added_.find(token)) return added->id;
    return model_->id(token);
  }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const override {
    if (const AddedToken* added = added_.find(id)) return added->text;
    const std::string* text = model_->token(id);
    return text ? std::optional(*text) : std::nullopt;
  }
  [[nodiscard]] std::int64_t size() const override { return size_; }

 private:
  static void check_utf8(std::string_view text) {
    if (!valid_utf8(text)) (void)code_points(text);  // throws with the offset
  }

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<TokenModel> model_;
  Decoder decoder_;
  Frame frame_;
  AddedTokens added_;
  std::int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const nlohmann::json& description) {
  return std::make_unique<JsonTokenizer>(description);
}

nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("[tokenizer] cannot read " + path);
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error("[tokenizer] " + path + ": " + error.what());
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder) {
  const std::filesystem::path root(folder);
  const auto file = root / "tokenizer.json";
  if (std::filesystem::exists(file)) {
    try {
      return make_tokenizer(read_json(file));
    } catch (const nlohmann::json::exception& error) {
      throw std::runtime_error("[tokenizer] " + file.string() + ": " + error.what());
    }
  }
  if (!std::filesystem::exists(root / "tokenizer.model"))
    throw std::runtime_error("[tokenizer] " + folder +
                             " has neither tokenizer.json nor tokenizer.model");
  nlohmann::json config = nlohmann::json::object();
  if (std::filesystem::exists(root / "tokenizer_config.json"))
    config = read_json(root / "tokenizer_config.json");
  return load_sentencepiece(root / "tokenizer.model", config.value("add_bos_token", true),
                            config.value("add_eos_token", false));
}

std::string StreamDecoder::take(bool all) {
  const std::string text = tokenizer_->decode(window_, skip_special_);
  if (!all && text.ends_with("\uFFFD")) return {};  // perhaps the first bytes of a character
  std::string piece;
  if (text.starts_with(prefix_)) {
    piece = text.substr(prefix_.size());
  } else {  // new bytes changed how the old ones are read
    piece = tokenizer_->decode(
        {window_.begin() + static_cast<std::ptrdiff_t>(returned_), window_.end()}, skip_special_);
  }
  if (piece.empty()) return {};
  // Decoders may drop spaces at the beginning, so the window begins with a token that is not blank.
  const std::vector<std::int32_t> last(window_.begin() + static_cast<std::ptrdiff_t>(returned_),
                                       window_.end());
  std::string text_of_last = tokenizer_->decode(last, skip_special_);
  if (text_of_last.find_first_not_of(' ') == std::string::npos) {
    prefix_ = text;
  } else {
    window_ = last;
    prefix_ = std::move(text_of_last);
  }
  returned_ = window_.size();
  return piece;
}

std::string StreamDecoder::add(std::int32_t id) {
  window_.push_back(id);
  return take(false);
}

std::string StreamDecoder::finish() { return take(true); }

}  // namespace llm
