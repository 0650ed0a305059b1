// How a diff is put in words: what its text and its page share.
#pragma once
#include <string>

#include "meshard/report/diff.h"

namespace meshard {

/// `1.5 ms`, `12 us`, `2 s`: three digits.
std::string seconds_text(double seconds);

/// `5 KiB → 7 KiB (+2 KiB)`; `5 KiB` if it did not change.
std::string bytes_change_text(double before, double after);

/// `1.2 ms → 900 us (-25%)`; `1.2 ms` if it did not change.
std::string seconds_change_text(double before, double after);

}  // namespace meshard
