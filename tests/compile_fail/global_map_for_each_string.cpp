// expect: for_each: the function must be plain bytes
#include <godwit/godwit.hpp>
#include <string>

void use(std::string s) {
  godwit::global_map<int, int> m(10);
  m.for_each([s](int, int) {});
}
