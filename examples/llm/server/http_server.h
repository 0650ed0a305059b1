#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace llm {

struct HttpOptions {
  std::string address = "127.0.0.1";  ///< of this machine; 0.0.0.0 or :: for all of its networks
  std::uint16_t port = 8080;          ///< 0: any free one
  std::size_t connections = 256;      ///< at once; others get 503
  std::size_t header_bytes = 16 * 1024;
  std::size_t body_bytes = 1024 * 1024;
  double header_seconds =
      10;  ///< from the beginning of a connection or the last answer to the end of a header
  double body_seconds = 30;   ///< from there to the end of the body
  double write_seconds = 30;  ///< how long a client may take no part of an answer
  std::size_t unsent_bytes =
      4 * 1024 * 1024;  ///< of a streamed answer; the connection ends at more
  std::string token;  ///< wanted as "Authorization: Bearer TOKEN"; empty: none. /health needs none.
};

struct HttpRequest {
  std::string method;
  std::string path;  ///< without the query
  std::string body;
};

/// Where the answer to a request goes. Handle; its functions may be called by any thread, and do
/// nothing when the client is gone. Either send(), or begin_stream(), any number of write() and
/// end().
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(int status, const std::string& content_type, std::string body) = 0;
  virtual void begin_stream(const std::string& content_type) = 0;
  virtual void write(std::string part) = 0;
  virtual void end() = 0;
  /// Called once by the server's thread if the client goes before the end of the answer.
  virtual void on_gone(std::function<void()> call) = 0;
};

/// The body of an error, as OpenAI's API writes it.
[[nodiscard]] std::string error_body(const std::string& message, const std::string& type);

/// An HTTP/1.1 server: one thread for all connections. What is malformed, too large, too slow or
/// without the token gets an error and does not reach the handler.
class HttpServer {
 public:
  using Handler = std::function<void(const HttpRequest&, std::shared_ptr<HttpReply>)>;

  /// Listens.
  /// @error std::runtime_error with the address if that is not possible
  HttpServer(HttpOptions options, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// Serves until stop() is called, or until drain() is called and the last answer is sent. SIGTERM
  /// and SIGINT call `terminated`; the second one ends the server at once.
  void run(const std::function<void()>& terminated);
  /// Takes no more connections, and closes each after its answer. Any thread may call it.
  void drain();
  void stop();  ///< Any thread may call it.
  [[nodiscard]] std::size_t connections() const;

 private:
  class Implementation;
  std::shared_ptr<Implementation> implementation_;
};

}  // namespace llm
