#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "examples/llm/server/service.h"

namespace llm {

/// Adds the options of a server to a command line, which writes them to `options`. After the
/// command line is parsed, read_token() reads the file of the access token.
inline void add_serve_options(CLI::App& app, ServeOptions& options, std::string& token_file) {
  app.add_option("--address", options.http.address,
                 "listen on this address; 0.0.0.0 or :: for all networks")
      ->capture_default_str();
  app.add_option("--port", options.http.port, "listen on this port; 0 for any free one")
      ->capture_default_str();
  app.add_option("--token-file", token_file,
                 "requests must have the bearer token that this file holds")
      ->check(CLI::ExistingFile);
  app.add_option("--connections", options.http.connections, "connections at once")
      ->capture_default_str();
  app.add_option("--body-bytes", options.http.body_bytes, "largest request")->capture_default_str();
  app.add_option("--header-seconds", options.http.header_seconds,
                 "time for the header of a request")
      ->capture_default_str();
  app.add_option("--body-seconds", options.http.body_seconds, "time for the body of a request")
      ->capture_default_str();
  app.add_option("--write-seconds", options.http.write_seconds,
                 "time in which a client takes a part of its answer")
      ->capture_default_str();
  app.add_option("--model-name", options.api.model, "the name that requests use");
  app.add_option("--max-tokens", options.api.max_tokens,
                 "most tokens of an answer; 0: what the context holds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--request-seconds", options.api.request_seconds, "time for an answer")
      ->capture_default_str();
  app.add_option("--queue", options.scheduler.queue, "requests that wait; others get 429")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option(
         "--speculative", options.scheduler.speculative,
         "most tokens that are guessed ahead in greedy answers, from text that occurred before")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("!--no-prefix-reuse", options.scheduler.reuse_prefixes,
               "compute the beginning of each prompt, also if an earlier one had it");
  app.add_option("--drain-seconds", options.drain_seconds, "time for open answers after SIGTERM")
      ->capture_default_str();
}

}  // namespace llm
