// expect: deleted.*capture its span\(\), or move it
#include <godwit/godwit.hpp>

void use() {
  godwit::global_vector<int> v;
  godwit::spawn([v] { static_cast<void>(v.size()); }).join();
}
