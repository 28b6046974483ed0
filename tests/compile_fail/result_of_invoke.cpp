// expect: the result type of this (callable|thread) cannot migrate
// lines: 65
// The last callable of invoke runs here, but waits like a thread.
#include <godwit/godwit.hpp>

#include <fstream>

void use() {
  godwit::invoke([] { return 1; }, [] { return std::ofstream("out"); });
}
