// Tested in tools/meshard/check_launch.py.
#include "tools/meshard/output_lines.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "meshard/base/cat.h"

namespace meshard::tool {
namespace {

constexpr std::size_t kLongest = 64 << 10;

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

OutputLines::OutputLines(OutputLines&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      to_(other.to_),
      prefix_(std::move(other.prefix_)),
      bytes_(std::move(other.bytes_)) {}

OutputLines::~OutputLines() { close(); }

void OutputLines::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

std::string OutputLines::take(std::size_t count, std::string& out) {
  std::string line = bytes_.substr(0, count);
  bytes_.erase(0, count);
  if (!bytes_.empty() && bytes_.front() == '\n') bytes_.erase(0, 1);
  out += cat(prefix_, line, "\n");
  return line;
}

std::vector<std::string> OutputLines::copy() {
  char piece[16384];
  ssize_t count = ::read(file_, piece, sizeof piece);
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return {};
  if (count <= 0) return finish();
  bytes_.append(piece, static_cast<std::size_t>(count));
  std::vector<std::string> lines;
  std::string out;
  for (std::size_t end; (end = bytes_.find('\n')) != std::string::npos || bytes_.size() > kLongest;)
    lines.push_back(take(std::min(end, kLongest), out));
  write_all(to_, out);
  return lines;
}

std::vector<std::string> OutputLines::finish() {
  close();
  std::vector<std::string> lines;
  std::string out;
  if (!bytes_.empty()) lines.push_back(take(bytes_.size(), out));
  write_all(to_, out);
  return lines;
}

}  // namespace meshard::tool
