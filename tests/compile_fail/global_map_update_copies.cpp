// expect: global_map: values that own something have one owner and are not copied: move one in
#include <godwit/godwit.hpp>

void use(godwit::global_map<int, godwit::global_bytes>& m, const godwit::global_bytes& b) {
  m.insert_or_update(1, b, [](godwit::global_bytes&) {});
}
