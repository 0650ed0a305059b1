#include "meshard/base/error.h"

#include <atomic>

#include "meshard/base/outer_line.h"

namespace meshard {
namespace {

std::atomic<const SourceLocation* (*)()> outer_line{nullptr};

// A line of the library itself, apart from its tests, which says nothing to users.
bool is_own_line(const SourceLocation& where) {
  static constexpr std::string_view kThisFile = __FILE__, kInFolder = "base/error.cc";
  static_assert(kThisFile.ends_with(kInFolder));
  constexpr std::string_view kFolder = kThisFile.substr(0, kThisFile.size() - kInFolder.size());
  const std::string_view file = where.file;
  return where.known() && file.starts_with(kFolder) &&
         file.find("_test", kFolder.size()) == file.npos;
}

// What the user has called, if it is known; the place inside the library says less.
SourceLocation user_line(const SourceLocation& where) {
  auto outer = outer_line.load(std::memory_order_relaxed);
  const SourceLocation* line = outer ? outer() : nullptr;
  if (line && line->known()) return *line;
  return is_own_line(where) ? SourceLocation{} : where;
}

}  // namespace

void internal::set_outer_line(const SourceLocation* (*outer)()) { outer_line = outer; }

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kCancelled: return "canceled";
    case ErrorCode::kUnknown: return "unknown error";
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kDeadlineExceeded: return "deadline exceeded";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kAlreadyExists: return "already exists";
    case ErrorCode::kPermissionDenied: return "permission denied";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kFailedPrecondition: return "failed precondition";
    case ErrorCode::kAborted: return "aborted";
    case ErrorCode::kOutOfRange: return "out of range";
    case ErrorCode::kUnimplemented: return "unimplemented";
    case ErrorCode::kInternal: return "internal error";
    case ErrorCode::kUnavailable: return "unavailable";
    case ErrorCode::kDataLoss: return "data loss";
    case ErrorCode::kUnauthenticated: return "unauthenticated";
  }
  return "unknown error";  // a plugin may return a code of its own
}

Error::Error(ErrorCode code, std::string message, std::vector<std::string> notes,
             SourceLocation where)
    : code_(code), where_(where) {
  std::string what = where.to_string();
  if (!what.empty()) what += ": ";
  append(what, meshard::to_string(code));
  what += ": ";
  what += message;
  for (const std::string& note : notes) {
    what += "\n  note: ";
    what += note;
  }
  text_ = std::make_shared<const Text>(Text{std::move(message), std::move(notes), std::move(what)});
}

Error::Error(ErrorCode code, std::string message, SourceLocation where)
    : Error(code, std::move(message), std::vector<std::string>{}, user_line(where)) {}

Error Error::with_note(std::string note) const {
  std::vector<std::string> notes = text_->notes;
  notes.push_back(std::move(note));
  return Error(code_, text_->message, std::move(notes), where_);
}

Error Error::at(SourceLocation where) const {
  return where_.known() ? *this : Error(code_, text_->message, text_->notes, user_line(where));
}

InternalError::InternalError(std::string_view message, SourceLocation where)
    : Error(ErrorCode::kInternal,
            cat(message, " (this is a bug in meshard", where.known() ? cat(" at ", where) : "",
                "; please report it)"),
            where) {}

}  // namespace meshard
