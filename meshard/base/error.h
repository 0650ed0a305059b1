// The only error type of meshard.
//
// A function returns Result<T> (result.h) if it parses text, accesses files, plugins, compilers or
// processes, or is a conversion or layout operation that has no result for some valid inputs. Every
// other function throws Error: everything that records, runs, explains or plans a program.
// Result::value() is the only bridge between the two. No function has both a throwing and a
// non-throwing (`safe_foo`) version.
#pragma once
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// The kind of failure. The values equal those of PJRT_Error_Code, so no translation is needed.
enum class ErrorCode : int {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// The name of the code: `invalid argument`.
std::string_view to_string(ErrorCode code);

/// A value: an error code, a message, the user's source location, and notes. Notes are added while
/// the error propagates. Copies share their text.
///
/// The message begins with the operation or folder in brackets: `[dot_general] contracting sizes
/// differ: lhs dimension 1 = 8, rhs dimension 0 = 6`.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, SourceLocation where = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return text_->message; }
  SourceLocation where() const { return where_; }
  const std::vector<std::string>& notes() const { return text_->notes; }

  /// The same error with one more line of context.
  Error with_note(std::string note) const;
  /// The same error with location `where`, unless it already has a location.
  Error at(SourceLocation where) const;

  /// `train.cc:42: invalid argument: [add] ...`, followed by one line for each note.
  const char* what() const noexcept override { return text_->what.c_str(); }
  std::string to_string() const { return text_->what; }

 private:
  struct Text {
    std::string message;
    std::vector<std::string> notes;
    std::string what;
  };
  Error(ErrorCode code, std::string message, std::vector<std::string> notes, SourceLocation where);

  ErrorCode code_;
  SourceLocation where_;
  std::shared_ptr<const Text> text_;
};

/// A broken invariant inside meshard. The message says so and asks for a bug report.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view message,
                         SourceLocation where = SourceLocation::current());
};

/// Throws InternalError unless `condition` holds.
inline void internal_check(bool condition, std::string_view message,
                           SourceLocation where = SourceLocation::current()) {
  if (!condition) [[unlikely]]
    throw InternalError(message, where);
}

/// Throws an invalid-argument Error with the user's source location.
template <class... Parts>
[[noreturn]] void throw_invalid(SourceLocation where, const Parts&... parts) {
  throw Error(ErrorCode::kInvalidArgument, cat(parts...), where);
}

}  // namespace meshard
