// A server over the fake model, for check_server.py. It prints its port.
#include <iostream>

#include "examples/llm/server/fake_runner.h"
#include "examples/llm/server/serve_options.h"

int main(int argc, char** argv) {
  CLI::App app("A server over a model that makes up its answers");
  llm::ServeOptions options;
  options.http.port = 0;
  options.api.model = "fake";
  options.api.end_tokens = {257};
  options.api.chat_template = [](const nlohmann::json& messages) {
    std::string text = "<s>";
    for (const auto& message : messages) {
      if (message.at("role") != "user" && message.at("role") != "assistant")
        throw std::invalid_argument("the role " + message.at("role").dump() + " is not supported");
      text += "<" + message.at("role").get<std::string>() + ">" +
              message.at("content").get<std::string>();
    }
    return text + "<assistant>";
  };
  std::string token_file;
  int step_microseconds = 0;
  llm::RunnerLimits limits{.vocabulary = 260,
                           .context = 600,
                           .page_tokens = 8,
                           .pages = 300,
                           .sequences = 16,
                           .chunk_tokens = 64};
  llm::add_serve_options(app, options, token_file);
  app.add_option("--step-microseconds", step_microseconds, "time of a step");
  CLI11_PARSE(app, argc, argv);
  try {
    llm::read_token(token_file, options);
    llm::FakeRunner runner(limits, std::chrono::microseconds(step_microseconds));
    const auto tokenizer = llm::fake_tokenizer();
    llm::serve(runner, *tokenizer, options,
               [](std::uint16_t port) { std::cout << port << std::endl; });
  } catch (const std::exception& error) {
    std::cerr << "fake_server: " << error.what() << '\n';
    return 1;
  }
}
