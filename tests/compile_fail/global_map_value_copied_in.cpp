// expect: global_map: values that own something have one owner and are not copied: move one in
#include <godwit/godwit.hpp>

void use(godwit::global_map<int, godwit::global_bytes>& m, godwit::global_bytes& b) { m.insert(1, b); }
