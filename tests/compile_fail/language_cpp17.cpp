// expect: godwit needs C.+20: add -std=c.+20 to the compile line
// flags: -std=c++17
// lines: 12
#include <godwit/godwit.hpp>

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] {});
}
