// expect: root must not return a reference
#include <godwit/godwit.hpp>

int global = 0;

int main(int argc, char** argv) {
  return godwit::run(argc, argv, []() -> int& { return global; });
}
