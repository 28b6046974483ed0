// expect: this is ordinary memory, of one process only. Keep the elements in a gw::global_array
// lines: 12
#include <godwit/godwit.hpp>

void use(int* p) {
  godwit::for_each(p, p + 10, [](int& x) { ++x; });
}
