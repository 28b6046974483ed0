// expect: global_map: values that own something have one owner and are not copied
#include <godwit/godwit.hpp>

void use(godwit::global_map<int, godwit::global_bytes>& m) { m.fetch_add(1, 2); }
