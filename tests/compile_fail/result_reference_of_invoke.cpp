// expect: a thread must not return a reference
// lines: 12
#include <godwit/godwit.hpp>

int global = 0;

void use() {
  godwit::invoke([]() -> int& { return global; }, [] { return 1; });
}
