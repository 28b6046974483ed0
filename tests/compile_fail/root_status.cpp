// expect: the root returns void or an exit status
// run(argc, argv, root) gives back an exit status.
#include <godwit/godwit.hpp>

int main(int argc, char** argv) {
  return godwit::run(argc, argv, [] { return std::string("no status"); });
}
