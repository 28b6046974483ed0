// expect: deleted.*capture its span\(\), or move it
// A closure takes the span of an array, or the array itself by moving: never a silent copy.
#include <godwit/godwit.hpp>

void use() {
  godwit::global_array<double> a(10);
  godwit::spawn([a] { static_cast<void>(a.size()); }).join();
}
