#include "meshard/io/safetensors.h"

#include "meshard/io/io_testutil.h"

namespace meshard::io {
namespace {

using SafetensorsTest = InFolder;

TEST_F(SafetensorsTest, ReadsEveryDtypeThatPythonWrote) {
  SafetensorsFile file = SafetensorsFile::open(golden_file("dtypes.safetensors")).value();
  EXPECT_EQ(file.metadata().at("note"), "line\nbreak");
  for (DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                      DType::u32, DType::u64, DType::f16, DType::f32, DType::f64}) {
    std::string name(to_string(dtype).substr(1));
    name = (is_floating(dtype) ? "float" : is_signed(dtype) ? "int" : "uint") + name;
    double first = is_unsigned_integer(dtype) ? 0 : -3;
    std::vector<double> expected{first, first + 1, first + 2, first + 3, first + 4, first + 5};
    HostArray array = file.array(name).value();
    EXPECT_EQ(array.type(), (TensorType{dtype, {2, 3}}));
    EXPECT_EQ(array.astype(DType::f64).to_vector<double>(), expected) << name;
  }
  std::vector<double> quarters{-0.5, -0.25, 0, 0.25, 0.5, 0.75};
  for (const char* name : {"bfloat16", "float8_e4m3fn", "float8_e5m2"})
    EXPECT_EQ(file.array(name).value().astype(DType::f64).to_vector<double>(), quarters) << name;
  EXPECT_EQ(file.array("float8_e4m3fn").value().dtype(), DType::f8e4m3fn);
  EXPECT_EQ(file.array("bool").value(),
            HostArray::from_vector<bool>({true, false, true, false, false, true}, {2, 3}));
  EXPECT_EQ(file.array("scalar").value(), HostArray::scalar(2.5f));
  EXPECT_EQ(file.array("empty").value().type(), (TensorType{DType::f32, {0, 4}}));
  EXPECT_EQ(file.array("layers.0.\xC3\xA9 \"w\"").value().item<int>(), 7);
  EXPECT_EQ(file.array("other").error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace meshard::io
