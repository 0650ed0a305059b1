// The output of a child process, line by line.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace meshard::tool {

/// Move-only owner of the end of a pipe, whose lines are copied to a stream of this process, each
/// after a prefix and in one piece.
class OutputLines {
 public:
  OutputLines(int file, int to, std::string prefix)
      : file_(file), to_(to), prefix_(std::move(prefix)) {}
  OutputLines(OutputLines&& other) noexcept;
  OutputLines& operator=(OutputLines&&) = delete;
  ~OutputLines();

  int file() const { return file_; }
  bool is_open() const { return file_ >= 0; }
  /// Copies the lines that have arrived, and closes the pipe at its end. A line that becomes longer
  /// than 64 KiB is cut. @return them, without the prefix and the end of the line
  std::vector<std::string> copy();
  /// Copies what is left, also without an end of line, and closes the pipe.
  std::vector<std::string> finish();

 private:
  void close();
  std::string take(std::size_t count, std::string& out);

  int file_;
  int to_;
  std::string prefix_;
  std::string bytes_;
};

}  // namespace meshard::tool
