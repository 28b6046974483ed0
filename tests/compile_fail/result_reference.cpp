// expect: a thread must not return a reference
// lines: 12
// What a reference refers to stays behind.
#include <godwit/godwit.hpp>

int global = 0;

void use() {
  godwit::spawn([]() -> int& { return global; }).join();
}
