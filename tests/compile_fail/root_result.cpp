// expect: the result of the root thread goes to main as bytes
// What the root returns goes to the supervising process.
#include <godwit/godwit.hpp>

#include <fstream>

int main() {
  godwit::run<std::ofstream>([] { return std::ofstream("out"); });
}
