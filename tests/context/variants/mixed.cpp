// A program that forks. Linked with a library of another variant of the context switch it must not get past
// the linker (tests/context/extras.cmake).
#include <godwit/task.hpp>

int main() {
  return godwit::spawn([] { return 1; }).join();
}
