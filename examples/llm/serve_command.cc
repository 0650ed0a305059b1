#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "examples/llm/commands.h"
#include "examples/llm/server/serve_options.h"
#include "examples/llm/text/chat_template.h"

namespace llm {

namespace {

struct ServeCommand {
  ModelOptions model;
  ServeOptions serve;
  std::string token_file;
};

void run(ServeCommand& command) {
  read_token(command.token_file, command.serve);
  const std::string& folder = command.model.folder;
  const auto tokenizer = load_tokenizer(folder);
  ApiOptions& api = command.serve.api;
  api.chat_template = load_chat_template(folder);
  if (api.model.empty()) api.model = std::filesystem::weakly_canonical(folder).filename().string();
  command.model.start();
  PagedRunner runner = command.model.runner();
  for (const auto token : runner.config().end_tokens)
    api.end_tokens.insert(static_cast<std::int32_t>(token));
  serve(runner, *tokenizer, command.serve, [&](std::uint16_t port) {
    std::cout << "listening on http://" << command.serve.http.address << ":" << port << std::endl;
  });
}

}  // namespace

void add_serve(CLI::App& app) {
  auto command = std::make_shared<ServeCommand>();
  CLI::App& serve_app = *app.add_subcommand("serve", "Serves a model over HTTP, with OpenAI's API");
  command->model.add_to(serve_app, true);
  add_serve_options(serve_app, command->serve, command->token_file);
  serve_app.callback([command] {
    try {
      run(*command);
    } catch (const meshard::Error&) {
      throw;
    } catch (const std::exception& error) {  // of the tokenizer, the template or the server
      throw CLI::RuntimeError((std::cerr << "llm: " << error.what() << '\n', 1));
    }
  });
}

}  // namespace llm
