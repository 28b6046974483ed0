// Built with -fsanitize=thread: run says that this does not work, and with what it does. See extras.cmake.
#include <godwit/runtime.hpp>

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] {});
}
