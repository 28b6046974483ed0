// expect: elements that own memory are not overwritten
#include <godwit/godwit.hpp>

void use(godwit::global_array<godwit::global_bytes>& a) { a.checkout(godwit::access::write); }
