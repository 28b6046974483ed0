// expect: run<T>: root must return exactly T
// No silent conversion of the result.
#include <godwit/godwit.hpp>

int main() {
  return static_cast<int>(godwit::run<long>([] { return 1; }));
}
