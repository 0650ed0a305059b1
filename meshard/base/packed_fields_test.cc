#include "meshard/base/packed_fields.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/random.h"

namespace meshard {
namespace {

enum class Speed { kSlow = 3, kFast = 8 };

struct Wheel {
  std::string kind;
  float radius = 0;
  bool turns = false;
  MESHARD_FIELDS(kind, radius, turns)
  friend bool operator==(const Wheel&, const Wheel&) = default;
};
struct Car {
  std::string name;
  Speed speed = Speed::kSlow;
  std::vector<Wheel> wheels = {};
  std::optional<std::uint64_t> number = {};
  std::int64_t offset = 0;
  int seats = 0;
  double price = 0;
  std::vector<bool> doors = {};
  std::map<std::string, std::variant<std::string, bool, std::int64_t, double>> options = {};
  std::vector<std::pair<std::string, std::chrono::milliseconds>> laps = {};
  int scratch = 1;

  int length() const { return 4; }
  MESHARD_WRITTEN_FIELDS(name, speed, wheels, number, offset, seats, price, doors, options, laps,
                         scratch, length())
  static constexpr FieldNotes kFieldNotes{.local = "scratch"};
  friend bool operator==(const Car&, const Car&) = default;
};
// Other fields than those of Wheel.
struct RenamedWheel {
  std::string sort;
  float radius = 0;
  bool turns = false;
  MESHARD_FIELDS(sort, radius, turns)
};
struct RetypedWheel {
  std::string kind;
  double radius = 0;
  bool turns = false;
  MESHARD_FIELDS(kind, radius, turns)
};

}  // namespace

template <>
struct EnumNames<Speed> {
  static constexpr EnumName<Speed> kNames[] = {{Speed::kSlow, "slow"}, {Speed::kFast, "fast"}};
};

namespace {

Car full_car() {
  return {
      .name = std::string("a\0b\xff", 4),
      .speed = Speed::kFast,
      .wheels = {{"front", 0.5f, true}, {"front", -1.25f, true}, {std::string(300, 'x'), 0, false}},
      .number = std::numeric_limits<std::uint64_t>::max(),
      .offset = std::numeric_limits<std::int64_t>::min(),
      .seats = -3,
      .price = 1.0 / 3.0,
      .doors = {true, false, true},
      .options = {{"a", "text"}, {"b", true}, {"c", std::int64_t{-7}}, {"d", 0.25}},
      .laps = {{"first", std::chrono::milliseconds(90000)}}};
}

TEST(PackedFields, ComeBackAsTheyWere) {
  EXPECT_EQ(from_packed<Car>(to_packed(full_car()), "car").value(), full_car());
  EXPECT_EQ(from_packed<Car>(to_packed(Car()), "car").value(), Car());
  for (std::int64_t number : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{63},
                              std::int64_t{-65}, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(from_packed<std::int64_t>(to_packed(number), "number").value(), number);
}

TEST(PackedFields, LocalOnesStayBehind) {
  Car car = full_car();
  car.scratch = 5;
  EXPECT_EQ(from_packed<Car>(to_packed(car), "car").value().scratch, 1);
}

TEST(PackedFields, ShortTextsAreWrittenOnce) {
  std::vector<std::string> same(100, "a text of some length"), long_ones(2, std::string(1000, 'x'));
  EXPECT_LT(to_packed(same).size(), 150u);
  EXPECT_EQ(from_packed<std::vector<std::string>>(to_packed(same), "texts").value(), same);
  EXPECT_EQ(from_packed<std::vector<std::string>>(to_packed(long_ones), "texts").value(),
            long_ones);
}

TEST(PackedFields, OtherFieldsAreAnError) {
  std::string bytes = to_packed(Wheel{"front", 1, true});
  for (const auto& error : {from_packed<RenamedWheel>(bytes, "wheel").error(),
                            from_packed<RetypedWheel>(bytes, "wheel").error(),
                            from_packed<Car>(bytes, "wheel").error()}) {
    EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    EXPECT_EQ(error.message(),
              "[wheel] the bytes are damaged, or another version of meshard wrote them");
  }
}

TEST(PackedFields, EveryCutAndAddedByteIsAnError) {
  std::string bytes = to_packed(full_car());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_packed<Car>(std::string_view(bytes).substr(0, size), "car").ok()) << size;
  EXPECT_FALSE(from_packed<Car>(bytes + '\0', "car").ok());
}

TEST(PackedFields, DamagedBytesAreReadOrRefused) {
  TestRandom random;
  std::string whole = to_packed(full_car());
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change)
      bytes[static_cast<std::size_t>(random.between(0, std::ssize(bytes) - 1))] =
          static_cast<char>(random.between(0, 255));
    Result<Car> car = from_packed<Car>(bytes, "car");
    refused += !car.ok();
    if (!car.ok()) continue;
    EXPECT_EQ(from_packed<Car>(to_packed(*car), "car").value().name, car->name);
  }
  EXPECT_GT(refused, 0);
}

TEST(PackedFields, ValuesOutsideTheirTypeAreErrors) {
  auto seats = [](std::int64_t value) {  // an int has the same format
    return from_packed<int>(to_packed(value), "seats");
  };
  EXPECT_EQ(seats(-7).value(), -7);
  EXPECT_FALSE(seats(std::int64_t{1} << 31).ok());
  EXPECT_FALSE(
      from_packed<bool>(to_packed(true).substr(0, to_packed(true).size() - 1) + "\4", "b").ok());
  // A speed that has no name.
  std::string slow = to_packed(Speed::kSlow);
  slow.back() = '\7';
  EXPECT_FALSE(from_packed<Speed>(slow, "speed").ok());
}

}  // namespace
}  // namespace meshard
