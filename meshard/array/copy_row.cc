#include "meshard/array/copy_row.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace meshard {

#ifdef __SSE2__

void stream_row(std::byte* destination, const std::byte* source, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  std::size_t head = -reinterpret_cast<std::uintptr_t>(destination) % kLine;
  head = std::min(head, bytes);
  std::memcpy(destination, source, head);
  destination += head;
  source += head;
  bytes -= head;
  for (; bytes >= kLine; bytes -= kLine, destination += kLine, source += kLine) {
    const auto* from = reinterpret_cast<const __m128i*>(source);
    auto* to = reinterpret_cast<__m128i*>(destination);
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1), c = _mm_loadu_si128(from + 2),
            d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  std::memcpy(destination, source, bytes);
}

void finish_streaming() { _mm_sfence(); }

#else

void stream_row(std::byte* destination, const std::byte* source, std::size_t bytes) {
  std::memcpy(destination, source, bytes);
}

void finish_streaming() {}

#endif

}  // namespace meshard
