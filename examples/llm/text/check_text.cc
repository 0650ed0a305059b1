// Compares tokenizers with recorded answers: check_text FILE...
//
// A file has one JSON object on each line. {"name", "tokenizer"} (a tokenizer.json) or {"name",
// "model"} (the path of a SentencePiece model beside the file) begins a tokenizer; the other lines
// are its cases: {"text", "ids", "special", "decoded", "skipped"}: the tokens without and with
// special ones, and the text of the latter with and without them. make_cases.py writes such files.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "examples/llm/text/jinja_template.h"
#include "examples/llm/text/tokenizer.h"
#include "examples/llm/text/unicode.h"

namespace {

using llm::Tokenizer;

/// The pieces of a streaming decoder, joined; throws if one cuts a character.
std::string streamed(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  llm::StreamDecoder decoder(tokenizer, false);
  std::string text;
  const auto take = [&](const std::string& piece) {
    if (!llm::valid_utf8(piece)) throw std::runtime_error("a streamed piece is not UTF-8");
    text += piece;
  };
  for (const auto id : ids) take(decoder.add(id));
  take(decoder.finish());
  return text;
}

/// What is wrong with a case; empty if nothing.
std::string problem(const Tokenizer& tokenizer, const nlohmann::json& test) {
  const auto text = test.at("text").get<std::string>();
  const auto differ = [&](const char* what, const nlohmann::json& ours) {
    return std::string(what) + ": " + ours.dump() + " instead of " + test.at(what).dump();
  };
  const nlohmann::json ids = tokenizer.encode(text, false), special = tokenizer.encode(text, true);
  if (ids != test.at("ids")) return differ("ids", ids);
  if (special != test.at("special")) return differ("special", special);
  const nlohmann::json decoded = tokenizer.decode(special, false);
  const nlohmann::json skipped = tokenizer.decode(special, true);
  if (decoded != test.at("decoded")) return differ("decoded", decoded);
  if (skipped != test.at("skipped")) return differ("skipped", skipped);
  if (const nlohmann::json pieces = streamed(tokenizer, special); pieces != test.at("decoded"))
    return "streamed, " + differ("decoded", pieces);
  return {};
}

/// What is wrong with a chat; empty if nothing.
std::string chat_problem(const nlohmann::ordered_json& test) {
  try {
    const llm::jinja::Template compiled(test.at("template").get<std::string>());
    const std::string text = compiled.render(test.at("variables"));
    if (test.contains("text") && text == test["text"]) return {};
    return "text: " + nlohmann::json(text).dump();
  } catch (const std::invalid_argument& error) {
    const bool expected =
        test.contains("error") &&
        std::string(error.what()).find(test["error"].get<std::string>()) != std::string::npos;
    return expected ? std::string() : error.what();
  }
}

class Run {
 public:
  void file(const std::filesystem::path& path) {
    std::ifstream lines(path);
    if (!lines) throw std::runtime_error("cannot read " + path.string());
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      if (entry.contains("name")) {
        name_ = entry.at("name");
        tokenizer_ =
            entry.contains("tokenizer")
                ? llm::make_tokenizer(entry.at("tokenizer"))
                : llm::load_sentencepiece(path.parent_path() / entry.at("model").get<std::string>(),
                                          true, false);
        continue;
      }
      std::string wrong;
      try {
        // The order of the variables' fields matters to templates.
        wrong = entry.contains("template") ? chat_problem(nlohmann::ordered_json::parse(line))
                                           : problem(*tokenizer_, entry);
      } catch (const std::exception& error) {
        wrong = error.what();
      }
      ++(wrong.empty() ? passed_ : failed_);
      if (!wrong.empty() && failed_ <= kShown)
        std::cout << "FAILED " << name_ << ": " << line.substr(0, 200) << ": " << wrong << '\n';
    }
  }

  int report() const {
    std::cout << passed_ << " passed, " << failed_ << " failed\n";
    return failed_ == 0 && passed_ > 0 ? 0 : 1;
  }

 private:
  static constexpr int kShown = 20;
  std::string name_;
  std::unique_ptr<Tokenizer> tokenizer_;
  int passed_ = 0, failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Run run;
    for (int i = 1; i < argc; ++i) run.file(argv[i]);
    return run.report();
  } catch (const std::exception& error) {
    std::cout << "check_text: " << error.what() << "\n0 passed, 1 failed\n";
    return 1;
  }
}
