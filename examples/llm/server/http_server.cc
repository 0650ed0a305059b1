#include "examples/llm/server/http_server.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

namespace llm {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Failure = boost::system::error_code;

const char* reason(int status) {
  return http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status))).data();
}

/// Compares in a time that depends on the length of `given` only.
bool equal_secrets(const std::string& given, const std::string& wanted) {
  unsigned difference = given.size() == wanted.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^
                  static_cast<unsigned char>(wanted.empty() ? 0 : wanted[i % wanted.size()]);
  return difference == 0;
}

/// As many files as the system lets this process open, because each connection is one.
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string header(int status, const std::string& content_type, bool keep, bool chunked,
                   std::optional<std::size_t> length) {
  std::string text = "HTTP/1.1 " + std::to_string(status) + ' ' + reason(status) +
                     "\r\nContent-Type: " + content_type + "\r\n";
  if (length) text += "Content-Length: " + std::to_string(*length) + "\r\n";
  if (chunked) text += "Transfer-Encoding: chunked\r\n";
  if (!length) text += "Cache-Control: no-cache\r\n";
  if (status == 401) text += "WWW-Authenticate: Bearer\r\n";
  if (status == 429 || status == 503) text += "Retry-After: 1\r\n";
  return text + (keep ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
}

}  // namespace

std::string error_body(const std::string& message, const std::string& type) {
  return nlohmann::json{
      {"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", nullptr}}}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class HttpServer::Implementation : public std::enable_shared_from_this<Implementation> {
 public:
  class Session;

  Implementation(HttpOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        acceptor_(io_),
        pause_(io_),
        signals_(io_) {
    Failure failure;
    const auto address = asio::ip::make_address(options_.address, failure);
    if (!failure) {
      const tcp::endpoint endpoint(address, options_.port);
      acceptor_.open(endpoint.protocol(), failure);
      if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address(true), failure);
      if (!failure) acceptor_.bind(endpoint, failure);
      if (!failure) acceptor_.listen(asio::socket_base::max_listen_connections, failure);
    }
    if (failure)
      throw std::runtime_error("[server] cannot listen on " + options_.address + " port " +
                               std::to_string(options_.port) + ": " + failure.message());
  }

  void run(const std::function<void()>& terminated);
  void accept();
  void drain();
  void leave(const std::shared_ptr<Session>& session);
  void wait_for_signal(const std::function<void()>& terminated);

  HttpOptions options_;
  Handler handler_;
  asio::io_context io_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  asio::signal_set signals_;
  std::set<std::shared_ptr<Session>> sessions_;
  std::atomic<std::size_t> count_{0};
  bool draining_ = false;
  int terminations_ = 0;
};

/// One connection. All of its functions run on the server's thread.
class HttpServer::Implementation::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Implementation> server, tcp::socket socket)
      : server_(std::move(server)), socket_(std::move(socket)), timer_(socket_.get_executor()) {}

  void read_header() {
    if (closed_) return;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(server_->options_.header_bytes));
    parser_->body_limit(server_->options_.body_bytes);
    watch_clock(server_->options_.header_seconds);
    idle_ = true;
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](Failure failure, std::size_t) {
                              self->idle_ = false;
                              if (failure) return self->refuse(failure);
                              self->take_header();
                            });
    if (server_->draining_) close_if_idle();
  }

  void close_if_idle() {
    if (idle_ && !parser_->got_some()) close();
  }

  void send(int status, const std::string& content_type, std::string body) {
    if (closed_ || !answering_ || streaming_) return;
    keep_ = keep_ && !server_->draining_;
    const std::string head = header(status, content_type, keep_, false, body.size());
    last_ = true;
    push(head + body);
  }

  void begin_stream(const std::string& content_type) {
    if (closed_ || !answering_ || streaming_) return;
    streaming_ = true;
    chunked_ = parser_->get().version() >= 11;  // HTTP/1.0 ends a body by closing
    keep_ = keep_ && chunked_ && !server_->draining_;
    push(header(200, content_type, keep_, chunked_, std::nullopt));
  }

  void write(std::string part) {
    if (closed_ || !streaming_ || last_ || part.empty()) return;
    if (chunked_) {
      char size[20];
      std::snprintf(size, sizeof size, "%zx\r\n", part.size());
      part = size + part + "\r\n";
    }
    push(std::move(part));
  }

  void end() {
    if (closed_ || !streaming_ || last_) return;
    last_ = true;
    push(chunked_ ? "0\r\n\r\n" : "");
  }

  void on_gone(std::function<void()> call) {
    if (closed_ || !answering_) return call();
    gone_ = std::move(call);
  }

  void close() {
    if (std::exchange(closed_, true)) return;
    Failure ignored;
    timer_.cancel();
    socket_.close(ignored);
    if (gone_) std::exchange(gone_, nullptr)();
    server_->leave(shared_from_this());
  }

 private:
  class Reply;

  /// Ends the connection if what is awaited does not come in time.
  void watch_clock(double seconds) {
    timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6)));
    timer_.async_wait([weak = weak_from_this()](Failure failure) {
      const auto self = weak.lock();
      if (failure || !self || self->closed_) return;
      self->late_ = true;
      Failure ignored;
      self->socket_.cancel(ignored);
      if (self->writing_ || self->lingering_) self->close();
    });
  }

  /// What could not be read as a request.
  void refuse(Failure failure) {
    if (closed_) return;
    if (late_) {
      if (!parser_->got_some()) return close();
      return fail(408, "the request did not come in time");
    }
    if (failure == http::error::header_limit)
      return fail(431, "the header is larger than " +
                           std::to_string(server_->options_.header_bytes) + " bytes");
    if (failure == http::error::body_limit)
      return fail(413, "the body is larger than " + std::to_string(server_->options_.body_bytes) +
                           " bytes");
    if (failure == http::error::end_of_stream || failure == http::error::partial_message ||
        failure.category() != http::make_error_code(http::error::bad_method).category())
      return close();
    fail(400, "this is not an HTTP request: " + failure.message());
  }

  void fail(int status, const std::string& message) {
    keep_ = false;
    answering_ = true;
    send(status, "application/json", error_body(message, "invalid_request_error"));
  }

  void take_header() {
    const auto& request = parser_->get();
    keep_ = request.keep_alive();
    const std::string target(request.target());
    path_ = target.substr(0, target.find('?'));
    const std::string given(request[http::field::authorization]);
    const std::string& token = server_->options_.token;
    if (!token.empty() && path_ != "/health" && !equal_secrets(given, "Bearer " + token)) {
      keep_ = false;
      answering_ = true;
      return send(401, "application/json",
                  error_body("the bearer token is missing or wrong", "authentication_error"));
    }
    if (const auto length = parser_->content_length();
        length && *length > server_->options_.body_bytes)
      return refuse(http::error::body_limit);
    watch_clock(server_->options_.body_seconds);
    if (boost::beast::iequals(request[http::field::expect], "100-continue")) {
      const auto text = std::make_shared<std::string>("HTTP/1.1 100 Continue\r\n\r\n");
      asio::async_write(socket_, asio::buffer(*text),
                        [self = shared_from_this(), text](Failure failure, std::size_t) {
                          if (failure) return self->close();
                          self->read_body();
                        });
      return;
    }
    read_body();
  }

  void read_body() {
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](Failure failure, std::size_t) {
                       if (failure) return self->refuse(failure);
                       self->answer();
                     });
  }

  void answer();

  /// Notices that the client goes while its answer is made.
  void watch_client() {
    socket_.async_wait(tcp::socket::wait_read, [weak = weak_from_this(),
                                                request = requests_](Failure failure) {
      const auto self = weak.lock();
      if (!self || self->closed_ || !self->answering_ || request != self->requests_) return;
      if (failure == asio::error::operation_aborted) return;
      char byte = 0;
      const auto count = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      // More data is the next request, which is read after the answer.
      if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) self->close();
    });
  }

  void push(std::string text) {
    unsent_ += text.size();
    if (streaming_ && unsent_ > server_->options_.unsent_bytes) return close();
    out_.push_back(std::move(text));
    if (!writing_) write_next();
  }

  void write_next() {
    if (out_.empty()) {
      if (last_) finish();
      return;
    }
    writing_ = true;
    watch_clock(server_->options_.write_seconds);
    asio::async_write(socket_, asio::buffer(out_.front()),
                      [self = shared_from_this()](Failure failure, std::size_t) {
                        self->writing_ = false;
                        if (failure) return self->close();
                        if (self->closed_) return;
                        self->timer_.cancel();
                        self->unsent_ -= self->out_.front().size();
                        self->out_.pop_front();
                        self->write_next();
                      });
  }

  /// The answer is sent.
  void finish() {
    ++requests_;
    answering_ = streaming_ = last_ = false;
    gone_ = nullptr;
    if (keep_ && !server_->draining_) return read_header();
    // The client may still be sending; closing now could destroy the answer on its way.
    Failure failure;
    socket_.shutdown(tcp::socket::shutdown_send, failure);
    if (failure) return close();
    lingering_ = true;
    late_ = false;
    watch_clock(2);
    discard(0);
  }

  void discard(std::size_t so_far) {
    socket_.async_read_some(asio::buffer(trash_),
                            [self = shared_from_this(), so_far](Failure failure, std::size_t size) {
                              if (failure || so_far + size > (1u << 22)) return self->close();
                              self->discard(so_far + size);
                            });
  }

  std::shared_ptr<Implementation> server_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  std::string path_;
  std::deque<std::string> out_;
  std::size_t unsent_ = 0;
  std::size_t requests_ = 0;
  std::function<void()> gone_;
  std::array<char, 4096> trash_{};
  bool keep_ = false, closed_ = false, late_ = false, writing_ = false, idle_ = false;
  bool answering_ = false;  ///< a request waits for the end of its answer
  bool streaming_ = false, chunked_ = false, lingering_ = false;
  bool last_ = false;  ///< the whole answer is in out_
};

/// Passes the calls of other threads on.
class HttpServer::Implementation::Session::Reply : public HttpReply {
 public:
  explicit Reply(const std::shared_ptr<Session>& session)
      : session_(session), server_(session->server_), request_(session->requests_) {}

  void send(int status, const std::string& content_type, std::string body) override {
    post([=, body = std::move(body)](Session& session) {
      session.send(status, content_type, body);
    });
  }
  void begin_stream(const std::string& content_type) override {
    post([=](Session& session) { session.begin_stream(content_type); });
  }
  void write(std::string part) override {
    post([part = std::move(part)](Session& session) { session.write(part); });
  }
  void end() override {
    post([](Session& session) { session.end(); });
  }
  void on_gone(std::function<void()> call) override {
    // Here, not later: the client may go before.
    asio::post(server_->io_, [weak = session_, request = request_, call = std::move(call)] {
      const auto session = weak.lock();
      if (!session || session->requests_ < request) return call();
      if (session->requests_ == request) session->on_gone(call);
    });
  }

 private:
  template <class Call>
  void post(Call call) {
    asio::post(server_->io_, [weak = session_, request = request_, call = std::move(call)] {
      const auto session = weak.lock();
      if (session && session->requests_ == request) call(*session);
    });
  }

  std::weak_ptr<Session> session_;
  std::shared_ptr<Implementation> server_;
  std::size_t request_;
};

void HttpServer::Implementation::Session::answer() {
  timer_.cancel();
  answering_ = true;
  auto& message = parser_->get();
  const HttpRequest request{std::string(message.method_string()), path_, std::move(message.body())};
  watch_client();
  const auto reply = std::make_shared<Reply>(shared_from_this());
  try {
    server_->handler_(request, reply);
  } catch (const std::exception& error) {
    send(500, "application/json", error_body(error.what(), "server_error"));
  }
}

void HttpServer::Implementation::leave(const std::shared_ptr<Session>& session) {
  sessions_.erase(session);
  count_ = sessions_.size();
  if (draining_ && sessions_.empty()) io_.stop();
}

void HttpServer::Implementation::accept() {
  acceptor_.async_accept([self = shared_from_this()](Failure failure, tcp::socket socket) {
    if (!self->acceptor_.is_open()) return;
    if (failure) {  // no more files: later
      self->pause_.expires_after(std::chrono::milliseconds(100));
      self->pause_.async_wait([self](Failure) { self->accept(); });
      return;
    }
    if (self->sessions_.size() >= self->options_.connections) {
      const std::string body = error_body("too many connections", "server_error");
      const std::string text = header(503, "application/json", false, false, body.size()) + body;
      Failure ignored;
      socket.non_blocking(true, ignored);
      socket.write_some(asio::buffer(text), ignored);
      socket.shutdown(tcp::socket::shutdown_send, ignored);
    } else {
      Failure ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      const auto session = std::make_shared<Session>(self, std::move(socket));
      self->sessions_.insert(session);
      self->count_ = self->sessions_.size();
      session->read_header();
    }
    self->accept();
  });
}

void HttpServer::Implementation::drain() {
  draining_ = true;
  Failure ignored;
  acceptor_.close(ignored);
  const auto sessions = sessions_;
  for (const auto& session : sessions) session->close_if_idle();
  if (sessions_.empty()) io_.stop();
}

void HttpServer::Implementation::wait_for_signal(const std::function<void()>& terminated) {
  signals_.async_wait([this, terminated](Failure failure, int) {
    if (failure) return;
    if (++terminations_ > 1) return io_.stop();
    terminated();
    wait_for_signal(terminated);
  });
}

void HttpServer::Implementation::run(const std::function<void()>& terminated) {
  raise_file_limit();
  // A parent may have blocked or ignored these, as shells do for jobs in the background.
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGTERM, SIGINT}) {
    signals_.add(signal);
    sigaddset(&wanted, signal);
  }
  pthread_sigmask(SIG_UNBLOCK, &wanted, nullptr);
  wait_for_signal(terminated);
  accept();
  io_.run();
  const auto sessions = sessions_;
  for (const auto& session : sessions) session->close();
  Failure ignored;
  acceptor_.close(ignored);
  signals_.clear(ignored);
}

HttpServer::HttpServer(HttpOptions options, Handler handler)
    : implementation_(std::make_shared<Implementation>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() = default;

std::uint16_t HttpServer::port() const {
  return implementation_->acceptor_.local_endpoint().port();
}

void HttpServer::run(const std::function<void()>& terminated) { implementation_->run(terminated); }

void HttpServer::drain() {
  asio::post(implementation_->io_, [self = implementation_] { self->drain(); });
}

void HttpServer::stop() { implementation_->io_.stop(); }

std::size_t HttpServer::connections() const { return implementation_->count_; }

}  // namespace llm
