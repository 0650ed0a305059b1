// Serves a model that JAX exported: each line of the input is a row of numbers, and so is each
// line of the output. Rows are answered in batches of the size that the model was exported for.
#include <meshard/meshard.h>

#include <exception>
#include <iostream>
#include <sstream>

using namespace meshard;

// The next rows of the input, up to `rows`; the rest of the batch is zero.
std::int64_t read_batch(std::istream& input, std::int64_t rows, std::vector<float>& batch) {
  const std::size_t columns = batch.size() / static_cast<std::size_t>(rows);
  std::fill(batch.begin(), batch.end(), 0.0f);
  std::string line;
  std::int64_t row = 0;
  for (; row < rows && std::getline(input, line); ++row) {
    std::istringstream numbers(line);
    for (std::size_t i = 0; i < columns; ++i)
      numbers >> batch[static_cast<std::size_t>(row) * columns + i];
  }
  return row;
}

void serve(const std::string& path, std::istream& input) {
  ImportedProgram model = load_program(path).value();
  const Shape shape = model.arguments()[0].type->shape;
  std::cerr << model << "\n";
  std::vector<float> batch(static_cast<std::size_t>(shape.size()));
  while (std::int64_t rows = read_batch(input, shape[0], batch)) {
    // The batch goes straight to the devices, each its own rows; only the answers come back.
    std::vector<Tensor> results = model(from_host(batch, shape));
    HostArray answers = results[0].to_host();
    for (std::int64_t row = 0; row < rows; ++row) std::cout << answers.data<float>()[row] << "\n";
  }
}

int main(int argc, char** argv) {
  try {
    serve(argc > 1 ? argv[1] : "model.bin", std::cin);
  } catch (const std::exception& error) {
    std::cerr << "serve_imported: " << error.what() << "\n";
    return 1;
  }
}
