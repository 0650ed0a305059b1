#include "meshard/base/gunzip.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace meshard {
namespace {

// Thrown by the reader, and caught in gunzip().
struct Damaged {};
struct TooLong {};

// Reads bits, the lowest of each byte first.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  unsigned bits(int count) {
    while (held_ < count) {
      value_ |= static_cast<std::uint32_t>(byte()) << held_;
      held_ += 8;
    }
    unsigned result = value_ & ((1u << count) - 1);
    value_ >>= count;
    held_ -= count;
    return result;
  }
  // Drops the rest of the current byte.
  void align() { value_ = 0, held_ = 0; }
  unsigned byte() {
    if (at_ >= bytes_.size()) throw Damaged();
    return static_cast<unsigned char>(bytes_[at_++]);
  }
  bool at_end() const { return at_ >= bytes_.size(); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::uint32_t value_ = 0;
  int held_ = 0;
};

// A prefix code, given by the length of each symbol's code (RFC 1951, 3.2.2).
class PrefixCode {
 public:
  explicit PrefixCode(const std::vector<unsigned>& lengths) {
    for (unsigned length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<unsigned, kLongest + 2> first{};
    for (unsigned length = 1; length <= kLongest; ++length)
      first[length + 1] = first[length] + counts_[length];
    symbols_.resize(lengths.size());
    for (unsigned symbol = 0; symbol < lengths.size(); ++symbol)
      if (lengths[symbol] != 0) symbols_[first[lengths[symbol]]++] = symbol;
  }

  unsigned read(BitReader& in) const {
    int code = 0, first = 0, index = 0;
    for (unsigned length = 1; length <= kLongest; ++length) {
      code |= static_cast<int>(in.bits(1));
      int count = static_cast<int>(counts_[length]);
      if (code - first < count) return symbols_[static_cast<std::size_t>(index + code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    throw Damaged();
  }

 private:
  static constexpr unsigned kLongest = 15;
  std::array<unsigned, kLongest + 1> counts_{};
  std::vector<unsigned> symbols_;
};

// RFC 1951, 3.2.5: the first length or distance of each symbol, and how many bits follow.
constexpr std::uint16_t kLengths[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                      15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                      67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr std::uint8_t kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                        2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr std::uint16_t kDistances[] = {
    1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
    193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr std::uint8_t kDistanceBits[] = {0, 0, 0, 0, 1, 1, 2, 2,  3,  3,  4,  4,  5,  5,  6,
                                          6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13};

class Inflater {
 public:
  Inflater(BitReader& in, std::string& out, std::size_t most) : in_(in), out_(out), most_(most) {
    start_ = out.size();
  }

  void run() {
    for (bool last = false; !last;) {
      last = in_.bits(1) != 0;
      unsigned kind = in_.bits(2);
      if (kind == 0) {
        stored();
      } else if (kind == 1) {
        fixed();
      } else if (kind == 2) {
        dynamic();
      } else {
        throw Damaged();
      }
    }
  }

 private:
  void put(char byte) {
    if (out_.size() >= most_) throw TooLong();
    out_.push_back(byte);
  }

  void stored() {
    in_.align();
    unsigned length = in_.byte();
    length |= in_.byte() << 8;
    unsigned check = in_.byte();
    check |= in_.byte() << 8;
    if ((length ^ check) != 0xffff) throw Damaged();
    for (unsigned i = 0; i < length; ++i) put(static_cast<char>(in_.byte()));
  }

  void fixed() {
    std::vector<unsigned> lengths(288, 8);
    std::fill(lengths.begin() + 144, lengths.begin() + 256, 9);
    std::fill(lengths.begin() + 256, lengths.begin() + 280, 7);
    compressed(PrefixCode(lengths), PrefixCode(std::vector<unsigned>(30, 5)));
  }

  void dynamic() {
    constexpr std::uint8_t kOrder[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                       11, 4,  12, 3, 13, 2, 14, 1, 15};
    std::size_t num_lengths = in_.bits(5) + 257, num_distances = in_.bits(5) + 1;
    std::size_t num_codes = in_.bits(4) + 4;
    std::vector<unsigned> code_lengths(19, 0);
    for (std::size_t i = 0; i < num_codes; ++i) code_lengths[kOrder[i]] = in_.bits(3);
    PrefixCode codes(code_lengths);
    std::vector<unsigned> all;
    while (all.size() < num_lengths + num_distances) {
      unsigned symbol = codes.read(in_);
      unsigned repeated = 0, times = 1;
      if (symbol < 16) {
        repeated = symbol;
      } else if (symbol == 16) {
        if (all.empty()) throw Damaged();
        repeated = all.back();
        times = 3 + in_.bits(2);
      } else {
        times = symbol == 17 ? 3 + in_.bits(3) : 11 + in_.bits(7);
      }
      all.insert(all.end(), times, repeated);
    }
    if (all.size() != num_lengths + num_distances) throw Damaged();
    auto middle = all.begin() + static_cast<std::ptrdiff_t>(num_lengths);
    compressed(PrefixCode({all.begin(), middle}), PrefixCode({middle, all.end()}));
  }

  void compressed(const PrefixCode& lengths, const PrefixCode& distances) {
    constexpr unsigned kEnd = 256;
    while (true) {
      unsigned symbol = lengths.read(in_);
      if (symbol == kEnd) return;
      if (symbol < kEnd) {
        put(static_cast<char>(symbol));
        continue;
      }
      symbol -= kEnd + 1;
      if (symbol >= std::size(kLengths)) throw Damaged();
      std::size_t length = kLengths[symbol] + in_.bits(kLengthBits[symbol]);
      unsigned back = distances.read(in_);
      if (back >= std::size(kDistances)) throw Damaged();
      std::size_t distance = kDistances[back] + in_.bits(kDistanceBits[back]);
      if (distance > out_.size() - start_) throw Damaged();
      for (std::size_t i = 0; i < length; ++i) put(out_[out_.size() - distance]);
    }
  }

  BitReader& in_;
  std::string& out_;
  std::size_t most_, start_ = 0;
};

void skip_text(BitReader& in) {
  while (in.byte() != 0) {
  }
}

// RFC 1952, 2.3: the header, the compressed data, a checksum and the length.
void read_member(BitReader& in, std::string& out, std::size_t most) {
  constexpr unsigned kHeaderCheck = 2, kExtra = 4, kName = 8, kComment = 16, kDeflate = 8;
  if (in.byte() != 0x1f || in.byte() != 0x8b || in.byte() != kDeflate) throw Damaged();
  unsigned flags = in.byte();
  for (int i = 0; i < 6; ++i) in.byte();  // time, flags of the compressor, system
  if (flags & kExtra) {
    unsigned length = in.byte();
    length |= in.byte() << 8;
    for (unsigned i = 0; i < length; ++i) in.byte();
  }
  if (flags & kName) skip_text(in);
  if (flags & kComment) skip_text(in);
  if (flags & kHeaderCheck) in.byte(), in.byte();
  Inflater(in, out, most).run();
  in.align();
  for (int i = 0; i < 8; ++i) in.byte();
}

}  // namespace

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, std::size_t most) {
  std::string out;
  try {
    BitReader in(bytes);
    do {
      read_member(in, out, most);
    } while (!in.at_end());
  } catch (const Damaged&) {
    return Error(ErrorCode::kDataLoss, "[gzip] the file is damaged, or not a gzip file");
  } catch (const TooLong&) {
    return Error(ErrorCode::kResourceExhausted, "[gzip] the file has too many bytes");
  }
  return out;
}

}  // namespace meshard
