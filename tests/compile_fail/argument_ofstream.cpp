// expect: the type of an argument of this thread cannot migrate
// A stream belongs to one process.
#include <godwit/godwit.hpp>

#include <fstream>

void use() {
  godwit::spawn([](std::ofstream) {}, std::ofstream("out")).join();
}
