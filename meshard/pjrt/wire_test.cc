#include "meshard/pjrt/wire.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace meshard::pjrt {
namespace {

TEST(Wire, BytesOfTheFormatsOwnExamples) {
  WireWriter number;
  number.add_varint(1, 150);
  EXPECT_EQ(number.bytes(), "\x08\x96\x01");
  WireWriter text;
  text.add_bytes(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing");
  WireWriter message;
  message.add_message(3, number);
  EXPECT_EQ(message.bytes(), "\x1a\x03\x08\x96\x01");
  WireWriter packed;
  packed.add_packed(6, std::vector<int>{3, 270, 86942});
  EXPECT_EQ(packed.bytes(), "\x32\x06\x03\x8e\x02\x9e\xa7\x05");
}

TEST(Wire, RandomFieldsComeBack) {
  TestRandom random;
  for (int round = 0; round < 200; ++round) {
    WireWriter writer;
    auto value =
        static_cast<std::uint64_t>(random.between(INT64_MIN, INT64_MAX)) >> random.between(0, 63);
    std::vector<std::int64_t> list, back;
    for (std::int64_t i = random.between(1, 5); i > 0; --i)
      list.push_back(random.between(INT64_MIN, INT64_MAX));
    writer.add_varint(1, value);
    writer.add_packed(400000000, list);
    writer.add_double(3, 2.5);
    for (std::int64_t one : list) writer.add_varint(7, static_cast<std::uint64_t>(one));
    WireReader reader(writer.bytes());
    EXPECT_EQ(reader.next()->value, value);
    auto packed = reader.next();
    EXPECT_EQ(packed->number, 400000000);
    EXPECT_TRUE(append_numbers(*packed, back));
    EXPECT_EQ(back, list);
    EXPECT_EQ(reader.next()->as_double(), 2.5);
    back.clear();
    while (auto field = reader.next()) EXPECT_TRUE(append_numbers(*field, back));
    EXPECT_EQ(back, list);
    EXPECT_TRUE(reader.ok());
    // Truncated anywhere, the reader ends without reading past the end; only a cut between fields
    // goes unnoticed.
    std::string bytes = writer.bytes();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      WireReader cut(std::string_view(bytes).substr(0, size));
      std::size_t seen = 0;
      while (cut.next()) ++seen;
      EXPECT_LE(seen, 3 + list.size());
    }
  }
}

TEST(Wire, DamagedBytesEndTheReading) {
  for (std::string_view bad :
       {std::string_view("\x08", 1), std::string_view("\x12\x05xx", 4),
        std::string_view("\x00\x01", 2), std::string_view("\x0b", 1),
        std::string_view("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11)}) {
    WireReader reader(bad);
    EXPECT_FALSE(reader.next());
    EXPECT_FALSE(reader.ok());
    EXPECT_FALSE(reader.next());
  }
}

TEST(Wire, CopiesFieldsOfEveryType) {
  WireWriter original;
  original.add_varint(1, 300);
  original.add_double(2, -2.5);
  original.add_bytes(3, "text");
  std::string bytes = original.take() + std::string("\x25\x01\x02\x03\x04", 5);  // field 4, 4 bytes
  WireWriter copy;
  WireReader reader(bytes);
  while (auto field = reader.next()) copy.add_field(*field);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(copy.bytes(), bytes);
}

TEST(Wire, MessagesAreReadByTheNumbersOfTheirFields) {
  WireWriter part, message;
  part.add_varint(1, 7);
  message.add_bytes(1, "first");
  message.add_bytes(2, "a");
  message.add_bytes(2, "b");
  message.add_varint(3, 1);
  message.add_packed(4, std::vector<int>{5, 6});
  message.add_message(5, part);
  message.add_message(5, part);
  message.add_varint(9, 10);
  struct Read {
    std::string text;
    std::vector<std::string> texts;
    bool flag = false;
    std::vector<std::int64_t> numbers, parts, others;
  };
  auto read_part = [](std::string_view bytes) -> Result<std::int64_t> {
    std::int64_t number = 0;
    MESHARD_RETURN_IF_ERROR(read_message(bytes, "a part", field(1, number)));
    return number;
  };
  auto read = [&](std::string_view bytes, Read& to) {
    return read_message(bytes, "a message", field(1, to.text), field(2, to.texts),
                        field(3, to.flag), field(4, to.numbers), field(5, to.parts, read_part),
                        other_fields([&](const WireField& f) { to.others.push_back(f.number); }));
  };
  Read to;
  ASSERT_TRUE(read(message.bytes(), to).ok());
  EXPECT_EQ(to.text, "first");
  EXPECT_EQ(to.texts, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(to.flag);
  EXPECT_EQ(to.numbers, (std::vector<std::int64_t>{5, 6}));
  EXPECT_EQ(to.parts, (std::vector<std::int64_t>{7, 7}));
  EXPECT_EQ(to.others, (std::vector<std::int64_t>{9}));

  // The error names the innermost message that is damaged.
  for (auto [bytes, what] :
       {std::pair("\x08\x05", "a message"), std::pair("\x2a\x01\x08", "a part")}) {
    Result<void> done = read(bytes, to);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code(), ErrorCode::kDataLoss);
    EXPECT_NE(done.error().message().find(what), std::string::npos) << done.error().message();
  }
}

}  // namespace
}  // namespace meshard::pjrt
